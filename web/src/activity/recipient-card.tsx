/** One recipient of a message: where it is, why, what happened, and the SMTP dialogues. */
import { Badge, Button, Skeleton, Timeline } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { useId, useState } from 'react'
import { Icon } from '../look/icons.tsx'
import { DialogueLines } from '../shared/mail/dialogue-lines.tsx'
import { lookOf } from '../shared/mail/event-look.ts'
import { Failure } from '../shared/page/states.tsx'
import { Time } from '../shared/time.tsx'
import type { DeliveryView, LogItem } from './activity-api.ts'
import { withLocalTimes } from './local-times.ts'
import { MachineMark } from './machine-mark.tsx'
import { dialoguesQuery, rulesQuery, timelineQuery } from './message-queries.ts'
import { STATE_LABELS, MESSAGE_TEXT as TEXT } from './text.ts'

export function RecipientCard(props: { messageId: string; delivery: DeliveryView; isOpen: boolean }) {
  const { messageId, delivery, isOpen } = props
  const navigate = useNavigate({ from: '/activity/$id' })
  const bodyId = useId()
  const { label, color } = STATE_LABELS[delivery.state] ?? { label: delivery.state, color: 'gray' }
  const toggle = () =>
    void navigate({
      replace: true,
      resetScroll: false,
      search: (search) => ({ ...search, recipient: isOpen ? 'none' : delivery.recipient }),
    })
  return (
    <article className="panel" aria-label={delivery.recipient}>
      <button
        type="button"
        className="recipient-head row-link"
        aria-expanded={isOpen}
        aria-controls={bodyId}
        onClick={toggle}
      >
        <Badge variant="light" tt="none" fw={580} size="lg" color={color}>
          {label}
        </Badge>
        <bdi className="recipient-address">{delivery.recipient}</bdi>
        <span className="grow" />
        <span className="dimmed">
          <Time at={delivery.updated_at} as="age" />
        </span>
      </button>
      <div id={bodyId} className="recipient-body" hidden={!isOpen}>
        {isOpen && <RecipientDetails messageId={messageId} delivery={delivery} color={color} />}
      </div>
    </article>
  )
}

function RecipientDetails(props: { messageId: string; delivery: DeliveryView; color: string }) {
  const { messageId, delivery, color } = props
  const timeline = useQuery(timelineQuery(messageId, delivery.recipient))
  return (
    <>
      <Why delivery={delivery} color={color} failed={lastFailure(timeline.data)} />
      <Facts delivery={delivery} />
      <PersonHint address={delivery.recipient} />
      <h2>{TEXT.timeline}</h2>
      <Events timeline={timeline} />
      {delivery.attempts > 0 && <Dialogues delivery={delivery} />}
    </>
  )
}

const PersonHint = ({ address }: { address: string }) => (
  <p>
    <Link to="/people/$address" params={{ address }} search={{}}>
      {TEXT.person}
    </Link>
  </p>
)

/** A message that is no longer stored: its events alone. */
export function LoggedRecipient({ id, recipient }: { id: string; recipient: string }) {
  const timeline = useQuery(timelineQuery(id, recipient))
  const failed = lastFailure(timeline.data)
  return (
    <article className="panel panel-body" aria-label={recipient}>
      <bdi className="recipient-address">{recipient}</bdi>
      <PersonHint address={recipient} />
      {failed && <Meaning failed={failed} />}
      <Events timeline={timeline} />
    </article>
  )
}

const lastFailure = (events: readonly LogItem[] | undefined) =>
  events?.findLast(({ event }) => event === 'failed')

/** The answer to the question that the page is opened for. */
function Why(props: { delivery: DeliveryView; color: string; failed: LogItem | undefined }) {
  const { delivery, color, failed } = props
  const isGood = delivery.state === 'delivered'
  return (
    <div className="recipient-why" data-tone={color}>
      <p>{withLocalTimes(delivery.reason.sentence)}</p>
      {!isGood && failed && <Meaning failed={failed} />}
    </div>
  )
}

/** What the reply of the server means, by the rule that recognised it. */
function Meaning({ failed }: { failed: LogItem }) {
  const ruleId = failed['i-classification-rule-id']
  const { data: rules } = useQuery({ ...rulesQuery, enabled: ruleId !== undefined })
  const rule = ruleId === undefined ? undefined : rules?.[ruleId]
  if (rule === undefined) return null
  return (
    <p className="dimmed">
      <strong>{TEXT.meaning}:</strong> {rule.explanation}
    </p>
  )
}

function Facts({ delivery }: { delivery: DeliveryView }) {
  const waits = delivery.next_attempt_at !== null
  return (
    <dl className="recipient-facts">
      {waits && delivery.next_attempt_at && delivery.reason.code !== 'paused' && (
        <div>
          <dt>{TEXT.next}</dt>
          <dd>
            <Time at={delivery.next_attempt_at} as="age" />
          </dd>
        </div>
      )}
      {waits && (
        <div>
          <dt>{TEXT.until}</dt>
          <dd>
            <Time at={delivery.expires_at} />
          </dd>
        </div>
      )}
      <div>
        <dt>{TEXT.attempts}</dt>
        <dd>{delivery.attempts}</dd>
      </div>
    </dl>
  )
}

function Events({ timeline }: { timeline: ReturnType<typeof useQuery<LogItem[]>> }) {
  const { data, error, refetch } = timeline
  if (data === undefined)
    return error === null ? (
      <Skeleton height={80} role="status" aria-label="Loading" />
    ) : (
      <Failure title={TEXT.timeline} error={error} retry={() => refetch()} />
    )
  if (data.length === 0) return <p className="dimmed">{TEXT.noEvents}</p>
  return (
    <Timeline bulletSize={26} lineWidth={2} active={data.length}>
      {data.map((event) => {
        const { icon, color, title } = lookOf(event)
        return (
          <Timeline.Item key={event.id} bullet={<Icon name={icon} size={14} />} color={color} title={title}>
            <EventLine event={event} />
          </Timeline.Item>
        )
      })}
    </Timeline>
  )
}

function EventLine({ event }: { event: LogItem }) {
  const status = event['delivery-status']
  const client = event['client-info']
  const facts = [
    event.method && TEXT.by(event.method.toUpperCase()),
    status?.['mx-host'] && `at ${status['mx-host']}`,
    event.envelope?.['sending-ip'] && status && `from ${event.envelope['sending-ip']}`,
    status?.tls !== undefined && (status.tls ? 'encrypted' : 'not encrypted'),
    status && status['attempt-no'] > 1 && `attempt ${status['attempt-no']}`,
    status?.['session-seconds'] !== undefined && `${status['session-seconds'].toFixed(2)} s`,
    client && [client['client-name'], client['client-os']].filter(Boolean).join(' on '),
    event.geolocation && [event.geolocation.city, event.geolocation.country].filter(Boolean).join(', '),
    event.event === 'clicked' || event.event === 'opened' ? event.ip : undefined,
  ].filter(Boolean)
  const words = status
    ? status.message || status.description
    : event.event === 'rejected'
      ? event.reason
      : event.url
  return (
    <div className="event-line">
      <span className="dimmed">
        <Time at={event['@timestamp']} />
        {facts.length > 0 && ` · ${facts.join(' · ')}`} <MachineMark bot={client?.bot} />
      </span>
      {words && (
        <code className="event-quote">
          {status ? `${status.code} ` : ''}
          <bdi>{words}</bdi>
        </code>
      )}
    </div>
  )
}

function Dialogues({ delivery }: { delivery: DeliveryView }) {
  const [isShown, setShown] = useState(false)
  const { data, error, refetch } = useQuery({
    ...dialoguesQuery(delivery.id, delivery.attempts),
    enabled: isShown,
  })
  return (
    <>
      <Button
        mt="md"
        size="xs"
        variant="default"
        aria-expanded={isShown}
        leftSection={<Icon name="list" size={15} />}
        onClick={() => setShown(!isShown)}
      >
        {TEXT.dialogue}
      </Button>
      {isShown && (
        <div className="dialogues">
          {error && <Failure title={TEXT.dialogue} error={error} retry={() => refetch()} />}
          {data?.length === 0 && <p className="dimmed">{TEXT.noDialogue}</p>}
          {data?.map((dialogue) => (
            <DialogueLines
              key={dialogue.attempt}
              title={TEXT.attempt(dialogue.attempt)}
              lines={dialogue.lines}
            >
              <span>{dialogue.mx_host}</span>
              <span className="grow" />
              <Time at={dialogue.started_at} />
            </DialogueLines>
          ))}
        </div>
      )}
    </>
  )
}
