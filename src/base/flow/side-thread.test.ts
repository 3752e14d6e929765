import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { temporaryFolder } from '../../../test/support/stores.ts'
import { Unavailable } from '../process/errors.ts'
import { createSideThread, SideError, type SideThreadOptions } from './side-thread.ts'

type Functions = {
  double(bytes: Uint8Array): Uint8Array
  both(bytes: Uint8Array): { first: Uint8Array; second: Uint8Array; count: number }
  add(a: number, b: number): Promise<number>
  fail(): never
  forever(begun: Int32Array): never
  exit(): never
}

const SOURCE = `
import { serve } from '${join(import.meta.dirname, 'side-thread.ts')}'
serve({
  double: (bytes) => bytes.map((byte) => byte * 2),
  both: (bytes) => ({ first: bytes.subarray(0, 1), second: bytes.subarray(1), count: bytes.length }),
  add: async (a, b) => a + b,
  fail() { throw new RangeError('too much') },
  forever(begun) { for (begun[0] = 1; ; ); },
  exit() { process.exit(1) },
})
`

async function started(t: TestContext, options: SideThreadOptions = {}) {
  const file = join(await temporaryFolder(t), 'thread.mjs')
  await writeFile(file, SOURCE)
  const thread = createSideThread<Functions>(file, options)
  t.after(() => thread.close())
  return thread
}

test('calls run one after the other, and bytes come back whole', async (t) => {
  const thread = await started(t)
  const bytes = new Uint8Array([1, 2, 3])
  const [doubled, both, sum] = await Promise.all([
    thread.call('double', () => [bytes]),
    thread.call('both', () => [bytes]),
    thread.call('add', async () => [1, 2]),
  ])
  assert.deepEqual(doubled, new Uint8Array([2, 4, 6]))
  assert.deepEqual(both, { first: new Uint8Array([1]), second: new Uint8Array([2, 3]), count: 3 })
  assert.equal(sum, 3)
  assert.equal(bytes.byteLength, 3)
})

test('bytes are handed over where the caller gives them up', async (t) => {
  const thread = await started(t)
  const bytes = new Uint8Array([1, 2, 3])
  const doubled = await thread.call(
    'double',
    () => [bytes],
    ([given]) => [given.buffer as ArrayBuffer],
  )
  assert.deepEqual(doubled, new Uint8Array([2, 4, 6]))
  assert.equal(bytes.byteLength, 0)
})

test('an error in the thread, or in making the arguments, is the error of that call alone', async (t) => {
  const thread = await started(t)
  await assert.rejects(
    thread.call('fail', () => []),
    (error) => {
      assert.ok(error instanceof SideError)
      assert.equal(error.name, 'RangeError')
      assert.equal(error.message, 'too much')
      return true
    },
  )
  const gone = new Error('the file is gone')
  await assert.rejects(
    thread.call('double', () => Promise.reject(gone)),
    gone,
  )
  assert.equal(await thread.call('add', () => [2, 3]), 5)
})

test('a call that does not end, and one that ends the thread, fail; those behind them do not', async (t) => {
  const thread = await started(t, { callMsMax: 2_000 })
  // The start of a thread counts too, and takes seconds on a busy machine.
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const begun = new Int32Array(new SharedArrayBuffer(4))
  const calls = Promise.allSettled([
    thread.call('forever', () => [begun]),
    thread.call('add', () => [1, 1]),
    thread.call('exit', () => []),
    thread.call('add', () => [2, 2]),
  ])
  while (begun[0] === 0) await new Promise((resolve) => setImmediate(resolve))
  t.mock.timers.tick(2_000)
  const results = await calls
  const shown = results.map((result) => (result.status === 'fulfilled' ? result.value : result.reason))
  assert.ok(shown[0] instanceof Unavailable)
  assert.equal(shown[1], 2)
  assert.ok(shown[2] instanceof Unavailable)
  assert.equal(shown[3], 4)
})

test('after a rest it starts again', async (t) => {
  const thread = await started(t, { idleMs: 1 })
  assert.equal(await thread.call('add', () => [1, 1]), 2)
  await new Promise((resolve) => setTimeout(resolve, 50))
  assert.equal(await thread.call('add', () => [1, 2]), 3)
})

test('closing fails what runs and what waits', async (t) => {
  const thread = await started(t)
  const begun = new Int32Array(new SharedArrayBuffer(4))
  const results = Promise.allSettled([
    thread.call('forever', () => [begun]),
    thread.call('add', () => [1, 1]),
  ])
  await thread.close()
  for (const result of await results) {
    assert.ok(result.status === 'rejected' && result.reason instanceof Unavailable)
  }
  await assert.rejects(
    thread.call('add', () => [1, 1]),
    Unavailable,
  )
})
