/** The stored message as text, as HTML in a sandboxed frame, as header fields, source and files. */
import { Loader, Tabs } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { type ReactNode, useMemo } from 'react'
import { pathOfLink } from '../api.ts'
import { CopyButton } from '../base/copy-button.tsx'
import { formatBytes } from '../base/format.ts'
import { downloadLink } from '../shared/download.ts'
import { bareId, type InlinePart } from '../shared/mail/inline-images.ts'
import { MailHtml } from '../shared/mail/mail-html.tsx'
import { readHtml } from '../shared/mail/safe-html.ts'
import { Failure } from '../shared/page/states.tsx'
import type { StoredMessage } from './activity-api.ts'
import { sourceQuery, storedQuery } from './message-queries.ts'
import { CONTENT_TABS, type ContentTab } from './message-search.ts'
import { MESSAGE_TEXT as TEXT } from './text.ts'

const route = getRouteApi('/activity/$id')

/** Parsing blocks the page; mail clients clip messages at about a hundredth of this. */
const PREVIEW_MAX_CHARS = 4_000_000
/** Enough for every header and the start of the parts. */
const SOURCE_SHOWN_MAX_CHARS = 256 * 1024

export function StoredContent({ domain, storageKey }: { domain: string; storageKey: string }) {
  const stored = useQuery(storedQuery(domain, storageKey))
  return (
    <section className="panel" aria-label={TEXT.content}>
      <header className="panel-header">
        <h2>{TEXT.content}</h2>
      </header>
      {stored.data ? (
        <ContentTabs stored={stored.data} domain={domain} storageKey={storageKey} />
      ) : (
        <div className="panel-body">
          {stored.error ? (
            <Failure title={TEXT.content} error={stored.error} retry={() => stored.refetch()} />
          ) : stored.data === null ? (
            <p className="dimmed">{TEXT.gone}</p>
          ) : (
            <Loader size="sm" role="status" aria-label="Loading" />
          )}
        </div>
      )}
    </section>
  )
}

function ContentTabs(props: { stored: StoredMessage; domain: string; storageKey: string }) {
  const { stored, domain, storageKey } = props
  const { tab } = route.useSearch()
  const navigate = useNavigate({ from: '/activity/$id' })
  const shown: Partial<Record<ContentTab, () => ReactNode>> = {
    ...(stored['body-html'] !== '' && { html: () => <Html stored={stored} /> }),
    text: () => <pre className="plain-text">{stored['body-plain'] || TEXT.noText}</pre>,
    headers: () => <Headers fields={stored['message-headers']} />,
    source: () => <Source domain={domain} storageKey={storageKey} />,
    ...(stored.attachments.length > 0 && { files: () => <Files files={stored.attachments} /> }),
  }
  const names = CONTENT_TABS.filter((name) => shown[name] !== undefined)
  const active = tab !== undefined && shown[tab] ? tab : shown.html ? 'html' : 'text'
  return (
    <Tabs
      value={active}
      keepMounted={false}
      onChange={(value) => {
        const next = CONTENT_TABS.find((name) => name === value)
        if (next)
          void navigate({ replace: true, resetScroll: false, search: (search) => ({ ...search, tab: next }) })
      }}
    >
      <Tabs.List className="content-tabs">
        {names.map((name) => (
          <Tabs.Tab key={name} value={name}>
            {TEXT[name]}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      {names.map((name) => (
        <Tabs.Panel key={name} value={name}>
          {shown[name]?.()}
        </Tabs.Panel>
      ))}
    </Tabs>
  )
}

function Html({ stored }: { stored: StoredMessage }) {
  const html = stored['body-html']
  const content = useMemo(() => (html.length <= PREVIEW_MAX_CHARS ? readHtml(html) : undefined), [html])
  const files = useMemo(
    (): InlinePart[] =>
      Object.entries(stored['content-id-map']).map(([id, part]) => ({
        id: bareId(id),
        type: part['content-type'],
        size: part.size,
        path: pathOfLink(part.url),
      })),
    [stored],
  )
  if (content === undefined) return <p className="panel-body dimmed">{TEXT.tooLarge}</p>
  return <MailHtml files={files} content={content} />
}

function Headers({ fields }: { fields: readonly [string, string][] }) {
  return (
    <dl className="header-lines">
      {fields.map(([name, value], index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: fields repeat, and their order is theirs for good
        <HeaderLine key={index} name={name} value={value} />
      ))}
    </dl>
  )
}

const HeaderLine = ({ name, value }: { name: string; value: string }) => (
  <>
    <dt>{name}</dt>
    <dd>
      <bdi>{value}</bdi>
    </dd>
  </>
)

function Source({ domain, storageKey }: { domain: string; storageKey: string }) {
  const { data, error, refetch } = useQuery(sourceQuery(domain, storageKey))
  if (error) return <Failure title={TEXT.source} error={error} retry={() => refetch()} />
  if (data === undefined) return <Loader m="md" size="sm" role="status" aria-label="Loading" />
  return (
    <div className="with-corner">
      <div className="corner">
        <CopyButton text={data} what="the source" />
      </div>
      <pre className="plain-text plain-text-code" dir="ltr">
        {data.slice(0, SOURCE_SHOWN_MAX_CHARS)}
      </pre>
    </div>
  )
}

function Files({ files }: { files: StoredMessage['attachments'] }) {
  return (
    <ul className="content-files">
      {files.map(({ name, url, size, ...file }) => (
        <li key={url}>
          <a {...downloadLink(pathOfLink(url), name)}>{name}</a>{' '}
          <span className="dimmed">
            {file['content-type']} · {formatBytes(size)}
          </span>
        </li>
      ))}
    </ul>
  )
}
