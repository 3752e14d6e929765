/** The columns of the list of events, and the choice of them. */
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { Icon } from '../look/icons.tsx'
import { lookOf } from '../shared/mail/event-look.ts'
import type { Column } from '../shared/page/data-table.tsx'
import { PersonLink } from '../shared/person-link.tsx'
import { Time } from '../shared/time.tsx'
import type { LogItem } from './activity-api.ts'
import { detailOf, kindOf } from './event-words.ts'
import { MachineMark } from './machine-mark.tsx'
import { KIND_LABELS, TEXT } from './text.ts'

type ActivityColumn = Column<LogItem> & { id: ColumnId }

const COLUMN_IDS = [
  ...(['event', 'recipient', 'from', 'subject', 'provider', 'domain', 'tags', 'detail', 'time'] as const),
]
export type ColumnId = (typeof COLUMN_IDS)[number]
const DEFAULT_COLUMNS: readonly ColumnId[] = ['event', 'recipient', 'subject', 'detail', 'time']

/** Always shown: by it a row is opened. */
const FIXED: ColumnId = 'recipient'

/** Known columns in their order; the usual ones if none is. */
export function readColumns(value: unknown): readonly ColumnId[] {
  const known = Array.isArray(value) ? COLUMN_IDS.filter((id) => id === FIXED || value.includes(id)) : []
  return known.length > 1 ? known : DEFAULT_COLUMNS
}

export const columnsOf = (shown: readonly ColumnId[]): Column<LogItem>[] =>
  COLUMNS.filter(({ id }) => shown.includes(id))

export function ColumnsChoice(props: {
  shown: readonly ColumnId[]
  onChange: (shown: readonly ColumnId[]) => void
}) {
  const { shown, onChange } = props
  const toggle = (id: ColumnId) =>
    onChange(readColumns(shown.includes(id) ? shown.filter((each) => each !== id) : [...shown, id]))
  return (
    <details className="activity-menu">
      <summary>{TEXT.chooseColumns}</summary>
      <fieldset>
        <legend>{TEXT.chooseColumns}</legend>
        {COLUMNS.filter(({ id }) => id !== FIXED).map(({ id, header }) => (
          <label key={id}>
            <input type="checkbox" checked={shown.includes(id)} onChange={() => toggle(id)} /> {header}
          </label>
        ))}
        <p className="dimmed">{TEXT.keptHere}</p>
      </fieldset>
    </details>
  )
}

const COLUMNS: readonly ActivityColumn[] = [
  { id: 'event', header: TEXT.columns.event, width: '150px', cell: (item) => <EventName item={item} /> },
  {
    id: 'recipient',
    header: TEXT.columns.recipient,
    width: '30%',
    cell: (item) => <RecipientLink item={item} />,
  },
  {
    id: 'from',
    header: TEXT.columns.from,
    wideOnly: true,
    cell: ({ message }) => <bdi className="breakable">{message?.headers.from ?? '–'}</bdi>,
  },
  {
    id: 'subject',
    header: TEXT.columns.subject,
    width: '26%',
    cell: ({ message }) => (
      <span className="activity-subject" dir="auto">
        {message?.headers.subject || TEXT.noSubject}
      </span>
    ),
  },
  {
    id: 'provider',
    header: TEXT.columns.provider,
    wideOnly: true,
    cell: (item) => item['recipient-provider'] ?? '–',
  },
  {
    id: 'domain',
    header: TEXT.columns.domain,
    wideOnly: true,
    cell: ({ domain }) => <bdi className="breakable">{domain.name}</bdi>,
  },
  {
    id: 'tags',
    header: TEXT.columns.tags,
    wideOnly: true,
    cell: ({ tags }) => <bdi className="breakable">{tags.join(', ') || '–'}</bdi>,
  },
  {
    id: 'detail',
    header: TEXT.columns.detail,
    cell: (item) => (
      <span className="activity-detail dimmed">
        <MachineMark bot={item['client-info']?.bot} /> {detailOf(item)}
      </span>
    ),
  },
  {
    id: 'time',
    header: TEXT.columns.time,
    align: 'end',
    width: '110px',
    cell: (item) => (
      <span className="activity-time">
        <Time at={item['@timestamp']} as="age" />
      </span>
    ),
  },
]

export function EventName({ item }: { item: LogItem }) {
  const { icon, color } = lookOf(item)
  return (
    <span className="event-name" data-tone={color}>
      <Icon name={icon} size={15} />
      {KIND_LABELS[kindOf(item)] ?? item.event}
    </span>
  )
}

/** A link to the message that the event is about; without one only `children`. */
export function MessageLink({ item, children }: { item: LogItem; children: ReactNode }) {
  const id = item.message?.headers['message-id']
  if (id === undefined) return children
  return (
    <Link
      className="row-link"
      to="/activity/$id"
      params={{ id }}
      search={item.recipient ? { recipient: item.recipient } : {}}
    >
      {children}
    </Link>
  )
}

const RecipientLink = ({ item }: { item: LogItem }) => (
  <span className="recipient-cell">
    <MessageLink item={item}>
      <bdi className="breakable">{item.recipient ?? TEXT.noRecipient}</bdi>
    </MessageLink>
    {item.recipient && <PersonLink address={item.recipient} />}
  </span>
)
