import assert from 'node:assert/strict'
import { test } from 'node:test'
import { factsOf } from './received-copy.ts'

test('a long field is judged further than it is kept', () => {
  const results = `mx.example; ${'x'.repeat(600)}; spf=pass; dkim=fail; dmarc=none`
  const facts = factsOf(`Authentication-Results: ${results}\r\nSubject: no field of a receiver`)
  assert.deepEqual([facts.spf, facts.dkim, facts.dmarc], ['pass', 'fail', 'none'])
  assert.deepEqual(facts.headers, [{ key: 'Authentication-Results', value: results.slice(0, 500) }])
})
