import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { plantFiles } from '../../test/support/plant-files.ts'
import { type Lock, releaseLock, releaseManifest } from './manifest.ts'
import { buildSources, toJavaScript } from './sources.ts'

test('a source loses its types and keeps its lines; names of sources end in .js', () => {
  const source = [
    "import { type A, b } from './base/b.ts'",
    "import type { C } from '../c.ts'",
    'export const d: A = b as unknown as A',
    "const program = join(import.meta.dirname, 'thread.ts')",
    "const later = await import('./later.ts')",
    "const text = 'a sentence that ends with .ts'",
  ].join('\n')
  const lines = toJavaScript(source)
    .split('\n')
    .map((line) => line.replaceAll(/ +/g, ' ').trim())
  assert.deepEqual(lines, [
    "import { b } from './base/b.js'",
    '',
    'export const d = b',
    "const program = join(import.meta.dirname, 'thread.js')",
    "const later = await import('./later.js')",
    "const text = 'a sentence that ends with .ts'",
  ])
})

test('tests are left out, other files are taken as they are', (context) => {
  const root = plantFiles(context, {
    'src/main.ts': "import './a/b.ts'\n",
    'src/a/b.ts': 'export const x: number = 1\n',
    'src/a/b.test.ts': '',
    'src/a/rfc.vectors.ts': '',
    'src/a/types.d.ts': '',
    'src/a/0001-first.sql': 'SELECT 1',
  })
  buildSources(join(root, 'src'), join(root, 'dist'))
  const read = (name: string) => readFileSync(join(root, 'dist', name), 'utf8')
  assert.equal(read('main.js'), "import './a/b.js'\n")
  assert.equal(read('a/0001-first.sql'), 'SELECT 1')
  for (const name of ['a/b.test.js', 'a/rfc.vectors.js', 'a/types.d.js', 'main.ts'])
    assert.ok(!existsSync(join(root, 'dist', name)), name)
})

test('the manifest and the lock file have nothing that is for development', () => {
  const manifest = releaseManifest({
    ...{ name: 'a', version: '1.0.0', private: true, scripts: { prepare: 'x' } },
    ...{ dependencies: { b: '1.0.0' }, devDependencies: { c: '1.0.0' }, allowScripts: {} },
  })
  assert.deepEqual(manifest, { name: 'a', version: '1.0.0', dependencies: { b: '1.0.0' } })
  const lock: Lock = {
    lockfileVersion: 3,
    packages: {
      '': { dependencies: { b: '1.0.0' }, devDependencies: { c: '1.0.0' } },
      'node_modules/b': { version: '1.0.0' },
      'node_modules/c': { version: '1.0.0', dev: true },
      'node_modules/typescript': { version: '7.0.0', devOptional: true },
      'node_modules/@typescript/typescript-linux-x64': { version: '7.0.0', optional: true },
    },
  }
  assert.deepEqual(releaseLock(lock).packages, {
    '': { dependencies: { b: '1.0.0' } },
    'node_modules/b': { version: '1.0.0' },
  })
})
