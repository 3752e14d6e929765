import assert from 'node:assert/strict'
import { mkdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from '../../test/support/stores.ts'
import { writeBill } from './bill.ts'

const ROOT = resolve(import.meta.dirname, '../..')

interface Component {
  name: string
  version: string
  hashes?: { alg: string }[]
}

test('the bill of materials has the product, each library with its version and digest, and nothing for development', async (t) => {
  const folder = await temporaryFolder(t)
  const work = join(folder, 'work')
  mkdirSync(work)
  const bill = JSON.parse(readFileSync(writeBill(ROOT, folder, work), 'utf8'))
  const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  const { name, version, type } = bill.metadata.component
  assert.deepEqual(
    [bill.bomFormat, name, version, type],
    ['CycloneDX', 'sendwright', manifest.version, 'application'],
  )
  const components: Component[] = bill.components
  for (const [library, exact] of Object.entries(manifest.dependencies)) {
    const found = components.find((component) => component.name === library && component.version === exact)
    assert.equal(found?.hashes?.[0]?.alg, 'SHA-512', library)
  }
  const names = new Set(components.map((component) => component.name))
  assert.deepEqual(
    ['vite', 'playwright-core'].filter((tool) => names.has(tool)),
    [],
  )
})
