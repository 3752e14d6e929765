import assert from 'node:assert/strict'
import { appendFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from '../../test/support/stores.ts'
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
