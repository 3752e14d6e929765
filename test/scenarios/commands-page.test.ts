import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { commandsPage } from '../../scripts/commands-page.ts'

const PAGE = join(resolve(import.meta.dirname, '../..'), 'docs/commands.md')

test('docs/commands.md has the help of every command as it is; `node scripts/commands-page.ts` renews it', async () => {
  const page = await commandsPage()
  for (const name of ['serve', 'send', 'backup', 'doctor', 'completion'])
    assert.match(page, new RegExp(`^## .*\\b${name}\\b`, 'm'))
  assert.equal(readFileSync(PAGE, 'utf8'), page)
})
