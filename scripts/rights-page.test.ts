import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { startTestService } from '../test/support/service.ts'
import { RIGHTS_PAGE, rightsPage } from './rights-page.ts'

test('docs/rights.md is what the rights table says; else run scripts/rights-page.ts', async (t) => {
  const service = await startTestService(t)
  const description = (await service.call('GET', '/openapi.json', { key: null })).body
  assert.equal(await readFile(RIGHTS_PAGE, 'utf8'), rightsPage(description))
})

test('an operation without rights is named', () => {
  assert.throws(() => rightsPage({ paths: { '/v1/x': { get: {} } } }), /GET `\/v1\/x` has no rights/)
})
