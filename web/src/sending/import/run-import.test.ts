import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Answer } from '../../api.ts'
import { type ImportState, runImport } from './run-import.ts'

const records = (count: number) =>
  Array.from({ length: count }, (_, at) => ({ address: `${at}@example.com` }))
const ok: Answer<unknown> = { ok: true, value: {} }
const refused = (status: number, message: string): Answer<unknown> => ({
  ok: false,
  failure: { status, message },
})

test('sends in steps, leaves bad records out, and waits when it is too fast', async () => {
  const sent: number[] = []
  const waited: number[] = []
  const seen: number[] = []
  const answers = [ok, refused(429, 'slow'), refused(400, 'bad address: "x" (index 1)'), ok, ok]
  const state = await runImport({
    records: records(5),
    size: 2,
    send: async (step) => {
      sent.push(step.length)
      return answers.shift() ?? ok
    },
    onProgress: ({ done }: ImportState) => seen.push(done),
    isStopped: () => false,
    wait: async (ms) => void waited.push(ms),
  })
  assert.deepEqual(state, { done: 5, bad: [{ number: 4, why: 'bad address: "x"' }] })
  assert.deepEqual([sent, seen, waited], [[2, 2, 2, 1, 1], [2, 4, 5], [1000]])
})

test('stops at a refusal of everything, at too many bad records, and when it is told to', async () => {
  const run = (send: () => Promise<Answer<unknown>>, isStopped = () => false) =>
    runImport({ records: records(500), size: 500, send, onProgress: () => undefined, isStopped })
  assert.deepEqual(await run(async () => refused(404, 'Domain not found')), {
    done: 0,
    bad: [],
    fault: 'Domain not found',
  })
  const allBad = await run(async () => refused(400, 'bad (index 0)'))
  assert.equal(allBad.bad.length, 100)
  assert.equal(allBad.fault, 'bad (index 0)')
  assert.deepEqual(
    await run(
      async () => ok,
      () => true,
    ),
    { done: 0, bad: [] },
  )
})
