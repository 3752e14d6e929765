// By name: it kills the command at each step, which starts it six times.
/** The command that moves an account to another pod dies at each step: it has changed nothing, or is over. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { BLOB_COLUMNS, blobPath } from '../../src/platform/store/blobs/blobs.ts'
import { BLOB_FOLDER } from '../../src/platform/store/blobs/data-folder.ts'
import { runCommand } from '../support/command.ts'
import { temporaryFolder } from '../support/stores.ts'
import { ACCOUNTS, blobName, twoPods } from '../support/two-pods.ts'

const POINTS = [
  ...['move-before-copy', 'move-between', 'move-before-commit'],
  ...['move-after-commit', 'move-after-files'],
] as const

test('kill -9 at each step: all of the account is in one pod, and the last run ends it', async (t) => {
  const { url, query } = await twoPods(t)
  const folders = { a: await temporaryFolder(t), b: await temporaryFolder(t) }
  const names = BLOB_COLUMNS.map(({ table }) => blobName(table, 'own'))
  const fileIn = (pod: 'a' | 'b', name: string) => join(folders[pod], BLOB_FOLDER, blobPath(name))
  for (const name of names) {
    await mkdir(dirname(fileIn('a', name)), { recursive: true })
    await writeFile(fileIn('a', name), name)
  }
  const move = (env: Record<string, string> = {}) =>
    runCommand(
      { SENDWRIGHT_DATABASE_URL: url, SENDWRIGHT_DATA: folders.a, ...env },
      ...['pods', 'move-account', ACCOUNTS.own, '--to', 'b', '--to-data', folders.b, '--json'],
    )
  const messages = async (pod: 'a' | 'b') =>
    (await query(`SELECT id FROM pod_${pod}.messages WHERE account_id = $1`, [ACCOUNTS.own])).length
  for (const point of POINTS) {
    const killed = await move({ SENDWRIGHT_TEST_FAIL_POINT: `${point}:1` })
    assert.equal(killed.code, -1, `${point}: ${killed.err}${killed.out}`)
    const owner = point.startsWith('move-after') ? 'b' : 'a'
    const [entry] = await query(
      "SELECT pod FROM sendwright_pods.entries WHERE kind = 'account' AND value = $1",
      [ACCOUNTS.own],
    )
    assert.equal(entry?.['pod'], owner, point)
    assert.deepEqual([await messages('a'), await messages('b')], owner === 'a' ? [1, 0] : [0, 1], point)
    for (const name of names) assert.ok(existsSync(fileIn(owner, name)), `${point} ${name}`)
  }
  const done = await move()
  assert.equal(done.code, 0, done.err)
  for (const name of names)
    assert.deepEqual([existsSync(fileIn('a', name)), existsSync(fileIn('b', name))], [false, true], name)
  assert.deepEqual(await query("SELECT 1 FROM sendwright_pods.entries WHERE kind = 'files'"), [])
  assert.deepEqual(await query('SELECT DISTINCT state FROM sendwright_pods.pods'), [{ state: 'open' }])
})
