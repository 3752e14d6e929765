/** `sendwright trace`: all that is known of one message, now or until it is done. */
import { setTimeout as sleep } from 'node:timers/promises'
import { printableLine } from '../../base/printable.ts'
import type { ServiceClient } from '../local/client.ts'
import { Refused } from '../local/client.ts'
import { CommandError, parseWords, switches, wrongArguments } from '../usage.ts'
import { eventLine, lastEvents } from './events.ts'
import {
  COMMON,
  COMMON_USAGE,
  clientFor,
  type Item,
  itemsOf,
  pagesOf,
  part,
  print,
  printJson,
  table,
  when,
} from './service.ts'

export const usage = `sendwright trace MESSAGE-ID [--follow] [--json]

Shows one message: each recipient with state and reason, the events, and the dialogues with servers that were kept
(SENDWRIGHT_TRANSCRIPTS). With --follow it prints what happens until every recipient is done.
${COMMON_USAGE}`

const RECIPIENTS_MAX = 1_000
/** Dialogues are asked for one by one. */
const DIALOGUES_MAX = 20
const EVENTS_MAX = 1_000
/** As long as events are kept by default. */
const EVENTS_SINCE = '30d'
const POLL_MS = 1_000
const WAITING = ['scheduled', 'queued', 'sending']

export async function run(args: string[]): Promise<void> {
  const { values, positionals } = parseWords('trace', args, { ...COMMON, ...switches('follow') })
  const [given, ...more] = positionals
  if (given === undefined || more.length > 0) throw wrongArguments('trace', 'Name one Message-Id')
  if (values.follow && values.json) throw wrongArguments('trace', '--follow prints no JSON')
  const messageId = given.replace(/^<|>$/g, '')
  const client = clientFor(values)
  const deliveries = await deliveriesOf(client, messageId)
  const events = await eventsOf(client, messageId)
  if (deliveries.length + events.length === 0)
    throw new CommandError(`No message ${given} is known to this account.`)
  const dialogues = await dialoguesOf(client, deliveries)
  if (values.json) return printJson({ message_id: messageId, deliveries, events, dialogues })
  print(deliveriesTable(deliveries))
  print(`\n${events.map(eventLine).join('')}`)
  for (const { recipient, attempts } of dialogues)
    for (const attempt of attempts) print(`\n${dialogueText(recipient, attempt)}`)
  if (values.follow) await follow(client, messageId, deliveries, events)
}

/** None: the message is not kept any more, or never was. */
async function deliveriesOf(client: ServiceClient, messageId: string): Promise<Item[]> {
  try {
    const path = `/sendwright/v1/messages/${part(messageId)}/deliveries?limit=1000`
    return await pagesOf(client, path, RECIPIENTS_MAX)
  } catch (error) {
    if (error instanceof Refused && error.status === 404) return []
    throw error
  }
}

const eventsOf = (client: ServiceClient, message: string) =>
  lastEvents(client, { events: [], filters: { message } }, EVENTS_SINCE, EVENTS_MAX)

interface Dialogue {
  recipient: string
  attempts: Item[]
}

async function dialoguesOf(client: ServiceClient, deliveries: readonly Item[]): Promise<Dialogue[]> {
  const found: Dialogue[] = []
  for (const { id, recipient } of deliveries.slice(0, DIALOGUES_MAX)) {
    const path = `/sendwright/v1/deliveries/${part(String(id))}/transcript`
    const attempts = itemsOf(await client.call('GET', path))
    if (attempts.length > 0) found.push({ recipient: String(recipient), attempts })
  }
  return found
}

function deliveriesTable(deliveries: readonly Item[]): string {
  const rows = deliveries.map((one) => [
    one['recipient'],
    one['state'],
    one['attempts'],
    when(one['next_attempt_at']),
    (one['reason'] as Item)['sentence'],
  ])
  return table(['RECIPIENT', 'STATE', 'ATTEMPTS', 'NEXT', 'WHY'], rows, 'The message is not kept any more.')
}

function dialogueText(recipient: string, attempt: Item): string {
  const head = `Attempt ${attempt['attempt']} for ${recipient} at ${when(attempt['started_at'])}, ${attempt['mx_host'] ?? 'no server reached'}`
  const lines = (attempt['lines'] as Item[]).map(
    ({ ms, direction, line }) => `${String(ms).padStart(7)} ms ${direction === 'sent' ? '>' : '<'} ${line}`,
  )
  return [head, ...lines].map((line) => `${printableLine(line)}\n`).join('')
}

/** Prints each change of a recipient's reason and each new event, until nothing waits. */
async function follow(
  client: ServiceClient,
  messageId: string,
  before: readonly Item[],
  printed: readonly Item[],
): Promise<void> {
  const seen = new Set(printed.map(({ id }) => id))
  const sentences = new Map(before.map(({ id, reason }) => [id, (reason as Item)['sentence']]))
  for (let deliveries = before; deliveries.some(({ state }) => WAITING.includes(String(state))); ) {
    await sleep(POLL_MS)
    deliveries = await deliveriesOf(client, messageId)
    for (const { id, recipient, reason } of deliveries) {
      const { sentence } = reason as Item
      if (sentences.get(id) === sentence) continue
      sentences.set(id, sentence)
      print(`${when(new Date().toISOString())}  ${printableLine(`${recipient}  ${sentence}`)}\n`)
    }
    for (const event of await eventsOf(client, messageId))
      if (!seen.has(event['id'])) {
        seen.add(event['id'])
        print(eventLine(event))
      }
  }
}
