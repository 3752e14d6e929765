import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import type { Statement } from './store.ts'
import { WriterQueue } from './writer-queue.ts'

/** A writer that shows what it was handed, and answers when it is told to. */
function createRig() {
  const handed: string[][] = []
  const answers: (() => void)[] = []
  const told: string[] = []
  const queue = new WriterQueue((group) => {
    handed.push(group.map(({ unit }) => (unit[0] as Statement).sql))
    return new Promise((resolve) => {
      answers.push(() => resolve(() => group.forEach((job) => void job.resolve([]))))
    })
  })
  const commit = (name: string, order?: 'first') =>
    queue.commit([{ sql: name, values: [] }], order).then(() => void told.push(name))
  const many = (name: string, count: number) => {
    for (let n = 0; n < count; n++) void commit(name)
  }
  const answer = async () => {
    answers.shift()?.()
    await turn()
  }
  return { queue, handed, told, commit, many, answer }
}

test('what comes in one turn of the event loop is one group', async () => {
  const { handed, commit, answer } = createRig()
  void commit('a')
  void commit('b')
  await turn()
  void commit('c')
  await answer()
  assert.deepEqual(handed, [['a', 'b'], ['c']])
})

test('a transaction waits for what was asked for before it in the same turn', async () => {
  const { handed, commit, answer, queue } = createRig()
  void commit('a')
  const release = queue.acquire()
  void commit('b')
  assert.deepEqual(handed, [['a']])
  await answer()
  ;(await release)()
  await turn()
  assert.deepEqual(handed, [['a'], ['b']])
})

test('what waits is handed over as one group before those of the last one are told', async () => {
  const { handed, told, commit, answer, queue } = createRig()
  let known: number | null = null
  void commit('a').then(() => {
    known = handed.length
  })
  await turn()
  void commit('b')
  void commit('c')
  await answer()
  assert.deepEqual(handed, [['a'], ['b', 'c']])
  assert.deepEqual([told, known], [['a'], 2])
  const release = queue.acquire()
  void commit('d')
  await answer()
  await turn()
  assert.equal(handed.length, 2, 'a transaction has the writer to itself')
  ;(await release)()
  await turn()
  assert.deepEqual(handed[2], ['d'])
})

test('many more make a second group, as long as no outcomes come in', async () => {
  const { handed, commit, many, answer } = createRig()
  for (let n = 0; n < 10; n++) {
    void commit('single')
    await turn()
    await answer()
  }
  many('a', 17)
  assert.deepEqual(
    handed.slice(10).map(({ length }) => length),
    [1, 16],
  )
  many('b', 30)
  assert.equal(handed.length, 12, 'there is no third')
  void commit('outcome', 'first')
  await answer()
  assert.equal(handed.length, 12, 'an outcome is waiting')
  await answer()
  assert.deepEqual(handed[12]?.slice(0, 2), ['outcome', 'b'])
  many('c', 30)
  assert.equal(handed.length, 13, 'an outcome was among the last')
})
