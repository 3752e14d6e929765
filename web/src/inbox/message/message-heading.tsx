import { ActionIcon, Badge } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { type CapturedMessage, type DkimResult, deleteMessage, rawPath } from '../../api.ts'
import { Confirm } from '../../base/confirm.tsx'
import { exactTime, formatBytes, shortDateTime } from '../../base/format.ts'
import { Icon } from '../../look/icons.tsx'
import { messageQuery, valueOrThrow } from '../../queries.ts'
import { useSending } from '../../shared/forms/use-sending.ts'
import { Mailboxes } from '../../shared/mail/mailboxes.tsx'
import { Fact } from '../../shared/page/fact.tsx'
import { inboxQuery } from '../inbox-queries.ts'
import { filtersOf } from '../inbox-search.ts'
import { removeFromList } from '../list-keeper.ts'
import { itemsOf } from '../pages.ts'
import { useMessageKeys } from './message-keys.ts'
import { ReleaseButton } from './message-release.tsx'
import { MessageTags } from './message-tags.tsx'

const route = getRouteApi('/captured/inbox/$id')

export function MessageHeading({ message }: { message: CapturedMessage }) {
  const receivedMs = Date.parse(message.received_at)
  return (
    <header className="message-heading">
      <div className="message-title">
        <h2 dir="auto">{message.subject || '(no subject)'}</h2>
        <ActionIcon
          component="a"
          variant="subtle"
          color="gray"
          size="lg"
          href={rawPath(message.id)}
          download={`${message.id}.eml`}
          aria-label="Download as .eml"
          title="Download as .eml"
        >
          <Icon name="download" />
        </ActionIcon>
        <ReleaseButton message={message} />
        <DeleteButton id={message.id} />
      </div>
      <dl className="message-facts">
        <Fact name="From">
          <Mailboxes text={message.from || '(none)'} />
        </Fact>
        <Fact name="To">
          <Mailboxes text={message.to || '(none)'} />
        </Fact>
        <EnvelopeFact message={message} />
        <Fact name="Received">
          <time dateTime={message.received_at} title={exactTime(receivedMs)}>
            {shortDateTime(receivedMs)}
          </time>
          <span className="dimmed"> · {formatBytes(message.size)}</span>
        </Fact>
        <Fact name="Signature">
          <Signatures results={message.authentication.dkim} />
        </Fact>
        <Fact name="Tags">
          <MessageTags message={message} />
        </Fact>
      </dl>
    </header>
  )
}

/** The SMTP envelope, which may differ from the header; often that is what one wants to see. */
function EnvelopeFact({ message }: { message: CapturedMessage }) {
  const { from, to } = message.envelope
  return (
    <Fact name="Envelope">
      <bdi>{from || '<> (no return path)'}</bdi> → <bdi>{to.join(', ')}</bdi>
    </Fact>
  )
}

function Signatures({ results }: { results: readonly DkimResult[] }) {
  const signed = results.filter(({ result }) => result !== 'none')
  if (signed.length === 0)
    return (
      <Badge {...BADGE} color="gray">
        Not signed with DKIM
      </Badge>
    )
  return signed.map((found, index) => {
    const valid = found.result === 'pass'
    const by = `${found.domain ?? 'unknown domain'}${found.selector ? `, key ${found.selector}` : ''}`
    return (
      // biome-ignore lint/suspicious/noArrayIndexKey: a signature has no id of its own, and the list never changes
      <span className="signature" key={index}>
        <Badge {...BADGE} color={valid ? 'teal' : 'red'}>
          {valid ? 'DKIM valid' : 'DKIM not valid'}
        </Badge>
        <span className="dimmed">
          {valid ? 'signed by' : 'claims'} {by}
          {!valid && found.reason && `: ${found.reason}`}
        </span>
      </span>
    )
  })
}

const BADGE = { variant: 'light', tt: 'none', fw: 550, size: 'sm' } as const

/** Deletes the message, then opens its neighbour in the list, for working through many. */
function DeleteButton({ id }: { id: string }) {
  const [asking, setAsking] = useState(false)
  const queries = useQueryClient()
  const navigate = useNavigate()
  const filters = filtersOf(route.useSearch())
  const removal = useSending({
    mutationFn: async () => valueOrThrow(await deleteMessage(id)),
    async onSuccess() {
      setAsking(false)
      const items = itemsOf(queries.getQueryData(inboxQuery(filters).queryKey))
      const place = items.findIndex((item) => item.id === id)
      const neighbour = place < 0 ? undefined : (items[place + 1] ?? items[place - 1])
      void removeFromList(queries, filters, id)
      const search = (kept: object) => kept
      if (neighbour === undefined || isNarrow()) await navigate({ to: '/', search })
      else await navigate({ to: '/inbox/$id', params: { id: neighbour.id }, search })
      queries.removeQueries({ queryKey: messageQuery(id).queryKey })
    },
  })
  useMessageKeys(id, () => setAsking(true))
  return (
    <>
      <ActionIcon
        variant="subtle"
        color="gray"
        size="lg"
        aria-label="Delete this message"
        title="Delete this message"
        onClick={() => setAsking(true)}
      >
        <Icon name="trash" />
      </ActionIcon>
      <Confirm
        opened={asking}
        title="Delete this message?"
        consequence="It is removed from the inbox of captured mail. This cannot be undone."
        action="Delete"
        busy={removal.isPending}
        failure={removal.error?.message}
        onConfirm={() => removal.mutate()}
        onClose={() => setAsking(false)}
      />
    </>
  )
}

/** The width below which the style sheet shows list and message one at a time. */
const isNarrow = () => window.matchMedia('(max-width: 52em)').matches
