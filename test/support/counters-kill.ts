/** Kills a service while it counts, and compares its figures with its events. */
import { setTimeout as sleep } from 'node:timers/promises'
import { openSqlite } from '../../src/platform/store/sqlite/sqlite.ts'
import { SPLIT_NUMBERS, UNIT_NUMBERS } from '../../src/watching/metrics/storage/splits.ts'
import { post, queueTotals } from './crash-rig.ts'
import { eventually, ownAddress } from './service.ts'
import { AUTHORIZATION, type ServiceProcess, startProcess } from './service-process.ts'

export interface KillPlan {
  /** Of the data. */
  folder: string
  /** One kill after each: how long after the first answer, in milliseconds. */
  pausesMs: readonly number[]
  messagesPerRound: number
}

interface Sums {
  accepted: number
  delivered: number
}

/** What the events say and what the figures do, once all is delivered and counted. */
export async function killWhileCounting(plan: KillPlan): Promise<{ logged: Sums; counted: Sums }> {
  const { folder, pausesMs, messagesPerRound } = plan
  const host = ownAddress()
  const start = () => startProcess(host, { SENDWRIGHT_DATA: folder, SENDWRIGHT_SMTP_PORT: '0' })
  for (const [kill, pauseMs] of pausesMs.entries()) {
    const service = await start()
    const posts = Array.from({ length: messagesPerRound }, (_, at) =>
      post(service, { to: `user${at}@example.org`, subject: `${kill}.${at}`, text: 'Hi.' }),
    )
    await Promise.race(posts)
    await sleep(pauseMs)
    await service.end('SIGKILL')
    await Promise.all(posts)
  }
  const last = await start()
  try {
    await eventually('the queue is empty', async () => (await queueTotals(last)) === 0)
    let before = -1
    // The remaining events are counted within seconds; then the figures are stable.
    await eventually('the counters stand still', async () => {
      const { accepted, delivered } = await shown(last)
      const still = accepted + delivered === before && accepted > 0 && accepted === delivered
      before = accepted + delivered
      if (!still) await sleep(1_500)
      return still
    })
  } finally {
    await last.end('SIGTERM')
  }
  return compared(folder)
}

async function shown(service: ServiceProcess): Promise<Sums> {
  const answer = await fetch(`${service.url}/v3/stats/total?event=accepted&event=delivered&duration=1m`, {
    headers: { authorization: AUTHORIZATION },
  })
  const { stats } = (await answer.json()) as { stats: Record<'accepted' | 'delivered', { total: number }>[] }
  const sum = (event: 'accepted' | 'delivered') => stats.reduce((all, entry) => all + entry[event].total, 0)
  return { accepted: sum('accepted'), delivered: sum('delivered') }
}

async function compared(folder: string): Promise<{ logged: Sums; counted: Sums }> {
  const store = await openSqlite(folder)
  try {
    const events = await store.db
      .selectFrom('events')
      .select(['event', (of) => of.fn.countAll().as('count')])
      .where('event', 'in', ['accepted', 'delivered'])
      .groupBy('event')
      .execute()
    const logged = Object.fromEntries(events.map(({ event, count }) => [event, Number(count)]))
    const rows = await store.db
      .selectFrom('figures')
      .innerJoin('figure_scopes', 'figure_scopes.no', 'figures.scope')
      .selectAll('figures')
      .where('domain_name', '=', '')
      .where('split', '=', SPLIT_NUMBERS.none)
      .where('unit', '=', UNIT_NUMBERS.hour)
      .execute()
    const sum = (name: 'accepted_outgoing' | 'delivered_smtp') =>
      rows.reduce((all, row) => all + Number(row[name]), 0)
    return {
      logged: { accepted: logged['accepted'] ?? 0, delivered: logged['delivered'] ?? 0 },
      counted: { accepted: sum('accepted_outgoing'), delivered: sum('delivered_smtp') },
    }
  } finally {
    await store.close()
  }
}
