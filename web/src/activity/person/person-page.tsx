/**
 * One person: events of the address, mailing lists, suppressions, consent, and the buttons for export and erasure. Calls
 * POST /v1/analytics/logs and /sendwright/v1/people/:address.
 */
import { Badge, Skeleton } from '@mantine/core'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { useMay } from '../../session.ts'
import { type Column, DataTable } from '../../shared/page/data-table.tsx'
import { Page, PageHeader, Panel } from '../../shared/page/page.tsx'
import { EmptyState, Failure } from '../../shared/page/states.tsx'
import { Time } from '../../shared/time.tsx'
import type { LogItem } from '../activity-api.ts'
import { EventName, MessageLink } from '../columns.tsx'
import { detailOf, kindOf } from '../event-words.ts'
import { MachineMark } from '../machine-mark.tsx'
import { KIND_LABELS, TEXT as LIST_TEXT } from '../text.ts'
import {
  type ConsentChange,
  consentQuery,
  personEventsQuery,
  type Recipient,
  recipientQuery,
} from './person-api.ts'
import { PersonButtons } from './person-tasks.tsx'
import { ACTION_LABELS, SOURCE_LABELS, SUPPRESSION_LABELS, TEXT } from './text.ts'
import '../activity.css'

const route = getRouteApi('/people/$address')

export function PersonPage() {
  const { address } = route.useParams()
  const mayErase = useMay({ area: 'account', access: 'write' })
  const mayReadLists = useMay({ area: 'lists' })
  return (
    <Page wide key={address}>
      <PageHeader
        title={address}
        lead={TEXT.lead}
        back={{ to: '/activity', label: LIST_TEXT.title }}
        actions={mayErase && <PersonButtons address={address} />}
      />
      <Figures address={address} />
      <Lists address={address} />
      {mayReadLists && <Consent address={address} />}
      <Events address={address} />
    </Page>
  )
}

/** How often each kind of event is among the newest. */
function Figures({ address }: { address: string }) {
  const { data, error, refetch } = useQuery(personEventsQuery(address, undefined))
  const counts = new Map<string, number>()
  for (const item of data?.items ?? []) counts.set(kindOf(item), (counts.get(kindOf(item)) ?? 0) + 1)
  const isAll = data?.pagination.next === undefined
  return (
    <Panel title={TEXT.figures} className="person-what">
      {error !== null ? (
        <Failure title={TEXT.figures} error={error} retry={refetch} />
      ) : data === undefined ? (
        <Skeleton height={72} role="status" aria-label="Loading" />
      ) : data.items.length === 0 ? (
        <p className="dimmed person-note">{TEXT.nothingYet}</p>
      ) : (
        <>
          <dl className="person-figures">
            {Object.entries(KIND_LABELS).map(
              ([kind, label]) =>
                counts.has(kind) && (
                  <div key={kind}>
                    <dt>{label}</dt>
                    <dd>{counts.get(kind)}</dd>
                  </div>
                ),
            )}
          </dl>
          <p className="dimmed person-note">{isAll ? TEXT.all : TEXT.newest(data.items.length)}</p>
        </>
      )}
    </Panel>
  )
}

/** Suppressions and mailing lists, side by side where there is room. */
function Lists({ address }: { address: string }) {
  const mayRead = useMay({ area: 'suppressions' })
  const { data, error, refetch } = useQuery({ ...recipientQuery(address), enabled: mayRead })
  const state = !mayRead ? (
    <p className="dimmed person-note">{TEXT.noRights}</p>
  ) : error !== null ? (
    <Failure title={TEXT.suppressions} error={error} retry={refetch} />
  ) : (
    data === undefined && <Skeleton height={64} role="status" aria-label="Loading" />
  )
  return (
    <div className="person-pair">
      <Panel title={TEXT.suppressions}>
        {state || <Suppressions items={data?.suppressions ?? []} address={address} />}
      </Panel>
      <Panel title={TEXT.lists}>{state || <Memberships items={data?.lists ?? []} address={address} />}</Panel>
    </div>
  )
}

function Suppressions({ items, address }: { items: Recipient['suppressions']; address: string }) {
  return (
    <Rows none={TEXT.noSuppressions} count={items.length}>
      {items.map(({ domain, kind, code, detail, tags, created_at, expires_at }) => (
        <li key={`${domain} ${kind}`}>
          <Badge variant="light" tt="none" color={kind === 'whitelists' ? 'teal' : 'red'}>
            {SUPPRESSION_LABELS[kind] ?? kind}
          </Badge>{' '}
          <Link to="/sending/suppressions" search={{ domain, kind, q: address }}>
            {TEXT.ofDomain(domain)}
          </Link>
          <div className="dimmed person-note breakable">
            {[code, detail, tags.map((tag) => (tag === '*' ? TEXT.allMail : tag)).join(', ')]
              .filter(Boolean)
              .join(' · ')}{' '}
            <Time at={created_at} as="age" />
            {expires_at !== null && (
              <>
                , {TEXT.until} <Time at={expires_at} />
              </>
            )}
          </div>
        </li>
      ))}
    </Rows>
  )
}

function Memberships({ items, address }: { items: Recipient['lists']; address: string }) {
  return (
    <Rows none={TEXT.noLists} count={items.length}>
      {items.map((list) => (
        <li key={list.address}>
          <Link to="/sending/lists/$address" params={{ address: list.address }} search={{ q: address }}>
            {list.title || list.address}
          </Link>{' '}
          <Badge variant="light" tt="none" color={list.subscribed && !list.pending ? 'teal' : 'gray'}>
            {list.pending ? TEXT.pending : list.subscribed ? TEXT.subscribed : TEXT.unsubscribed}
          </Badge>
          <div className="dimmed person-note breakable">
            {[list.title && list.address, list.member_name].filter(Boolean).join(' · ')}
          </div>
        </li>
      ))}
    </Rows>
  )
}

function Rows({ none, count, children }: { none: string; count: number; children: ReactNode }) {
  if (count === 0) return <p className="dimmed person-note">{none}</p>
  return <ul className="person-rows">{children}</ul>
}

const CONSENT_COLUMNS: readonly Column<ConsentChange & { key: string }>[] = [
  { header: TEXT.consentColumns.when, width: '190px', cell: ({ at }) => <Time at={at} /> },
  {
    header: TEXT.consentColumns.what,
    cell: ({ action }) => <strong>{ACTION_LABELS[action]}</strong>,
  },
  {
    header: TEXT.consentColumns.list,
    cell: ({ list, list_title, topic, domain }) => (
      <span className="breakable">
        {topic === undefined
          ? list_title || list
          : TEXT.topic(topic === '*' ? TEXT.allMail : topic, list || domain)}
      </span>
    ),
  },
  {
    header: TEXT.consentColumns.source,
    cell: ({ source, ip, user_agent }) => (
      <div>
        {SOURCE_LABELS[source]}
        <div className="dimmed person-note breakable">{[ip, user_agent].filter(Boolean).join(' · ')}</div>
      </div>
    ),
  },
]

function Consent({ address }: { address: string }) {
  const { data, error, refetch } = useQuery(consentQuery(address))
  return (
    <Panel title={TEXT.consent} flush>
      <DataTable
        label={TEXT.consent}
        columns={CONSENT_COLUMNS}
        rows={data?.map((change, at) => ({ ...change, key: `${change.at} ${at}` }))}
        rowKey={({ key }) => key}
        error={error}
        retry={refetch}
        expectedRows={2}
        empty={<EmptyState icon="check" title={TEXT.noConsent} />}
      />
    </Panel>
  )
}

const EVENT_COLUMNS: readonly Column<LogItem>[] = [
  {
    header: TEXT.columns.event,
    width: '150px',
    cell: (item) => (
      <MessageLink item={item}>
        <EventName item={item} />
      </MessageLink>
    ),
  },
  {
    header: TEXT.columns.subject,
    width: '36%',
    cell: ({ message }) => (
      <span className="activity-subject" dir="auto">
        {message?.headers.subject || LIST_TEXT.noSubject}
      </span>
    ),
  },
  {
    header: TEXT.columns.detail,
    cell: (item) => (
      <span className="activity-detail dimmed">
        <MachineMark bot={item['client-info']?.bot} /> {detailOf(item)}
      </span>
    ),
  },
  {
    header: TEXT.columns.time,
    align: 'end',
    width: '110px',
    cell: (item) => <Time at={item['@timestamp']} as="age" />,
  },
]

function Events({ address }: { address: string }) {
  const { at } = route.useSearch()
  const navigate = useNavigate({ from: '/people/$address' })
  const { data, error, refetch, isPlaceholderData } = useQuery({
    ...personEventsQuery(address, at),
    placeholderData: keepPreviousData,
  })
  return (
    <Panel title={TEXT.events} flush>
      <DataTable
        label={TEXT.events}
        className="activity-table"
        columns={EVENT_COLUMNS}
        rows={data?.items}
        rowKey={({ id }) => id}
        error={error}
        retry={refetch}
        isStale={isPlaceholderData}
        expectedRows={8}
        empty={
          <EmptyState icon="mail" title={TEXT.noEvents}>
            {TEXT.noEventsWhy}
          </EmptyState>
        }
        links={data?.pagination}
        onPage={(token) => void navigate({ search: { at: token } })}
      />
    </Panel>
  )
}
