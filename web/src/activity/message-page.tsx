/**
 * One message: a card for each recipient with its attempts, the dialogue and what will happen next, and the stored content. Calls
 * GET /sendwright/v1/messages/:id/deliveries and POST /v1/analytics/logs.
 */
import { Skeleton } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { countOf } from '../base/format.ts'
import { useMay } from '../session.ts'
import { Copyable } from '../shared/copyable.tsx'
import { Mailboxes } from '../shared/mail/mailboxes.tsx'
import { PageButtons } from '../shared/page/data-table.tsx'
import { Fact } from '../shared/page/fact.tsx'
import { Page, PageHeader } from '../shared/page/page.tsx'
import { placeOf } from '../shared/page/paging.ts'
import { EmptyState, Failure } from '../shared/page/states.tsx'
import { Time } from '../shared/time.tsx'
import type { LogItem } from './activity-api.ts'
import { MessageActions } from './message-actions.tsx'
import { deliveriesQuery, headQuery } from './message-queries.ts'
import { LoggedRecipient, RecipientCard } from './recipient-card.tsx'
import { StoredContent } from './stored-content.tsx'
import { TEXT as LIST_TEXT, MESSAGE_TEXT as TEXT } from './text.ts'
import './activity.css'

const route = getRouteApi('/activity/$id')
/** So many recipients are open at once without a click. */
const OPEN_MAX = 3

export default function MessagePage() {
  const { id } = route.useParams()
  const head = useQuery(headQuery(id))
  return (
    <Page>
      <PageHeader
        title={head.data?.message?.headers.subject || (head.data === undefined ? id : LIST_TEXT.noSubject)}
        back={{ to: '/activity', label: TEXT.back }}
      />
      {head.error !== null && (
        <Failure title={TEXT.unknown} error={head.error} retry={() => head.refetch()} />
      )}
      {head.data === undefined && head.error === null && (
        <div role="status" aria-label="Loading">
          <Skeleton height={120} radius="lg" />
          <Skeleton height={240} radius="lg" mt={16} />
        </div>
      )}
      {head.data === null && (
        <div className="panel">
          <EmptyState icon="search" title={TEXT.unknown}>
            {TEXT.unknownWhy}
          </EmptyState>
        </div>
      )}
      {head.data && <Found key={id} id={id} head={head.data} />}
    </Page>
  )
}

function Found({ id, head }: { id: string; head: LogItem }) {
  const { recipient, at } = route.useSearch()
  const deliveries = useQuery(deliveriesQuery(id, at))
  const mayReadContent = useMay({ area: 'messages:stored' })
  const items = deliveries.data?.items ?? []
  return (
    <>
      <div className="panel panel-body">
        <Summary id={id} head={head} />
        <MessageActions id={id} head={head} deliveries={items} isStored={deliveries.data !== null} />
      </div>
      {deliveries.error !== null && (
        <Failure title={TEXT.recipients} error={deliveries.error} retry={() => deliveries.refetch()} />
      )}
      <section className="recipient-cards" aria-label={TEXT.recipients}>
        {deliveries.data === undefined && deliveries.error === null && (
          <Skeleton height={180} radius="lg" role="status" aria-label="Loading" />
        )}
        {deliveries.data === null ? (
          <LoggedRecipient id={id} recipient={recipient ?? head.recipient ?? ''} />
        ) : (
          items.map((delivery) => (
            <RecipientCard
              key={delivery.id}
              messageId={id}
              delivery={delivery}
              isOpen={recipient === undefined ? items.length <= OPEN_MAX : recipient === delivery.recipient}
            />
          ))
        )}
        <Pages
          links={deliveries.data?.paging}
          count={items.length}
          at={at}
          isBusy={deliveries.isPlaceholderData}
        />
      </section>
      {mayReadContent && head.storage && deliveries.data !== undefined && (
        <StoredContent domain={head.domain.name} storageKey={head.storage.key} />
      )}
    </>
  )
}

/** The API's lists link to a next page always; a page that is not full has none. */
function Pages(props: {
  links: { next: string; previous: string } | undefined
  count: number
  at: string | undefined
  isBusy: boolean
}) {
  const { links, count, at, isBusy } = props
  const navigate = useNavigate({ from: '/activity/$id' })
  const limit = Number(new URLSearchParams(links?.next.split('?', 2)[1]).get('limit') ?? count + 1)
  const shown = {
    ...(at !== undefined && { previous: links?.previous }),
    ...(count >= limit && { next: links?.next }),
  }
  const open = (link: string) => {
    const place = placeOf(link)
    void navigate({ search: (search) => ({ ...search, ...(place && { at: place }) }) })
  }
  return <PageButtons links={shown} onPage={open} isBusy={isBusy} />
}

function Summary({ id, head }: { id: string; head: LogItem }) {
  const { message, tags, method, domain, ignored = [] } = head
  const recipients = message?.headers.to ?? head.recipient ?? ''
  return (
    <dl className="message-summary">
      <Fact name={TEXT.from}>
        <Mailboxes text={message?.headers.from ?? ''} />
      </Fact>
      <Fact name={TEXT.to}>
        <Mailboxes text={shortened(recipients)} />
      </Fact>
      <Fact name={TEXT.sent}>
        <Time at={head['@timestamp']} />
        {method && <span className="dimmed"> {TEXT.by(method)}</span>}
      </Fact>
      <Fact name={TEXT.domain}>{domain.name}</Fact>
      {tags.length > 0 && (
        <Fact name={TEXT.tags}>
          {tags.map((tag) => (
            <bdi className="tag" key={tag}>
              {tag}
            </bdi>
          ))}
        </Fact>
      )}
      {ignored.length > 0 && (
        <Fact name={TEXT.ignored}>
          <span className="breakable">{ignored.join(', ')}</span>
        </Fact>
      )}
      <Fact name={TEXT.id}>
        <Copyable text={id} what="the message id" />
      </Fact>
    </dl>
  )
}

const ADDRESSES_SHOWN = 4
function shortened(recipients: string): string {
  const all = recipients.split(/,\s*/)
  if (all.length <= ADDRESSES_SHOWN) return recipients
  return `${all.slice(0, ADDRESSES_SHOWN).join(', ')} and ${countOf(all.length - ADDRESSES_SHOWN, 'other')}`
}
