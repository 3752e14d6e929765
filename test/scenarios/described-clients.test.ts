/** A client in TypeScript whose types are generated from the description: they compile, and fit what is answered. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { copyFile, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { startTestService } from '../support/service.ts'
import { temporaryFolder } from '../support/stores.ts'

const run = promisify(execFile)
const ROOT = join(import.meta.dirname, '../..')
const CLIENTS = join(ROOT, 'test/clients')

test('thirty operations are called with generated types', async (t) => {
  const { url, key, domain, call } = await startTestService(t)
  const folder = await temporaryFolder(t)
  await writeFile(join(folder, 'openapi.json'), (await call('GET', '/openapi.json', { key: null })).text)
  await copyFile(join(CLIENTS, 'calls.ts'), join(folder, 'calls.ts'))
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  const { compilerOptions } = JSON.parse(await readFile(join(ROOT, 'tsconfig.json'), 'utf8'))
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }))
  await writeFile(join(folder, 'package.json'), '{"type":"module"}')
  const node = (...flags: string[]) => run(process.execPath, flags, { cwd: folder })
  await node(
    '--import',
    join(CLIENTS, 'typescript-hook.mjs'),
    join(ROOT, 'node_modules/openapi-typescript/bin/cli.js'),
    'openapi.json',
    '-o',
    'generated.d.ts',
  )
  await node(join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', '.').catch((error) =>
    assert.fail(error.stdout),
  )
  assert.equal((await node('calls.ts', url, key, domain)).stdout, '31')
})
