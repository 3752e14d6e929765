/**
 * Opens and clicks, from an authentic token to the event.
 *
 * The answer does not wait for the event: somebody waits for a page, and what a crash can take is the statistics
 * of its last moments, never mail or a decision of a recipient. A redirect so works while the database is away;
 * events are then tried again for half a minute. A stop waits for those under way.
 */
import type { Logger } from 'pino'
import type { Clock, Timer } from '../base/clock.ts'
import { type EventRecord, eventStatement } from '../events/event.ts'
import { type ClientInfo, clickedEvent, openedEvent, type Visit } from '../events/later-events.ts'
import type { KnownDeliveries } from '../messages/known-deliveries.ts'
import type { Statement, Store } from '../store/store.ts'
import { type Behaviour, cameWithDelivery, createBehaviour } from './behaviour.ts'
import { clientInfo } from './client-info.ts'
import { createMinuteCounts } from './counts.ts'
import type { Geo } from './geo.ts'
import type { Visitor } from './unsubscribe.ts'

/** Who made a request. */
export interface Caller {
  address: string
  userAgent: string
}

export interface Fetch {
  token: string
  deliveryId: string
  caller: Caller
}

export interface Visits {
  opened(fetch: Fetch): void
  clicked(fetch: Fetch & { url: string }): void
  /** A HEAD, which tells nothing but counts against the GET that follows. */
  asked(token: string): void
  visitorOf(caller: Caller): Visitor
  stop(): Promise<void>
}

export interface VisitsParts {
  store: Store
  known: KnownDeliveries
  geo: Geo
  clock: Clock
  log: Logger
  /** Webhook rows of these events, for their transaction. */
  outbox(events: readonly EventRecord[]): Statement[]
}

/** One token: a person who opens a mail again and again stays below it, a loop does not fill the database. */
export const EVENTS_PER_TOKEN_PER_MINUTE = 60
/** One address with many tokens: whole companies have one address. Image proxies, which have more, are let be. */
export const EVENTS_PER_ADDRESS_PER_MINUTE = 6_000
/** Counted at a time; some 100 bytes each. */
const COUNTED_MAX = 50_000
/** Events that wait for the database; each holds some 2 KB. */
const WAITING_MAX = 5_000
/** Written at a time; the others wait their turn. */
const WRITERS_MAX = 16
const RETRY_DELAYS_MS = [200, 1_000, 5_000, 10_000, 15_000]

type Work = Fetch & { url: string | null; visitor: Visitor; at: number }

export function createVisits(parts: VisitsParts): Visits {
  const { clock, log, geo } = parts
  const behaviour: Behaviour = createBehaviour(clock)
  const perToken = createMinuteCounts(clock, EVENTS_PER_TOKEN_PER_MINUTE, COUNTED_MAX)
  const perAddress = createMinuteCounts(clock, EVENTS_PER_ADDRESS_PER_MINUTE, COUNTED_MAX)
  const waiting: Work[] = []
  const sleeping = new Set<() => void>()
  let writers: Promise<void>[] = []
  let dropped = 0
  let stopping = false

  const visitorOf = ({ address, userAgent }: Caller): Visitor => ({
    ip: address,
    client: clientInfo(userAgent, address),
    geolocation: geo.placeOf(address),
  })

  function visit(fetch: Fetch, url: string | null): void {
    const { token, deliveryId, caller } = fetch
    if (!perToken.take(token)) return
    const visitor = visitorOf(caller)
    const isProxy = visitor.client.bot === 'apple' || visitor.client.bot === 'gmail'
    if (!isProxy && !perAddress.take(caller.address)) return
    const machine = behaviour.isMachine({ kind: url === null ? 'open' : 'click', token, deliveryId })
    const client = machine ? asMachine(visitor.client) : visitor.client
    enqueue({ ...fetch, url, visitor: { ...visitor, client }, at: clock.now() })
  }

  function enqueue(work: Work): void {
    if (waiting.length >= WAITING_MAX) {
      dropped++
      if (dropped === 1)
        log.warn('opens and clicks come faster than they can be written; some are not counted')
      return
    }
    waiting.push(work)
    if (writers.length >= WRITERS_MAX) return
    const writer = write().finally(() => {
      writers = writers.filter((other) => other !== writer)
    })
    writers.push(writer)
  }

  async function write(): Promise<void> {
    for (let work = waiting.shift(); work; work = waiting.shift()) await recordPatiently(work)
    if (dropped > 0) log.warn({ dropped }, 'opens and clicks were not counted')
    dropped = 0
  }

  async function recordPatiently(work: Work): Promise<void> {
    for (const delayMs of [...RETRY_DELAYS_MS, null]) {
      try {
        return await record(parts, work)
      } catch (error) {
        if (delayMs === null || stopping) {
          log.error({ err: error }, 'cannot write an open or click')
          return
        }
        await sleep(delayMs)
      }
    }
  }

  function sleep(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        timer.cancel()
        sleeping.delete(wake)
        resolve()
      }
      const timer: Timer = clock.setTimer(delayMs, wake)
      sleeping.add(wake)
    })
  }

  return {
    opened: (fetch) => visit(fetch, null),
    clicked: ({ url, ...fetch }) => visit(fetch, url),
    asked: behaviour.asked,
    visitorOf,
    async stop() {
      stopping = true
      for (const wake of sleeping) wake()
      await Promise.all(writers)
    },
  }
}

async function record({ store, known, outbox }: VisitsParts, work: Work): Promise<void> {
  const delivery = await known.find(work.deliveryId)
  // The link outlives what is known of its message (rule 9).
  if (!delivery) return
  const { about, recipient, recipientDomain, recipientProvider, deliveredAt } = delivery
  const withDelivery = cameWithDelivery(delivery, work.at)
  const client = withDelivery ? asMachine(work.visitor.client) : work.visitor.client
  const visit: Visit = { ...work.visitor, client, recipientProvider, deliveredAt }
  const to = { recipient, recipientDomain }
  const event =
    work.url === null
      ? openedEvent(about, to, visit, work.at)
      : clickedEvent(about, to, { ...visit, url: work.url }, work.at)
  await store.commit([eventStatement(event), ...outbox([event])])
}

const asMachine = (client: ClientInfo): ClientInfo =>
  client.bot === '' ? { ...client, bot: 'generic' } : client
