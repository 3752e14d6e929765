/**
 * Opens and clicks, from an authentic token to the event.
 *
 * The response does not wait for the event: a person waits for a page, and a crash can lose only the statistics of
 * its last moments, never mail or a decision of a recipient. So redirects work while the database is away; their
 * events are retried for half a minute. A stop waits for writes in progress.
 */

import type { Timer } from '../../base/time/clock.ts'
import type { Core } from '../../core.ts'
import type { KnownDeliveries } from '../../mail/stored/known-deliveries.ts'
import { type ClientInfo, clickedEvent, openedEvent, type Visit } from '../../watching/events/later-events.ts'
import { arrivedWithDelivery, type Behaviour, createBehaviour } from './behaviour.ts'
import { clientInfo } from './client-info.ts'
import { createMinuteCounts } from './counts.ts'
import type { Geo } from './geo.ts'
import type { Visitor } from './unsubscribe.ts'

/** The client that made a request. */
export interface Caller {
  address: string
  userAgent: string
}

interface Fetch {
  token: string
  deliveryId: string
  caller: Caller
}

export type Visits = ReturnType<typeof createVisits>

interface VisitsParts extends Pick<Core, 'store' | 'clock' | 'log' | 'recorder'> {
  known: KnownDeliveries
  geo: Geo
}

/** Per token: a person who opens a message again and again stays below it, and a loop cannot fill the database. */
export const EVENTS_PER_TOKEN_PER_MINUTE = 60
/** Per address, over all tokens: whole companies share one address. Image proxies, which exceed it, are exempt. */
export const EVENTS_PER_ADDRESS_PER_MINUTE = 6_000
/** Keys counted at a time; about 100 bytes each. */
const COUNTED_MAX = 50_000
/** Events that wait for the database; each holds about 2 KB. */
const WAITING_MAX = 5_000
/** Concurrent writes; further events wait. */
const WRITERS_MAX = 16
const RETRY_DELAYS_MS = [200, 1_000, 5_000, 10_000, 15_000]

type Work = Fetch & { url: string | null; visitor: Visitor; at: number }

export function createVisits(parts: VisitsParts) {
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
    geolocation: geo.locate(address),
  })

  function visit(fetch: Fetch, url: string | null): void {
    const { token, deliveryId, caller } = fetch
    if (!perToken.take(token)) return
    const visitor = visitorOf(caller)
    const isProxy = visitor.client.bot === 'apple' || visitor.client.bot === 'gmail'
    if (!isProxy && !perAddress.take(caller.address)) return
    const isMachine = behaviour.isMachine({ kind: url === null ? 'open' : 'click', token, deliveryId })
    const client = isMachine ? asBot(visitor.client) : visitor.client
    enqueue({ ...fetch, url, visitor: { ...visitor, client }, at: clock.now() })
  }

  function enqueue(work: Work): void {
    if (waiting.length >= WAITING_MAX) {
      dropped++
      if (dropped === 1)
        log.warn('opens and clicks arrive faster than they can be written; some are not counted')
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
    for (let work = waiting.shift(); work; work = waiting.shift()) await recordWithRetries(work)
    if (dropped > 0) log.warn({ dropped }, 'opens and clicks were not counted')
    dropped = 0
  }

  async function recordWithRetries(work: Work): Promise<void> {
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
    opened: (fetch: Fetch) => visit(fetch, null),
    clicked: ({ url, ...fetch }: Fetch & { url: string }) => visit(fetch, url),
    /** A HEAD, which writes no event but counts against the GET that follows. */
    headRequested: behaviour.headRequested,
    visitorOf,
    async stop(): Promise<void> {
      stopping = true
      for (const wake of sleeping) wake()
      await Promise.all(writers)
    },
  }
}

async function record({ store, known, recorder }: VisitsParts, work: Work): Promise<void> {
  const delivery = await known.find(work.deliveryId)
  // The link outlives what is known of its message (rule 9).
  if (!delivery) return
  const { about, recipient, recipientDomain, recipientProvider, deliveredAt } = delivery
  const withDelivery = arrivedWithDelivery(delivery, work.at)
  const client = withDelivery ? asBot(work.visitor.client) : work.visitor.client
  const visit: Visit = { ...work.visitor, client, recipientProvider, deliveredAt }
  const to = { recipient, recipientDomain }
  const event =
    work.url === null
      ? openedEvent(about, to, visit, work.at)
      : clickedEvent(about, to, { ...visit, url: work.url }, work.at)
  await store.commit(recorder.statements([event]))
}

const asBot = (client: ClientInfo): ClientInfo => (client.bot === '' ? { ...client, bot: 'generic' } : client)
