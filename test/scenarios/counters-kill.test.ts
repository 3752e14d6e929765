/** Statistics are exact after any number of `kill -9`: one event changes each counter once (tags-stats.md section 6). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { SPLIT_NUMBERS, UNIT_NUMBERS } from '../../src/metrics/splits.ts'
import { openSqlite } from '../../src/store/sqlite.ts'
import { post, queueTotals } from '../support/crash-rig.ts'
import { eventually, ownAddress } from '../support/service.ts'
import { AUTHORIZATION, type ServiceProcess, startProcess } from '../support/service-process.ts'
import { temporaryFolder } from '../support/stores.ts'

const KILLS = 3
const PER_ROUND = 40

async function totals(service: ServiceProcess): Promise<{ accepted: number; delivered: number }> {
  const answer = await fetch(`${service.url}/v3/stats/total?event=accepted&event=delivered&duration=1m`, {
    headers: { authorization: AUTHORIZATION },
  })
  const { stats } = (await answer.json()) as { stats: Record<'accepted' | 'delivered', { total: number }>[] }
  const sum = (event: 'accepted' | 'delivered') => stats.reduce((all, entry) => all + entry[event].total, 0)
  return { accepted: sum('accepted'), delivered: sum('delivered') }
}

test('counters agree with the events after the process was killed while it counted', async (t) => {
  const host = ownAddress()
  const folder = await temporaryFolder(t)
  const start = () => startProcess(host, { SENDWRIGHT_DATA: folder, SENDWRIGHT_SMTP_PORT: '0' })
  for (let kill = 0; kill < KILLS; kill++) {
    const service = await start()
    const posts = Array.from({ length: PER_ROUND }, (_, at) =>
      post(service, { to: `user${at}@example.org`, subject: `${kill}.${at}`, text: 'Hi.' }),
    )
    await Promise.race(posts)
    // At some moment within the polling interval of counting; which one does not matter.
    await sleep(200 * kill)
    await service.end('SIGKILL')
    await Promise.all(posts)
  }
  const last = await start()
  try {
    await eventually('the queue is empty', async () => (await queueTotals(last)) === 0)
    let before = -1
    // The remaining events are counted within seconds; then the figures are stable.
    await eventually('the counters stand still', async () => {
      const { accepted, delivered } = await totals(last)
      const still = accepted + delivered === before && accepted > 0 && accepted === delivered
      before = accepted + delivered
      if (!still) await sleep(1_500)
      return still
    })
  } finally {
    await last.end('SIGTERM')
  }
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
    t.diagnostic(`${KILLS} kills, ${logged['accepted']} messages`)
    assert.ok((logged['accepted'] ?? 0) >= KILLS)
    assert.deepEqual(
      { accepted: sum('accepted_outgoing'), delivered: sum('delivered_smtp') },
      { accepted: logged['accepted'], delivered: logged['delivered'] },
    )
  } finally {
    await store.close()
  }
})
