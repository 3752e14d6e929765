/** `sendwright events`: what happened to mail, and what happens now. */
import { setTimeout as sleep } from 'node:timers/promises'
import { printableLine } from '../../base/printable.ts'
import { NotReached, Refused, type ServiceClient } from '../local/client.ts'
import { CommandError, lists, parseFlags, switches, texts, wrongArguments } from '../usage.ts'
import { limitOf } from './queue.ts'
import { COMMON, COMMON_USAGE, clientFor, type Item, itemsOf, print, printJson, when } from './service.ts'

export const usage = `sendwright events [FILTER] [--last TIME] [--limit NUMBER] [--follow] [--json]

Prints the last events of the account, oldest first, 100 of them or --limit. With --follow it goes on with each new event until it is
stopped, also after a restart of the service, and --json prints a line of JSON for each.

  --last TIME   since 30m, 2h or 1d ago; default 1d, with --follow only new ones

FILTER is none or more of
  --event NAME...       accepted, delivered, failed, opened, clicked, unsubscribed, complained, rejected, stored
  --domain NAME         sending domain
  --recipient ADDRESS, --recipient-domain NAME, --subject TEXT, --message ID, --tag TAG
  --severity temporary|permanent
${COMMON_USAGE}`

const PATH = '/v1/analytics/logs'
const PAGE = 100
const STREAM_PATH = '/sendwright/v1/events/stream'
const RETRY_MS = 1_000

/** Options that select events, and their attribute of `POST /v1/analytics/logs`. */
const ATTRIBUTES = {
  domain: ['domain', '='],
  recipient: ['recipient', '='],
  'recipient-domain': ['recipient_domain', '='],
  subject: ['subject', 'contains'],
  message: ['message_id', '='],
  tag: ['tag', '='],
  severity: ['severity', '='],
} as const

type Filter = keyof typeof ATTRIBUTES
const FILTERS = Object.keys(ATTRIBUTES) as Filter[]

export interface EventQuery {
  events: readonly string[]
  filters: Readonly<Partial<Record<Filter, string | undefined>>>
}

export async function run(args: string[]): Promise<void> {
  const values = parseFlags('events', args, {
    ...COMMON,
    ...texts(...FILTERS, 'last', 'limit'),
    ...lists('event'),
    ...switches('follow'),
  })
  const client = clientFor(values)
  const query = { events: values.event ?? [], filters: values }
  if (values.follow) {
    const since = Date.now() - (values.last === undefined ? 0 : msOf(values.last))
    for await (const event of follow(client, query, since))
      if (values.json) printJson(event)
      else print(eventLine(event))
    return
  }
  const events = await lastEvents(client, query, values.last ?? '1d', limitOf(values.limit, 'events'))
  if (values.json) printJson(events)
  else print(events.map(eventLine).join('') || 'No events.\n')
}

const UNIT_MS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 }

/** @throws CommandError */
function msOf(text: string): number {
  const [, count = '', unit = ''] = /^([1-9]\d{0,5})([mhd])$/.exec(text) ?? []
  const ms = Number(count) * (UNIT_MS[unit] ?? 0)
  if (ms > 0) return ms
  throw wrongArguments('events', `--last: "${text}" is not a time such as 30m, 2h or 1d`)
}

function bodyOf({ events, filters }: EventQuery): Item {
  const entries = FILTERS.flatMap((name) => {
    const [attribute, comparator] = ATTRIBUTES[name]
    const value = filters[name]
    if (value === undefined) return []
    const text = name === 'message' ? value.replace(/^<|>$/g, '') : value
    return [{ attribute, comparator, values: [{ label: text, value: text }] }]
  })
  return {
    ...(events.length > 0 && { events }),
    ...(entries.length > 0 && { filter: { AND: entries } }),
  }
}

/** The last ones, oldest first. */
export async function lastEvents(
  client: ServiceClient,
  query: EventQuery,
  last: string,
  max: number,
): Promise<Item[]> {
  const found: Item[] = []
  const start = new Date(Date.now() - msOf(last)).toUTCString()
  for (let token: string | undefined; found.length < max; ) {
    const pagination = { sort: 'timestamp:desc', limit: PAGE, ...(token !== undefined && { token }) }
    const answer = await client.call('POST', PATH, { ...bodyOf(query), start, pagination })
    found.push(...itemsOf(answer))
    token = nextOf(answer)
    if (token === undefined) break
  }
  return found.slice(0, max).reverse()
}

/**
 * Events from a time on, for ever, each once, also while the service starts again: the stream goes on after the last event that
 * was had. Until there is one, the list is read behind the opening of the stream, and what both have comes once.
 */
async function* follow(client: ServiceClient, query: EventQuery, sinceMs: number): AsyncGenerator<Item> {
  const listed = new Set<unknown>()
  let wasOpen = false
  for (let last = ''; ; await sleep(RETRY_MS)) {
    try {
      const stream = await client.stream(streamPath(query), last)
      wasOpen = true
      if (last === '')
        for await (const item of listedSince(client, query, sinceMs)) {
          if (!listed.has(item['id'])) yield item
          listed.add(item['id'])
        }
      for await (const { id, data } of stream) {
        for (const item of itemsOf(data)) if (!listed.has(item['id'])) yield item
        last = id || last
        // With its id it leaves nothing out.
        if (data['skipped'] === true) break
      }
    } catch (error) {
      if (!wasOpen || (error instanceof CommandError && !isPassing(error))) throw error
    }
  }
}

/** The service is not there, or refuses for now. */
const isPassing = (error: CommandError) =>
  error instanceof NotReached || (error instanceof Refused && (error.status === 429 || error.status >= 500))

async function* listedSince(client: ServiceClient, query: EventQuery, sinceMs: number): AsyncGenerator<Item> {
  const start = new Date(sinceMs).toUTCString()
  let token: string | undefined
  do {
    const pagination = { sort: 'timestamp:asc', limit: PAGE, ...(token !== undefined && { token }) }
    const answer = await client.call('POST', PATH, { ...bodyOf(query), start, pagination })
    yield* itemsOf(answer)
    token = nextOf(answer)
  } while (token !== undefined)
}

function streamPath(query: EventQuery): string {
  const { filter } = bodyOf(query)
  const search = new URLSearchParams(query.events.map((name): [string, string] => ['events', name]))
  if (filter !== undefined) search.set('filter', JSON.stringify(filter))
  return `${STREAM_PATH}?${search}`
}

const nextOf = (answer: Item): string | undefined => (answer['pagination'] as { next?: string }).next

/** One event on a line: when, what, who, and for what failed why. */
export function eventLine(event: Item): string {
  const status = event['delivery-status'] as Item | undefined
  const client = event['client-info'] as Item | undefined
  const reply = [status?.['code'], status?.['message'] || status?.['description']].filter(Boolean).join(' ')
  const subject = (event['message'] as { headers?: { subject?: string } } | undefined)?.headers?.subject
  const words = [
    when(event['@timestamp']),
    String(event['event']).padEnd(12),
    event['recipient'],
    event['severity'] && `${event['severity']}: ${event['reason']}`,
    reply,
    event['url'],
    client && [client['client-name'], client['client-os']].filter(Boolean).join(' on '),
    subject && `"${subject}"`,
  ]
  return `${printableLine(words.filter(Boolean).join('  '))}\n`
}
