import { Tabs, Text } from '@mantine/core'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { type ReactNode, useMemo } from 'react'
import { attachmentPath, type CapturedMessage } from '../../api.ts'
import { bareId } from '../../shared/mail/inline-images.ts'
import { MailHtml } from '../../shared/mail/mail-html.tsx'
import { readHtml } from '../../shared/mail/safe-html.ts'
import { MESSAGE_TABS, type MessageTab } from '../inbox-search.ts'
import { LinkList } from '../link-list.tsx'
import { MessageChecks } from './message-checks.tsx'
import { MessageEvents } from './message-events.tsx'
import { AttachmentList, HeaderTable, PlainText, RawSource } from './message-parts.tsx'

const route = getRouteApi('/captured/inbox/$id')

/** Parsing blocks the page; mail clients clip messages at about a hundredth of this. */
const PREVIEW_MAX_CHARS = 4_000_000

interface Tab {
  label: string
  show: () => ReactNode
}

/** Tabs for the parts of the message. The selected one is in the URL and is kept while moving through the list. */
export function MessageTabs({ message }: { message: CapturedMessage }) {
  const { tab: wanted } = route.useSearch()
  const navigate = useNavigate({ from: '/inbox/$id' })
  const tabs = useTabs(message)
  const names = MESSAGE_TABS.filter((name) => tabs[name] !== undefined)
  const active = names.find((name) => name === wanted) ?? names[0] ?? 'source'
  return (
    <Tabs
      className="message-tabs"
      value={active}
      keepMounted={false}
      onChange={(value) => {
        const tab = MESSAGE_TABS.find((name) => name === value)
        if (tab) void navigate({ to: '.', replace: true, search: (search) => ({ ...search, tab }) })
      }}
    >
      <Tabs.List className="message-tab-list">
        {names.map((name) => (
          <Tabs.Tab key={name} value={name}>
            {tabs[name]?.label}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      {names.map((name) => (
        <Tabs.Panel key={name} value={name} className="message-panel">
          {tabs[name]?.show()}
        </Tabs.Panel>
      ))}
    </Tabs>
  )
}

function useTabs(message: CapturedMessage): Partial<Record<MessageTab, Tab>> {
  const { html, text, amp, attachments } = message
  const content = useMemo(
    () => (html && html.length <= PREVIEW_MAX_CHARS ? readHtml(html) : undefined),
    [html],
  )
  const counted = (label: string, count: number) => (count > 0 ? `${label} (${count})` : label)
  return {
    ...(html && {
      html: {
        label: 'HTML',
        show: () => (content ? <MailHtml files={inlineFiles(message)} content={content} /> : <TooLarge />),
      },
    }),
    ...(text && { text: { label: 'Text', show: () => <PlainText text={text} /> } }),
    ...(amp && { amp: { label: 'AMP', show: () => <PlainText text={amp} code /> } }),
    ...(content &&
      content.links.length > 0 && {
        links: {
          label: counted('Links', content.links.length),
          show: () => <LinkList key={message.id} id={message.id} links={content.links} />,
        },
      }),
    checks: { label: 'Checks', show: () => <MessageChecks message={message} /> },
    headers: { label: 'Headers', show: () => <HeaderTable headers={message.headers} /> },
    source: { label: 'Source', show: () => <RawSource id={message.id} /> },
    ...(attachments.length > 0 && {
      attachments: {
        label: counted('Attachments', attachments.length),
        show: () => <AttachmentList messageId={message.id} attachments={attachments} />,
      },
    }),
    events: { label: 'Events', show: () => <MessageEvents message={message} /> },
  }
}

const inlineFiles = ({ id, attachments }: CapturedMessage) =>
  attachments.flatMap((part) =>
    part['content-id'] === null
      ? []
      : [
          {
            id: bareId(part['content-id']),
            type: part['content-type'],
            size: part.size,
            path: attachmentPath(id, part.n),
          },
        ],
  )

function TooLarge() {
  return (
    <Text p="md" size="sm" c="dimmed">
      The HTML of this message is too large to show here. Download the message to look at it in a mail
      program.
    </Text>
  )
}
