import assert from 'node:assert/strict'
import pino from 'pino'
import { createTestClock, type TestClock } from '../../../../test/support/clock.ts'
import { jobContext } from '../../../../test/support/job-context.ts'
import { eventually } from '../../../../test/support/service.ts'
import { eachStore } from '../../../../test/support/stores.ts'
import type { LaneInfo } from '../../../mail/deliver/lanes/lanes.ts'
import { shippedShaping } from '../../../mail/deliver/shaping/shaping-table.ts'
import type { Store } from '../../../platform/store/store.ts'
import { openAddresses } from '../known-addresses.ts'
import { type Blocks, createBlocks, PROBES_TO_OPEN } from './blocks.ts'
import { REPLIES_TO_CLOSE } from './evidence.ts'

const IP = '192.0.2.1'
/** One that no shaping names. */
const SITE = 'mx.provider.example'
const DOMAIN = 'provider.example'
const HOUR_MS = 3_600_000
const BLOCKED = { kind: 'blocked', code: 554, reply: 'blocked' } as const
const ACCEPTED = { kind: 'accepted' } as const
const LANE: LaneInfo = {
  ...{ name: `${IP}/${SITE}`, source: { ip: IP, helo: null }, site: SITE, relay: null, provider: 'Provider' },
  limits: shippedShaping().limitsOf(SITE),
}

/** As one process has it. */
async function processOf(store: Store, clock: TestClock) {
  const config = {
    sourceAddresses: [{ ip: IP, shared: false, helo: null }],
    requireFcrdns: 'off' as const,
    delivery: { kind: 'direct' as const },
  }
  const known = await openAddresses(store, clock, config, 'first')
  const log = pino({ level: 'silent' })
  const blocks = createBlocks({ store, known, clock, log, random: () => 0.5, shaping: shippedShaping })
  return { known, blocks }
}

function answer(blocks: Blocks, kind: typeof BLOCKED | typeof ACCEPTED, times = 1): void {
  for (let n = 0; n < times; n++) blocks.answered(IP, LANE, DOMAIN, kind)
}

async function close(blocks: Blocks): Promise<void> {
  answer(blocks, BLOCKED, REPLIES_TO_CLOSE)
  await blocks.written()
}

/** Lets the pause pass, and every probe succeed. */
async function open(blocks: Blocks, clock: TestClock): Promise<void> {
  clock.leap(Math.max(0, (blocks.find(IP, SITE)?.until_at ?? 0) - clock.now()))
  for (let n = 0; n < PROBES_TO_OPEN; n++) {
    assert.equal(blocks.mayProbe(IP, SITE), true)
    assert.equal(blocks.mayProbe(IP, SITE), false, 'one at a time')
    answer(blocks, ACCEPTED)
  }
  await blocks.written()
  assert.equal(blocks.stateOf(IP, SITE), 'open')
}

const pauseOf = (blocks: Blocks) => (blocks.find(IP, SITE)?.pause_ms ?? 0) / HOUR_MS

eachStore(
  'replies in a row close an address at once; other processes and later ones follow',
  async (store) => {
    const clock = createTestClock()
    const [one, other] = [await processOf(store, clock), await processOf(store, clock)]
    answer(one.blocks, BLOCKED, REPLIES_TO_CLOSE - 1)
    answer(one.blocks, ACCEPTED)
    answer(one.blocks, BLOCKED, REPLIES_TO_CLOSE - 1)
    one.blocks.answered(IP, LANE, DOMAIN, { kind: 'other' })
    assert.equal(one.blocks.stateOf(IP, SITE), 'open')
    answer(one.blocks, BLOCKED)
    assert.equal(one.blocks.stateOf(IP, SITE), 'closed', 'before it is on disk')
    assert.equal(one.blocks.stateOf(IP, 'another'), 'open')
    await one.blocks.written()

    assert.equal(other.blocks.stateOf(IP, SITE), 'open')
    await other.known.refresh()
    assert.deepEqual(other.blocks.find(IP, SITE), one.blocks.find(IP, SITE))
    const later = await processOf(store, clock)
    assert.equal(later.blocks.stateOf(IP, SITE), 'closed')

    assert.equal(await later.blocks.clear(IP, SITE), true)
    assert.equal(await later.blocks.clear(IP, SITE), false)
    await one.known.refresh()
    assert.equal(one.blocks.stateOf(IP, SITE), 'open')
  },
)

eachStore('of two processes that close it at the same time one pause counts', async (store) => {
  const clock = createTestClock()
  const processes = [await processOf(store, clock), await processOf(store, clock)]
  await Promise.all(processes.map(({ blocks }) => close(blocks)))
  for (const { known, blocks } of processes) {
    await known.refresh()
    assert.deepEqual([pauseOf(blocks), blocks.find(IP, SITE)?.times], [1, 1])
  }
})

eachStore('the pause doubles up to a day, also for a block soon after the last one', async (store) => {
  const clock = createTestClock()
  const { blocks } = await processOf(store, clock)
  await close(blocks)
  for (const hours of [1, 2, 4, 8, 16, 24, 24]) {
    assert.equal(pauseOf(blocks), hours)
    clock.leap(hours * HOUR_MS)
    assert.equal(blocks.mayProbe(IP, SITE), true)
    answer(blocks, BLOCKED)
    assert.equal(blocks.stateOf(IP, SITE), 'closed')
    await blocks.written()
  }
  await open(blocks, clock)
  clock.leap(23 * HOUR_MS)
  await close(blocks)
  assert.equal(pauseOf(blocks), 24)
  await open(blocks, clock)
  clock.leap(25 * HOUR_MS)
  await close(blocks)
  assert.deepEqual([pauseOf(blocks), blocks.find(IP, SITE)?.times], [1, 1])
})

eachStore(
  'a probe that nothing is heard of is forgotten, and what waits is not due all at once',
  async (store) => {
    const clock = createTestClock()
    const { blocks } = await processOf(store, clock)
    await close(blocks)
    assert.equal(blocks.nextFree(IP, SITE), clock.now() + HOUR_MS + 5 * 60_000)
    assert.equal(blocks.mayProbe(IP, SITE), false)
    clock.leap(HOUR_MS)
    assert.equal(blocks.mayProbe(IP, SITE), true)
    clock.leap(59_000)
    assert.equal(blocks.mayProbe(IP, SITE), false)
    clock.leap(1_000)
    assert.equal(blocks.mayProbe(IP, SITE), true)
  },
)

eachStore('rows of long ago are removed', async (store, t) => {
  const clock = createTestClock()
  const { blocks, known } = await processOf(store, clock)
  await close(blocks)
  clock.leap(31 * 24 * HOUR_MS)
  blocks.job.start(jobContext(store, { clock }))
  t.after(() => blocks.job.stop())
  await eventually('removed', async () => known.book().blocks.size === 0)
  assert.deepEqual(await store.db.selectFrom('ip_blocks').selectAll().execute(), [])
})

eachStore(
  'a domain behind a provider counts once, and does not keep a probing address closed',
  async (store) => {
    const clock = createTestClock()
    const { blocks } = await processOf(store, clock)
    const site = 'google'
    const lane = { ...LANE, site }
    const answerOf = (domain: string, answer: typeof BLOCKED | typeof ACCEPTED) =>
      blocks.answered(IP, lane, domain, answer)
    for (let n = 0; n < 50; n++) answerOf(`a${n}.attacker.example`, BLOCKED)
    assert.equal(blocks.stateOf(IP, site), 'open')
    for (const domain of ['one.example', 'two.example']) answerOf(domain, BLOCKED)
    assert.equal(blocks.stateOf(IP, site), 'closed')
    await blocks.written()

    clock.leap(HOUR_MS)
    for (let n = 0; n < PROBES_TO_OPEN; n++) {
      assert.equal(blocks.mayProbe(IP, site), true)
      if (n === 1) answerOf('attacker.example', BLOCKED)
      else answerOf('gmail.com', ACCEPTED)
      assert.equal(blocks.stateOf(IP, site), 'probing')
    }
    assert.equal(blocks.mayProbe(IP, site), true, 'accepted ones begin anew')
    answerOf('gmail.com', BLOCKED)
    assert.equal(blocks.stateOf(IP, site), 'closed', "the provider's own reply")
    await blocks.written()
  },
)
