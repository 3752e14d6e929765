import { Loader, Timeline } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import type { CapturedMessage, MailEvent } from '../../api.ts'
import { clockTime, exactTime } from '../../base/format.ts'
import { Icon } from '../../look/icons.tsx'
import { eventsQuery } from '../../queries.ts'
import { lookOf } from '../../shared/mail/event-look.ts'
import { PanelNote } from './message-parts.tsx'

/** The events of this message, oldest first. */
export function MessageEvents({ message }: { message: CapturedMessage }) {
  const { data, error, isEnabled } = useQuery(eventsQuery(message.domain, message.message_id))
  if (!isEnabled)
    return <PanelNote>This message belongs to no domain of the account: it has no events.</PanelNote>
  if (error) return <PanelNote>The events cannot be read: {error.message}</PanelNote>
  if (data === undefined) return <Loader m="md" size="sm" aria-label="Loading events" />
  const events = eventsOf(data, message.envelope.to)
  if (events.length === 0) return <PanelNote>No events yet.</PanelNote>
  return (
    <Timeline className="events" bulletSize={26} lineWidth={2} active={events.length}>
      {events.map((event) => {
        const { icon, color, title } = lookOf(event)
        return (
          <Timeline.Item key={event.id} bullet={<Icon name={icon} size={14} />} color={color} title={title}>
            <EventText event={event} />
          </Timeline.Item>
        )
      })}
    </Timeline>
  )
}

/** A message-id is shared by all recipients of a message; a captured message is the copy of some of them. */
function eventsOf(events: readonly MailEvent[], recipients: readonly string[]): MailEvent[] {
  const own = new Set(recipients.map((address) => address.toLowerCase()))
  return events
    .filter(({ recipient }) => recipient === undefined || own.has(recipient.toLowerCase()))
    .sort((a, b) => a.timestamp - b.timestamp)
}

function EventText({ event }: { event: MailEvent }) {
  const ms = event.timestamp * 1000
  const status = event['delivery-status']
  const facts = [
    event.recipient,
    event.method && `by ${event.method.toUpperCase()}`,
    status?.['mx-host'] && `at ${status['mx-host']}`,
    status && (status.tls ? 'encrypted' : 'not encrypted'),
    status && status['attempt-no'] > 1 && `attempt ${status['attempt-no']}`,
    status?.['session-seconds'] !== undefined && `${status['session-seconds'].toFixed(2)} s`,
    status?.['retry-seconds'] !== undefined &&
      `next try after ${Math.round(status['retry-seconds'] / 60)} min`,
    event.ip,
  ].filter(Boolean)
  const words = status?.message || status?.description || event.reject?.reason || event.url
  return (
    <div className="event-text">
      <span className="dimmed">
        <time dateTime={new Date(ms).toISOString()} title={exactTime(ms)}>
          {clockTime(ms)}
        </time>
        {facts.length > 0 && ` · ${facts.join(' · ')}`}
      </span>
      {words && (
        <code className="event-reply">
          {status ? `${status.code} ` : ''}
          <bdi>{words}</bdi>
        </code>
      )}
    </div>
  )
}
