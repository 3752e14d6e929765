import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import type { Statement } from '../store.ts'
import { WriterQueue } from './writer.ts'

/** A writer that records its groups, and answers when the test calls `answer`. */
function createRig() {
  const written: string[][] = []
  const answers: (() => void)[] = []
  const settled: string[] = []
  const queue = new WriterQueue((group) => {
    written.push(group.map(({ unit }) => (unit[0] as Statement).sql))
    return new Promise((resolve) => {
      answers.push(() => resolve(() => group.forEach((job) => void job.resolve([]))))
    })
  })
  const commit = (name: string, order?: 'first') =>
    queue.commit([{ sql: name, values: [] }], order).then(() => void settled.push(name))
  const many = (name: string, count: number) => {
    for (let n = 0; n < count; n++) void commit(name)
  }
  const answer = async () => {
    answers.shift()?.()
    await turn()
  }
  return { queue, written, settled, commit, many, answer }
}

test('units committed in one turn of the event loop are one group', async () => {
  const { written, commit, answer } = createRig()
  void commit('a')
  void commit('b')
  await turn()
  void commit('c')
  await answer()
  assert.deepEqual(written, [['a', 'b'], ['c']])
})

test('a transaction waits for units that were committed before it in the same turn', async () => {
  const { written, commit, answer, queue } = createRig()
  void commit('a')
  const release = queue.acquire()
  void commit('b')
  assert.deepEqual(written, [['a']])
  await answer()
  ;(await release)()
  await turn()
  assert.deepEqual(written, [['a'], ['b']])
})

test('waiting units are written as one group before those of the previous group resolve', async () => {
  const { written, settled, commit, answer, queue } = createRig()
  let groupsAtResolve: number | null = null
  void commit('a').then(() => {
    groupsAtResolve = written.length
  })
  await turn()
  void commit('b')
  void commit('c')
  await answer()
  assert.deepEqual(written, [['a'], ['b', 'c']])
  assert.deepEqual([settled, groupsAtResolve], [['a'], 2])
  const release = queue.acquire()
  void commit('d')
  await answer()
  await turn()
  assert.equal(written.length, 2, 'a transaction has the writer to itself')
  ;(await release)()
  await turn()
  assert.deepEqual(written[2], ['d'])
})

test('many more units make a second group, unless outcomes arrive', async () => {
  const { written, commit, many, answer } = createRig()
  for (let n = 0; n < 10; n++) {
    void commit('single')
    await turn()
    await answer()
  }
  many('a', 17)
  assert.deepEqual(
    written.slice(10).map(({ length }) => length),
    [1, 16],
  )
  many('b', 30)
  assert.equal(written.length, 12, 'there is no third')
  void commit('outcome', 'first')
  await answer()
  assert.equal(written.length, 12, 'an outcome is waiting')
  await answer()
  assert.deepEqual(written[12]?.slice(0, 2), ['outcome', 'b'])
  many('c', 30)
  assert.equal(written.length, 13, 'the last group had an outcome')
})
