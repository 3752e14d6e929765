import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type TestContext, test } from 'node:test'
import { plantFiles } from '../test/support/plant-files.ts'

const LAUNCHER = resolve(import.meta.dirname, '../bin/sendwright')
/** Where `sh`, `dirname` and `readlink` are. */
const TOOLS = '/usr/bin:/bin'

/** An installation in a folder with a space, and a folder `path` for PATH with two links on the way to it. */
function install(context: TestContext): { app: string; path: string } {
  const root = plantFiles(context, {
    'my app/src/main.ts':
      'console.log(JSON.stringify({ words: process.argv.slice(2), flags: process.execArgv }))\n',
  })
  const app = join(root, 'my app')
  const path = join(root, 'path')
  for (const folder of [join(app, 'bin'), join(app, 'node_modules/.bin'), path])
    mkdirSync(folder, { recursive: true })
  copyFileSync(LAUNCHER, join(app, 'bin/sendwright'))
  symlinkSync('../my app/bin/sendwright', join(path, 'first'))
  symlinkSync(join(path, 'first'), join(path, 'sendwright'))
  return { app, path }
}

/** A `node` that only tells its version. */
function plantNode(folder: string, version: string): void {
  writeFileSync(join(folder, 'node'), `#!/bin/sh\necho ${version}\n`)
  chmodSync(join(folder, 'node'), 0o755)
}

function run(path: string, ...words: string[]): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(join(path, 'sendwright'), words, {
    cwd: '/',
    encoding: 'utf8',
    env: { PATH: `${path}:${TOOLS}` },
  })
}

test('called through links, it passes every argument on as it is', (context) => {
  const { app, path } = install(context)
  symlinkSync(process.execPath, join(app, 'node_modules/.bin/node'))
  const words = ['send', 'a b', '', '*', "it's"]
  const { status, stdout } = run(path, ...words)
  assert.deepEqual(JSON.parse(stdout), { words, flags: [] })
  assert.equal(status, 0)
})

test('without an installed Node it takes the one in PATH', (context) => {
  const { path } = install(context)
  symlinkSync(process.execPath, join(path, 'node'))
  assert.deepEqual(JSON.parse(run(path, 'keys', 'list').stdout), { words: ['keys', 'list'], flags: [] })
})

test('the service has the flags of npm start', (context) => {
  const { app, path } = install(context)
  symlinkSync(process.execPath, join(app, 'node_modules/.bin/node'))
  const file = readFileSync(resolve(import.meta.dirname, '../package.json'), 'utf8')
  const { start } = (JSON.parse(file) as { scripts: { start: string } }).scripts
  const flags = start.split(' ').filter((word) => word.startsWith('--'))
  assert.deepEqual(JSON.parse(run(path, 'serve').stdout), { words: ['serve'], flags })
})

test('an old Node, or a strange answer, is refused with what to do', (context) => {
  const { path } = install(context)
  for (const version of ['v20.20.2', 'v9.0.0', 'v23.11.1', 'strange', '']) {
    plantNode(path, version)
    const { status, stdout, stderr } = run(path, 'serve')
    assert.equal(status, 1, version)
    assert.equal(stdout, '')
    assert.match(stderr, /needs Node 24 or newer, found .*run 'npm ci' in .*my app/)
  }
})
