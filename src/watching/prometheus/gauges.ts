/** What is read anew for each scrape: the queue, lanes, jobs, free space, alerts that last. */
import { Counter, Gauge, type Registry } from 'prom-client'
import { VERSION } from '../../base/process/version.ts'
import type { Core } from '../../core.ts'
import { countQueue, type QueueCounts } from '../../mail/deliver/claim/queue-counts.ts'
import type { Delivery, LaneState } from '../../mail/deliver/contract.ts'
import type { JobReport } from '../../platform/jobs/job.ts'
import type { AlertHitRow } from '../../platform/store/schema.ts'
import type { Store } from '../../platform/store/store.ts'
import type { ContentCheckArea } from '../../sending/content-check/area.ts'
import type { RelayStates } from '../../sending/relays/relay-states.ts'
import type { EventSinksArea } from '../event-sinks/area.ts'

interface GaugeParts extends Pick<Core, 'config' | 'store' | 'space' | 'clock'> {
  delivery: Pick<Delivery, 'lanes'>
  jobs(): Promise<JobReport[]>
  relays: RelayStates
  content: Pick<ContentCheckArea, 'check' | 'scanners'>
  sinks: EventSinksArea['known']
  /** The operator's own alerts that last. */
  alerts(): Promise<AlertHitRow[]>
}

/** Sets all of them; part of a scrape. @throws when the database cannot be read */
type ReadGauges = () => Promise<void>

export function createGauges(registry: Registry, parts: GaugeParts): ReadGauges {
  const { config, store, space, clock } = parts
  const gauge = gaugesIn(registry)

  gauge('build_info', 'Always 1.', ['version', 'database', 'delivery'])
    .labels(VERSION, store.kind, config.delivery.kind)
    .set(1)
  const queue = gauge('queue_deliveries', 'Deliveries that are not done, of all processes.', ['state'])
  const oldestDue = gauge(
    'queue_oldest_due_seconds',
    'How long the oldest waiting delivery has been due; 0: none is.',
  )
  const posts = gauge('posts_waiting', 'POSTs of webhooks, routes and alerts that are not done.', ['kind'])
  const lanes = {
    waiting: gauge('lane_waiting_deliveries', 'Claimed by this process and not begun, by provider.', [
      'provider',
    ]),
    connections: gauge('lane_connections', 'SMTP connections in use, by provider.', ['provider']),
    backedOff: gauge('lanes_backed_off', 'Lanes slower than their set limits, by provider.', ['provider']),
  }
  const free = gauge('disk_free_bytes', 'Free space of the disk that the data folder is on.')
  const accepting = gauge('accepting_mail', '0: too little free space to accept mail, else 1.')
  const jobRun = gauge('job_last_run_timestamp_seconds', 'When the last run of a periodic job ended.', [
    'name',
  ])
  const jobFailed = gauge('job_failed', '1: the last run of the job failed, else 0.', ['name'])
  const alerts = gauge('alerts_active', "The operator's own alerts that last.", ['name'])
  const readRelays = relayGauges(registry, parts.relays)
  const readContentChecks = contentGauges(registry, parts.content)
  const readSinks = sinkGauges(registry, parts.sinks)

  async function readQueue(): Promise<void> {
    const { counts, oldestDueAt, kinds } = await queueOf(store)
    for (const [state, count] of Object.entries(counts)) queue.labels(state).set(count)
    oldestDue.set(oldestDueAt === null ? 0 : Math.max(0, clock.now() - oldestDueAt) / 1000)
    posts.reset()
    for (const [kind, count] of kinds) posts.labels(kind).set(count)
  }

  function readLanes(): void {
    const now = clock.now()
    for (const each of Object.values(lanes)) each.reset()
    for (const [provider, states] of Map.groupBy(parts.delivery.lanes(), ({ info }) => info.provider)) {
      const sum = (of: (state: LaneState) => number) => states.reduce((total, state) => total + of(state), 0)
      lanes.waiting.labels(provider).set(sum(({ waiting }) => waiting))
      lanes.connections.labels(provider).set(sum(({ running }) => running))
      lanes.backedOff.labels(provider).set(sum(({ backedOffUntil }) => ((backedOffUntil ?? 0) > now ? 1 : 0)))
    }
  }

  async function readJobs(): Promise<void> {
    for (const { name, lastEndedAt, lastError } of await parts.jobs()) {
      if (lastEndedAt !== null) jobRun.labels(name).set(lastEndedAt / 1000)
      jobFailed.labels(name).set(lastError === null ? 0 : 1)
    }
  }

  async function readAlerts(): Promise<void> {
    alerts.reset()
    for (const { name } of await parts.alerts()) alerts.labels(name).inc()
  }

  return async () => {
    free.set(space.freeBytes)
    accepting.set(space.enough ? 1 : 0)
    readLanes()
    readContentChecks()
    await Promise.all([readQueue(), readJobs(), readAlerts(), readRelays(), readSinks()])
  }
}

const gaugesIn =
  (registry: Registry) =>
  <const L extends string>(name: string, help: string, labelNames: readonly L[] = []) =>
    new Gauge({ name: `sendwright_${name}`, help, labelNames, registers: [registry] })

/** Relays count themselves: a removed one leaves no series behind. */
function relayGauges(registry: Registry, known: GaugeParts['relays']): ReadGauges {
  const gauge = gaugesIn(registry)
  const relays = {
    state: gauge('relay_open', '1: the relay gets mail; 0: it is closed, paused or tried again.', ['relay']),
    messages: new Counter({
      name: 'sendwright_relay_messages_total',
      help: 'Messages that a relay has accepted from this process, and attempts that it failed.',
      labelNames: ['relay', 'result'],
      registers: [registry],
    }),
  }
  return async () => {
    relays.state.reset()
    relays.messages.reset()
    for (const { name, state, pause, since_start } of await known.list()) {
      relays.state.labels(name).set(state.word === 'open' && pause === null ? 1 : 0)
      for (const [result, count] of Object.entries(since_start))
        relays.messages.labels(name, result).inc(count)
    }
  }
}

/** Content checks and scanners count themselves. */
function contentGauges(registry: Registry, { check, scanners }: GaugeParts['content']): () => void {
  const content = {
    checks: new Counter({
      name: 'sendwright_content_checks_total',
      help: 'Messages whose content was checked before they were sent, by what was done; unchecked: no scanner answered in time.',
      labelNames: ['result'],
      registers: [registry],
    }),
    answers: new Counter({
      name: 'sendwright_scanner_answers_total',
      help: 'Questions to rspamd, spamd and clamd that were answered, and that were not.',
      labelNames: ['scanner', 'directions', 'result'],
      registers: [registry],
    }),
  }
  return () => {
    content.checks.reset()
    content.answers.reset()
    for (const [result, count] of Object.entries(check?.results() ?? {}))
      content.checks.labels(result).inc(count)
    for (const { scanner, directions, answered, failed } of scanners.states()) {
      const of = [scanner, directions.join(' ')] as const
      content.answers.labels(...of, 'answered').inc(answered)
      content.answers.labels(...of, 'failed').inc(failed)
    }
  }
}

function sinkGauges(registry: Registry, list: GaugeParts['sinks']): ReadGauges {
  const gauge = gaugesIn(registry)
  const sinks = {
    behind: gauge('event_sink_behind_seconds', 'Age of the oldest event that an event sink has not taken.', [
      'sink',
    ]),
    failing: gauge('event_sink_failing', '1: the event sink takes nothing, else 0.', ['sink']),
    events: new Counter({
      name: 'sendwright_event_sink_events_total',
      help: 'Events that an event sink has taken, and that it missed because it had taken nothing for too long.',
      labelNames: ['sink', 'result'],
      registers: [registry],
    }),
  }
  return async () => {
    const rows = await list.list()
    const behind = await Promise.all(rows.map((row) => list.behindMs(row)))
    for (const each of Object.values(sinks)) each.reset()
    for (const [index, { name, failing_since, sent, skipped }] of rows.entries()) {
      sinks.behind.labels(name).set((behind[index] as number) / 1000)
      sinks.failing.labels(name).set(failing_since === null ? 0 : 1)
      sinks.events.labels(name, 'sent').inc(Number(sent))
      sinks.events.labels(name, 'skipped').inc(Number(skipped))
    }
  }
}

interface Waiting {
  counts: QueueCounts
  /** Unix milliseconds; null: nothing waits. */
  oldestDueAt: number | null
  kinds: Map<string, number>
}

/** The conditions on `state` are literals, so that the partial indexes are used. */
async function queueOf(store: Store): Promise<Waiting> {
  const read = (sql: string) => store.read({ sql, values: [] })
  const [counts, oldest, kinds] = await Promise.all([
    countQueue(store),
    read(`SELECT due_at FROM deliveries WHERE state IN ('scheduled', 'queued') ORDER BY due_at, id LIMIT 1`),
    read('SELECT kind, count(*) AS count FROM outgoing_posts GROUP BY kind'),
  ])
  const due = oldest[0]?.['due_at']
  return {
    counts,
    oldestDueAt: due === undefined ? null : Number(due),
    kinds: new Map(kinds.map((row) => [String(row['kind']), Number(row['count'])])),
  }
}
