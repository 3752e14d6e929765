/** Group commit against a connection that fails at a chosen query. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type pg from 'pg'
import { type Statement, StoreUnavailable } from '../store.ts'
import { createGroupCommit } from './postgres-groups.ts'

const RESET = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })
const DEADLOCK = Object.assign(new Error('deadlock detected'), { code: '40P01' })

/**
 * A server that answers everything; `fault` may return an error for the count-th query of that text, and a COMMIT waits for
 * `gate`.
 */
function scripted(fault: (sql: string, count: number) => Error | null, gate?: Promise<void>) {
  const queries: string[] = []
  const released: (Error | undefined)[] = []
  const client = {
    async query(query: string | pg.QueryConfig) {
      const sql = typeof query === 'string' ? query : query.text
      queries.push(sql)
      const error = fault(sql, queries.filter((text) => text === sql).length)
      if (error) throw error
      if (sql === 'COMMIT') await gate
      return { rows: [], rowCount: 1 }
    },
    release: (error?: Error) => void released.push(error),
  } as unknown as pg.PoolClient
  const commit = createGroupCommit({
    connect: async () => client,
    inOneWrite: (_, send) => send(),
    prepare: ({ sql, values }: Statement) => ({ text: sql, values: [...values] }),
    isConnectionFault: (error) => error === RESET,
    toStoreError: (error) =>
      error === RESET ? new StoreUnavailable('PostgreSQL went away', { cause: error }) : error,
  })
  return { queries, released, commit }
}

const limited = (name: string): Statement => ({ ...add(name), lockKey: name })
const add = (name: string): Statement => ({ sql: `UPDATE counts SET ${name} = ${name} + 1`, values: [] })

test('units whose commit was cut off fail, and are not run a second time', async () => {
  const { queries, released, commit } = scripted((sql) => (sql === 'COMMIT' ? RESET : null))
  const outcomes = await Promise.allSettled([commit([add('a')]), commit([add('b')])])
  for (const outcome of outcomes) {
    assert.equal(outcome.status, 'rejected')
    assert.ok(outcome.reason instanceof StoreUnavailable, String(outcome.reason))
  }
  assert.equal(queries.filter((sql) => sql === add('a').sql).length, 1)
  assert.deepEqual(released, [RESET], 'the connection is not used again')
})

test('a group is run again when its connection was lost before the commit; the second loss fails it', async () => {
  const { commit, queries } = scripted((sql, count) => (sql === 'BEGIN' && count === 1 ? RESET : null))
  await Promise.all([commit([add('a')]), commit([add('b')])])
  assert.equal(queries.filter((sql) => sql === 'COMMIT').length, 1)
  const away = scripted((sql) => (sql === 'BEGIN' ? RESET : null))
  const outcomes = await Promise.allSettled([away.commit([add('a')]), away.commit([add('b')])])
  for (const outcome of outcomes) {
    assert.equal(outcome.status, 'rejected')
    assert.ok(outcome.reason instanceof StoreUnavailable, String(outcome.reason))
  }
  assert.equal(away.released.length, 2)
})

test('the victim of a deadlock is run again, and fails only if the deadlocks continue', async () => {
  const once = scripted((sql, count) => (sql === add('a').sql && count === 1 ? DEADLOCK : null))
  await once.commit([add('a')])
  const always = scripted((sql) => (sql === add('a').sql ? DEADLOCK : null))
  await assert.rejects(always.commit([add('a')]), DEADLOCK)
})

test('a group updates shared rows last and in the order of their keys, and each unit gets its own results', async () => {
  const { commit, queries } = scripted(() => null)
  const [first, second] = await Promise.all([
    commit([limited('b'), add('x')]),
    commit([add('y'), limited('a'), limited('c')]),
  ])
  const names = queries.map((sql) => /^UPDATE counts SET (\w)/.exec(sql)?.[1] ?? sql)
  assert.deepEqual(names, ['BEGIN', 'x', 'y', 'a', 'b', 'c', 'COMMIT'])
  assert.deepEqual([first?.length, second?.length], [2, 3])
})

const begun = (queries: readonly string[]) => queries.filter((sql) => sql === 'BEGIN').length
const turn = () => new Promise((resolve) => setImmediate(resolve))

test('a lone unit begins at once; few that come while a group is in flight share the next one', async () => {
  const disk = Promise.withResolvers<void>()
  const { commit, queries } = scripted(() => null, disk.promise)
  const units = [commit([add('a')])]
  await turn()
  assert.equal(begun(queries), 1, 'the first one waits for nobody')
  units.push(commit([add('b')]), commit([add('c')]))
  await turn()
  assert.equal(begun(queries), 1)
  disk.resolve()
  await Promise.all(units)
  assert.equal(begun(queries), 2, 'two units, one group')
})

test('many units begin a group beside one in flight, and few do when it takes long', async () => {
  const disk = Promise.withResolvers<void>()
  const { commit, queries } = scripted(() => null, disk.promise)
  const units = [commit([add('a')])]
  await turn()
  for (let at = 0; at < 8; at++) units.push(commit([add('b')]))
  await turn()
  assert.equal(begun(queries), 2)
  units.push(commit([add('c')]))
  while (begun(queries) < 3) await turn()
  disk.resolve()
  await Promise.all(units)
  assert.equal(begun(queries), 3)
})
