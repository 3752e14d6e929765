// Slow: it makes two pods with a hundred tables each.
/** Rows of an account in every table move to another pod and back. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ACCOUNTS, blobName, FIRST, twoPods, type Who } from '../../../test/support/two-pods.ts'
import { BLOB_COLUMNS } from '../../platform/store/blobs/blobs.ts'
import type { BlobPlace } from '../migrate/blobs.ts'
import { type AccountMove, moveAccount } from './move.ts'
import { MOVE_RULES } from './rules.ts'

function memoryPlace(name: string, files: Set<string>): BlobPlace {
  return {
    name,
    size: async (blob) => (files.has(blob) ? 1 : null),
    digest: async (blob) => (files.has(blob) ? blob : null),
    read: async () => {},
    write: async (blob) => void files.add(blob),
    remove: async (blob) => void files.delete(blob),
  }
}

test('all rows of an account go to another pod and back, and those of others stay', async (t) => {
  const { url, query, plan } = await twoPods(t)
  const files = { a: new Set<string>(), b: new Set<string>() }
  const namesOf = (who: Who) => BLOB_COLUMNS.map(({ table }) => blobName(table, who)).sort()
  for (const who of ['own', 'other'] as const) for (const name of namesOf(who)) files.a.add(name)
  const places = { a: memoryPlace('a', files.a), b: memoryPlace('b', files.b) }
  const move = (to: 'a' | 'b', more: Partial<AccountMove> = {}) =>
    moveAccount({
      ...{ url, accountId: ACCOUNTS.own, to, settle: async () => {} },
      places: (from) => ({ from: places[from as 'a' | 'b'], to: places[to] }),
      ...more,
    })
  /** Rows of the accounts by table, without what a move changes. */
  const dump = async (pod: 'a' | 'b') => {
    const tables = new Map<string, unknown[]>()
    for (const { name } of plan) {
      const rule = MOVE_RULES[name]
      if (rule?.does !== 'moves') continue
      const rows = await query(`SELECT to_jsonb(found) AS row FROM pod_${pod}.${name} AS found`)
      const texts = rows
        .map(({ row }) => row as Record<string, unknown>)
        .filter(({ id }) => !Object.values(FIRST).includes(String(id)))
        .map(({ seq: _, no: __, scope, tx: ___, parent_id: ____, ...row }) =>
          JSON.stringify(
            name === 'classified_failures'
              ? { ...row, id: 0 }
              : { ...row, ...(typeof scope === 'string' && { scope }) },
          ),
        )
      tables.set(name, texts.sort())
    }
    return tables
  }
  const before = await dump('a')

  const there = await move('b')
  assert.equal(there.from, 'a')
  assert.equal(there.files, BLOB_COLUMNS.length)
  assert.deepEqual([...files.b].sort(), namesOf('own'))
  assert.deepEqual([...files.a].sort(), namesOf('other'))
  const [left, moved] = [await dump('a'), await dump('b')]
  for (const [name, rows] of before) {
    const isOwn = (row: unknown) => (moved.get(name) ?? []).includes(row)
    assert.equal(moved.get(name)?.length, name === 'events' ? 2 : 1, name)
    assert.deepEqual(
      left.get(name),
      rows.filter((row) => !isOwn(row)),
      name,
    )
  }
  const figures = await query(
    'SELECT account_id FROM pod_b.figures JOIN pod_b.figure_scopes ON no = figures.scope',
  )
  assert.deepEqual(figures, [{ account_id: ACCOUNTS.own }])
  const events = await query('SELECT id, tx > 5 AS is_new FROM pod_b.events ORDER BY tx, seq')
  assert.deepEqual(events, [
    { id: 'read', is_new: false },
    { id: 'unread', is_new: true },
  ])
  const unread = await query(
    'SELECT e.id FROM pod_b.event_followers f JOIN pod_b.events e ON (e.tx, e.seq) > (f.tx, f.seq)',
  )
  assert.deepEqual(unread, [{ id: 'unread' }])
  const tags = await query('SELECT DISTINCT domain_name FROM pod_b.event_tags')
  assert.deepEqual(tags, [{ domain_name: 'domain_name-own' }])
  assert.deepEqual(await query('SELECT visit FROM pod_b.counted_visits'), [{ visit: 'visit' }])
  assert.equal((await query('SELECT 1 FROM pod_a.sessions')).length, 1, 'of the other account')
  const entries = await query('SELECT kind, value, pod FROM sendwright_pods.entries WHERE value = ANY ($1)', [
    [ACCOUNTS.own, ACCOUNTS.other, 'id-own', 'files'],
  ])
  assert.deepEqual(entries.map(({ kind, value, pod }) => `${kind} ${value} ${pod}`).sort(), [
    `account ${ACCOUNTS.own} b`,
    `account ${ACCOUNTS.other} a`,
    'link id-own b',
  ])
  assert.deepEqual(await move('b'), { ...there, from: null, tables: [] }, 'it is over')

  await t.test('it is refused without the places, and where something is in the way', async () => {
    const stopped = (sql: string, expected: RegExp) => async () => {
      await query(sql)
      await assert.rejects(move('a'), expected)
    }
    await assert.rejects(
      move('a', { places: () => ({ from: places.b, to: null }) }),
      /name the data folder of pod "a" with --to-data/,
    )
    await stopped(
      "INSERT INTO pod_b.event_followers VALUES ('sink:x', 1, 0)",
      /cannot move: a sink of the pod has not sent/,
    )()
    await query("DELETE FROM pod_b.event_followers WHERE name = 'sink:x'")
    files.b.delete(blobName('inbox', 'own'))
    await assert.rejects(move('a'), /1 files of the account are not in b/)
    files.b.add(blobName('inbox', 'own'))
    assert.deepEqual(await query('SELECT DISTINCT state FROM sendwright_pods.pods'), [{ state: 'open' }])
  })

  await t.test('a row that the target has already stops it, and nothing has changed', async () => {
    await query("INSERT INTO pod_a.suppression_policies VALUES ('id-own', 1, 1, 1, 1)")
    await assert.rejects(move('a'), /duplicate key|would not have the same rows/)
    await query("DELETE FROM pod_a.suppression_policies WHERE domain_id = 'id-own'")
    assert.deepEqual(await dump('b'), moved)
  })

  await query('UPDATE pod_b.event_followers SET tx = (SELECT max(tx) + 1 FROM pod_b.events)')
  await move('a')
  assert.deepEqual(await dump('a'), before)
  for (const [name, rows] of await dump('b')) assert.deepEqual(rows, [], name)
})
