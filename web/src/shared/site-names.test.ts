import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { siteName } from './site-names.ts'

const SHAPING = join(import.meta.dirname, '../../../src/mail/deliver/shaping/shaping.json')

test('each provider of the shaping has a name, and other sites keep theirs', async () => {
  const { providers } = JSON.parse(await readFile(SHAPING, 'utf8')) as { providers: { site: string }[] }
  const names = providers.map(({ site }) => siteName(site))
  assert.deepEqual(
    providers.filter(({ site }) => siteName(site) === site),
    [],
  )
  assert.equal(new Set(names).size, names.length, 'names are distinct')
  assert.equal(siteName('mx.example.com'), 'mx.example.com')
  assert.equal(siteName('relay:ses'), 'relay ses')
})
