import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { afterEach, beforeEach, mock, test } from 'node:test'
import { plantFiles } from '../../../test/support/plant-files.ts'
import { collectAtRest } from './rest-collection.ts'

const MB = 2 ** 20

type Look = [busy: number, heldMb: number]

beforeEach(() => mock.timers.enable({ apis: ['setTimeout', 'setInterval'] }))
afterEach(() => mock.timers.reset())

/**
 * A thread whose looks find, one after the other, how busy it was and what it held; `live` is left by a collection.
 * @param everyMs times between the looks
 */
function follow(
  looks: Look[],
  { live = 20, startLooks = 0, everyMs = looks.map(() => 10_000) } = {},
): number[] {
  const collectedAt: number[] = []
  let at = -1
  let held = 0
  const probes = {
    busy() {
      at += 1
      held = (looks[at]?.[1] ?? 0) * MB
      return looks[at]?.[0] ?? 0
    },
    held: () => held,
    collect() {
      collectedAt.push(at)
      held = live * MB
    },
  }
  const { stop } = collectAtRest({ probes, lookEveryMs: 10_000, startLooks })
  for (const ms of everyMs) mock.timers.tick(ms)
  stop()
  mock.timers.tick(60_000)
  assert.equal(at, looks.length - 1)
  return collectedAt
}

/** A minute. */
const rest = (heldMb: number): Look[] => Array.from({ length: 6 }, () => [0, heldMb])
const work = (heldMb: number): Look => [0.5, heldMb]
const trickle: Look = [0.03, 90]
const after = (...looks: Look[]) => looks

const table: [string, Look[], number[]][] = [
  ['a minute after work at the start, once', after(...rest(30), ...rest(30)), [5]],
  ['not while it works', after(work(30), [0.05, 90], work(90), work(90), work(90), work(90), work(200)), []],
  ['once after each work', after(work(90), ...rest(30), ...rest(30), work(60), ...rest(30)), [6, 19]],
  ['not after a shorter rest', after(...rest(30).slice(1), work(90), ...rest(30).slice(1), work(90)), []],
  [
    'not in a trickle, but after it',
    after(work(90), trickle, ...rest(30).slice(1), trickle, ...rest(30)),
    [13],
  ],
  ['not for a trickle alone', after(...rest(30), trickle, ...rest(30)), [5]],
  ['in a trickle that left much', after(...rest(30), ...rest(35), trickle, ...rest(36)), [5, 18]],
  ['not for a little', after(...rest(30), work(22), ...rest(22)), [5]],
]
for (const [what, looks, expected] of table)
  test(`a thread at rest is collected ${what}`, () => assert.deepEqual(follow(looks), expected))

test('a thread is collected at its first rest after the start, then a minute after work', () => {
  const looks = [work(60), trickle, ...rest(60).slice(5), ...rest(30), work(60), ...rest(60)]
  const everyMs = looks.map((_, at) => (at < 3 ? 2_000 : 10_000))
  assert.deepEqual(follow(looks, { startLooks: 10, everyMs }), [2, 15])
})

test('a thread that works from the start on is collected a minute after it', () => {
  const looks = [work(60), work(60), trickle, ...rest(60)]
  const everyMs = looks.map((_, at) => (at < 3 ? 2_000 : 10_000))
  assert.deepEqual(follow(looks, { startLooks: 3, everyMs }), [8])
})

test('in Node it gives back what a burst left, on every thread, by several collections, and lets the thread end', (t) => {
  const program = `
    import { isMainThread, Worker } from 'node:worker_threads'
    import { getHeapStatistics } from 'node:v8'
    import { setTimeout as sleep } from 'node:timers/promises'
    const { collectAtRest } = await import(${JSON.stringify(join(import.meta.dirname, 'rest-collection.ts'))})
    const held = () => getHeapStatistics().total_heap_size
    const { gc } = globalThis
    let collections = 0
    globalThis.gc = (options) => (collections++, gc(options))
    if (isMainThread) new Worker(new URL(import.meta.url))
    collectAtRest({ lookEveryMs: 50 })
    let burst = Array.from({ length: 300_000 }, (_, n) => ({ n, text: 'x' + n }))
    const before = held()
    burst = undefined
    while (held() > before / 2 || collections < 4) await sleep(500)
    console.log('given back')
  `
  const file = join(plantFiles(t, { 'burst.mjs': program }), 'burst.mjs')
  const { stdout, stderr, status } = spawnSync(process.execPath, ['--expose-gc', file], {
    encoding: 'utf8',
    timeout: 60_000,
  })
  assert.equal(stdout, 'given back\ngiven back\n', stderr)
  assert.equal(status, 0)
})

test('a thread that can let go of more is collected after work, whatever its heap has grown by', () => {
  const did: string[] = []
  let busy = 1
  const probes = { busy: () => busy, held: () => 5 * MB, collect: () => did.push('collected') }
  const letGo = () => did.push('let go')
  const { stop } = collectAtRest({ letGo, probes, lookEveryMs: 10_000, startLooks: 0 })
  for (const work of [1, 0, 0, 1, 0]) {
    busy = work
    for (let look = 0; look < 6; look++) mock.timers.tick(10_000)
  }
  stop()
  assert.deepEqual(did, ['let go', 'collected', 'let go', 'collected'])
})

const { glibcVersionRuntime } = (process.report.getReport() as { header: Record<string, unknown> }).header
if (glibcVersionRuntime !== undefined)
  test('free pages between pieces of malloc that stay are given back', (t) => {
    const program = `
      import { setTimeout as sleep } from 'node:timers/promises'
      const { collectAtRest } = await import(${JSON.stringify(join(import.meta.dirname, 'rest-collection.ts'))})
      const pieces = Array.from({ length: 6_000 }, () => Buffer.alloc(20_000, 1))
      const before = process.memoryUsage.rss()
      globalThis.kept = pieces.filter((_, at) => at % 50 === 49)
      pieces.length = 0
      collectAtRest({ lookEveryMs: 50 })
      while (process.memoryUsage.rss() > before - 80 * 2 ** 20) await sleep(500)
      console.log('given back')
      process.exit()
    `
    const file = join(plantFiles(t, { 'burst.mjs': program }), 'burst.mjs')
    const { stdout, stderr } = spawnSync(process.execPath, ['--expose-gc', file], {
      encoding: 'utf8',
      timeout: 60_000,
    })
    assert.equal(stdout, 'given back\n', stderr)
  })
