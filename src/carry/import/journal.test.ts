import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  chownSync,
  lchownSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from '../../../test/support/stores.ts'
import { OtherJournal, openJournal, type Remark } from './journal.ts'

const remark = (name: string): Remark => ({
  kind: 'bounce',
  name,
  place: 'row 1',
  outcome: 'refused',
  reason: 'x',
})

test('a run continues behind its last page, and what belongs to no page is dropped', async (t) => {
  const folder = await temporaryFolder(t)
  const first = openJournal(folder, 'run')
  assert.equal(first.isResumed, false)
  first.taken('a', '10', [remark('one')], ['zone one'])
  first.sectionDone('a')
  first.totals.bounce = { made: 3, existing: 0, changed: 0, refused: 1 }
  first.taken('b', '5', [], [])
  // Killed within the next page: the report has its line, the journal half of one.
  appendFileSync(first.reportFile, `${JSON.stringify(remark('two'))}\n`)
  appendFileSync(join(folder, 'journal.jsonl'), '{"section":"b","cur')

  const second = openJournal(folder, 'run')
  assert.equal(second.isResumed, true)
  assert.deepEqual([second.isDone('a'), second.isDone('b'), second.isDone('c')], [true, false, false])
  assert.deepEqual([second.cursorOf('b'), second.cursorOf('c')], ['5', null])
  assert.equal(second.totals.bounce?.made, 3)
  assert.equal(readFileSync(second.reportFile, 'utf8'), `${JSON.stringify(remark('one'))}\n`)
  assert.equal(readFileSync(second.zoneFile, 'utf8'), 'zone one\n\n')
  assert.throws(() => openJournal(folder, 'another run'), OtherJournal)

  second.finish()
  const third = openJournal(folder, 'another run')
  assert.equal(third.isResumed, false)
  assert.equal(readFileSync(third.reportFile, 'utf8'), '')
})

test('links and pipes that others put into the folder are refused, and what they lead to stays', async (t) => {
  const folder = await temporaryFolder(t)
  const state = join(folder, 'state')
  mkdirSync(state)
  const own = join(folder, 'own')
  const plants: [what: string, plant: (file: string) => void][] = [
    ['a link to a file', (file) => symlinkSync(own, file)],
    ['a link to no file', (file) => symlinkSync(join(folder, 'new'), file)],
    ['a second name of a file', (file) => linkSync(own, file)],
    ['a pipe', (file) => execFileSync('mkfifo', [file])],
    ['a folder', (file) => mkdirSync(file)],
  ]
  for (const [what, plant] of plants)
    for (const name of ['journal.jsonl', 'report.jsonl', 'records.zone']) {
      rmSync(state, { recursive: true })
      mkdirSync(state)
      writeFileSync(own, 'mine')
      plant(join(state, name))
      assert.throws(() => openJournal(state, 'run'), OtherJournal, `${what} as ${name}`)
      assert.equal(readFileSync(own, 'utf8'), 'mine')
      assert.throws(() => readFileSync(join(folder, 'new')), /ENOENT/)
    }
})

test('a link that is put there meanwhile is refused', async (t) => {
  const folder = await temporaryFolder(t)
  const own = join(folder, 'own')
  writeFileSync(own, 'mine')
  const journal = openJournal(join(folder, 'state'), 'run')
  rmSync(journal.reportFile)
  symlinkSync(own, journal.reportFile)
  assert.throws(() => journal.taken('a', '1', [remark('one')], []), OtherJournal)
  assert.equal(readFileSync(own, 'utf8'), 'mine')
})

const isRoot = process.geteuid?.() === 0

test("another user's folder, or link to one of ours, is refused", {
  skip: !isRoot && 'only root can make one',
}, async (t) => {
  const folder = await temporaryFolder(t)
  const at = (name: string) => join(folder, name)
  for (const name of ['own', 'foreign']) mkdirSync(at(name))
  chownSync(at('foreign'), 12_345, 12_345)
  symlinkSync(at('own'), at('own-link'))
  symlinkSync(at('own'), at('foreign-link'))
  lchownSync(at('foreign-link'), 12_345, 12_345)
  for (const name of ['foreign', 'foreign-link'])
    assert.throws(() => openJournal(at(name), 'run'), /belongs to user 12345/, name)
  assert.deepEqual(readdirSync(at('own')), [])
  assert.ok(openJournal(at('own-link'), 'run'))
})
