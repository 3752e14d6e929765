import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decidingVerdicts, isVerifiedAfter, nextCheckAt, type Verdict } from './state.ts'

const CASES: [before: boolean, verdicts: Verdict[], caller: boolean, background: boolean][] = [
  [false, ['valid', 'valid'], true, true],
  [false, ['valid', 'wrong'], false, false],
  [false, ['valid', 'unanswered'], false, false],
  [true, ['valid', 'wrong'], false, true],
  [true, ['valid', 'unanswered'], true, true],
  [true, ['wrong', 'unanswered'], false, true],
  [true, [], true, true],
  [false, [], false, false],
]

test('only definite answers change whether a domain is verified, and background checks revoke nothing', () => {
  for (const [before, verdicts, caller, background] of CASES) {
    const name = `${before} ${verdicts.join()}`
    assert.equal(isVerifiedAfter(before, verdicts, 'by-caller'), caller, name)
    assert.equal(isVerifiedAfter(before, verdicts, 'in-background'), background, name)
  }
})

test('keys that sign decide; while none signs, the best one decides', () => {
  const key = (active: boolean, verdict: Verdict) => ({ active, verdict })
  assert.deepEqual(decidingVerdicts([key(true, 'valid'), key(false, 'wrong')]), ['valid'])
  assert.deepEqual(decidingVerdicts([key(true, 'valid'), key(true, 'wrong')]), ['valid', 'wrong'])
  assert.deepEqual(decidingVerdicts([key(false, 'wrong'), key(false, 'valid')]), ['valid'])
  assert.deepEqual(decidingVerdicts([key(false, 'wrong'), key(false, 'unanswered')]), ['unanswered'])
  assert.deepEqual(decidingVerdicts([]), ['wrong'])
})

test('background checks slow down: every 10 minutes for a day, hourly for a week, then daily', () => {
  const [minute, hour, day] = [60_000, 3_600_000, 24 * 3_600_000]
  const paces: [age: number, wait: number][] = [
    [0, 10 * minute],
    [day - 1, 10 * minute],
    [day, hour],
    [8 * day - 1, hour],
    [8 * day, day],
    [100 * day, day],
  ]
  for (const [age, wait] of paces) assert.equal(nextCheckAt(false, 0, age), age + wait, `age ${age}`)
  assert.equal(nextCheckAt(true, 0, 0), day)
})
