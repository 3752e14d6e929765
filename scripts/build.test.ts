import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join, resolve } from 'node:path'
import { type TestContext, test } from 'node:test'
import { plantFiles } from '../test/support/plant-files.ts'

const PROJECT = resolve(import.meta.dirname, '..')
const SOURCES = {
  'web/index.html': '<!doctype html><title>Planted</title><script type="module" src="/main.ts"></script>',
  'web/main.ts': 'const word: string = "built"\ndocument.title = word\n',
}

function plant(context: TestContext, files: Record<string, string>, withVite = true): string {
  const root = plantFiles(context, files)
  mkdirSync(join(root, 'node_modules'))
  if (withVite) symlinkSync(join(PROJECT, 'node_modules/vite'), join(root, 'node_modules/vite'))
  return root
}

function build(root: string): { status: number | null; said: string } {
  const command = [join(PROJECT, 'scripts/build.mjs'), root]
  const { status, stdout, stderr } = spawnSync(process.execPath, command, { encoding: 'utf8' })
  return { status, said: stdout + stderr }
}

test('the dashboard is built once, and again when a source is younger', (context) => {
  const root = plant(context, SOURCES)
  assert.deepEqual(build(root), { status: 0, said: '' })
  const page = join(root, 'web/dist/index.html')
  assert.match(readFileSync(page, 'utf8'), /<title>Planted<\/title>/)
  const first = statSync(page).mtimeMs
  assert.equal(build(root).status, 0)
  assert.equal(statSync(page).mtimeMs, first)
  const later = new Date(first + 5_000)
  utimesSync(join(root, 'web/main.ts'), later, later)
  assert.equal(build(root).status, 0)
  assert.ok(statSync(page).mtimeMs > first)
})

test('the program is built beside its sources, and again when one of them changed', (context) => {
  const root = plant(context, {
    'src/main.ts': "console.log('a' satisfies string)\n",
    'package-lock.json': '{}',
  })
  mkdirSync(join(root, 'scripts'))
  for (const name of ['scripts/release', 'node_modules/rolldown'])
    symlinkSync(join(PROJECT, name), join(root, name))
  const main = join(root, 'dist/main.js')
  const said = () => spawnSync(process.execPath, [main], { encoding: 'utf8' }).stdout
  assert.deepEqual(build(root), { status: 0, said: '' })
  assert.equal(said(), 'a\n')
  const first = statSync(main).mtimeMs
  assert.equal(build(root).status, 0)
  assert.equal(statSync(main).mtimeMs, first)
  // As old as an archive has it.
  writeFileSync(join(root, 'src/main.ts'), "console.log('b' satisfies string)\n")
  utimesSync(join(root, 'src/main.ts'), new Date(0), new Date(0))
  assert.equal(build(root).status, 0)
  assert.equal(said(), 'b\n')
  writeFileSync(join(root, 'src/main.ts'), "import './missing.ts'\n")
  assert.match(build(root).said, /missing\.ts[\s\S]*Cannot build src\//)
  assert.equal(said(), 'b\n')
})

test('nothing happens without sources or without Vite', (context) => {
  const withoutVite = plant(context, SOURCES, false)
  assert.deepEqual(build(withoutVite), { status: 0, said: '' })
  assert.ok(!existsSync(join(withoutVite, 'web/dist')))
  assert.deepEqual(build(plant(context, {})), { status: 0, said: '' })
})

test('a build error is loud', (context) => {
  const root = plant(context, SOURCES)
  writeFileSync(join(root, 'web/main.ts'), "import './missing.ts'\n")
  const { status, said } = build(root)
  assert.notEqual(status, 0)
  assert.match(said, /missing\.ts/)
  assert.match(said, /Cannot build web\//)
})
