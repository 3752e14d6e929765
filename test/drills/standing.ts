/**
 * Two subaccounts send 20 messages a second each under the policy `standard`, one of them with 6 % to mailboxes that do not exist.
 * It is slowed, then held within five minutes; meanwhile the time from the request to the sink of the other's mail is compared.
 */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import type { DrillReport } from '../../scripts/drill.ts'
import { ownAddress } from '../support/service.ts'
import { startProcess } from '../support/service-process.ts'
import { newSender, pickySink } from '../support/standing.ts'

export const title =
  'A sender with 6 % bounces is slowed, then held within five minutes; the other does not notice'

const PER_SECOND = 20
const BAD_EVERY = 17 // 5.9 %
const HELD_MAX_MS = 300_000
/** After the hold, for the comparison. */
const AFTER_MS = 30_000

export async function run(report: DrillReport): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'sendwright-drill-'))
  const ends: (() => unknown)[] = []
  const sink = await pickySink({ after: (end) => void ends.push(end as () => unknown) })
  const service = await startProcess(ownAddress(), {
    SENDWRIGHT_DATA: folder,
    SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
  })
  try {
    const verify = async (name: string) => {
      const database = new DatabaseSync(join(folder, 'sendwright.db'), { timeout: 5_000 })
      database.prepare("UPDATE domains SET verified = 1, state = 'active' WHERE name = ?").run(name)
      database.close()
      await sleep(6_000) // cache of domains
    }
    const bad = await newSender(service, sink, 'bad', verify)
    const good = await newSender(service, sink, 'good', verify)
    const begun = performance.now()
    const reached = new Map<string, number>()
    /** When each message of the other was asked for; its number is in the subject. */
    const asked: number[] = []
    let isDone = false
    const sending = (async () => {
      const posts: Promise<void>[] = []
      for (let number = 0; !isDone; number++) {
        asked.push(Date.now())
        posts.push(bad.send(service, number % BAD_EVERY === 0), good.send(service, false))
        await sleep(Math.max(0, begun + ((number + 1) * 1000) / PER_SECOND - performance.now()))
      }
      await Promise.all(posts)
    })()
    while (!reached.has('held') && performance.now() - begun < HELD_MAX_MS) {
      await sleep(1_000)
      const { state, stopped } = await bad.standing(service)
      if (state === 'good' || reached.has(state)) continue
      reached.set(state, Math.round((performance.now() - begun) / 1000))
      report.figure(`${state} after`, reached.get(state) ?? 0, 's')
      report.note(`${stopped[0]?.reason}`)
    }
    await sleep(AFTER_MS)
    isDone = true
    await sending
    await sleep(2_000)
    const bySecond = sink.messages
      .filter(({ envelope }) => envelope.from.endsWith('@good.example'))
      .map(({ raw, receivedAt }) => {
        const number = Number(/^subject: good\.example (\d+)/im.exec(raw.toString())?.[1]) - 1
        const at = asked[number] ?? 0
        return { second: (at - (asked[0] ?? 0)) / 1000, ms: receivedAt.getTime() - at }
      })
    const [slowed = 0, held = 0] = [reached.get('slowed'), reached.get('held')]
    for (const [phase, from, to] of [
      ['before', 0, slowed],
      ['while it was slowed', slowed, held],
      ['while it was held', held, Number.POSITIVE_INFINITY],
    ] as const) {
      const times = bySecond.filter(({ second }) => second >= from && second < to).map(({ ms }) => ms)
      times.sort((one, other) => one - other)
      report.figure(`median of the other ${phase}`, times[Math.floor(times.length / 2)] ?? 0, 'ms')
      report.figure(`p99 of the other ${phase}`, times[Math.floor(times.length * 0.99)] ?? 0, 'ms')
      report.figure(`its messages ${phase}`, times.length, '')
    }
    assert.ok(reached.has('slowed') && reached.has('held'))
    assert.equal((await good.standing(service)).state, 'good')
  } finally {
    await service.end('SIGTERM')
    for (const end of ends) await end()
    await rm(folder, { recursive: true, force: true })
  }
}
