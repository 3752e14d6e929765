import assert from 'node:assert/strict'
import { isAscii } from 'node:buffer'
import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, realpathSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { plantFiles } from '../../test/support/plant-files.ts'
import { bundleSources } from './bundle.ts'
import { type Lock, releaseLock, releaseManifest } from './manifest.ts'

test('a bundle holds its libraries, finds its files and threads elsewhere, and leaves tests out', async (t) => {
  const root = realpathSync(
    plantFiles(t, {
      'src/main.ts': "import { told } from './a/b.ts'\nconsole.log(await told() satisfies string)\n",
      'src/a/b.ts': `
        import { readFileSync } from 'node:fs'
        import { join } from 'node:path'
        import { Worker } from 'node:worker_threads'
        import { word } from 'library'
        import { twice } from '../base/twice.ts'
        const text = readFileSync(new URL('words.txt', import.meta.url), 'utf8')
        const übrig = /^[→😀]{2}$/u.test('→😀') ? 'é' : ''
        export async function told(): Promise<string> {
          const thread = new Worker(join(import.meta.dirname, 'some-thread.ts'))
          const heard = await new Promise<string>((done) => thread.once('message', done))
          return twice(text + word + heard) + übrig
        }`,
      'src/a/some-thread.ts': `
        import { parentPort } from 'node:worker_threads'
        import { twice } from '../base/twice.ts'
        parentPort?.postMessage(twice('c' as string))`,
      'src/base/twice.ts': 'export const twice = (text: string): string => text + text\n',
      'src/a/b.test.ts': '',
      'src/a/words.txt': 'a',
      'node_modules/library/package.json':
        '{ "name": "library", "version": "1.0.0", "license": "MIT", "exports": "./index.js" }',
      'node_modules/library/index.js': "exports.word = 'b'\n",
      'node_modules/library/LICENSE': 'Do as you like.\n',
    }),
  )
  await bundleSources(join(root, 'src'), join(root, 'dist'))
  renameSync(join(root, 'dist'), join(root, 'moved'))
  renameSync(join(root, 'src'), join(root, 'src-away'))
  renameSync(join(root, 'node_modules'), join(root, 'modules-away'))
  const { stdout } = await promisify(execFile)(process.execPath, [join(root, 'moved/main.js')])
  assert.equal(stdout, 'abccabccé\n')
  assert.match(
    readFileSync(join(root, 'moved/licenses.md'), 'utf8'),
    /## library 1\.0\.0 \(MIT\)\n\nDo as you like\./,
  )
  assert.ok(!existsSync(join(root, 'moved/a/b.test.js')))
  const programs = readdirSync(join(root, 'moved'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.js'))
    .map((name) => readFileSync(join(root, 'moved', name)))
  assert.ok(programs.every(isAscii), 'its source takes one byte a character in memory')
})

test('the manifest and the lock file have the libraries outside the program and what these need', () => {
  const manifest = releaseManifest(
    {
      ...{ name: 'a', version: '1.0.0', private: true, scripts: { prepare: 'x' } },
      ...{ dependencies: { b: '1.0.0', within: '1.0.0' }, devDependencies: { c: '1.0.0' }, allowScripts: {} },
      overrides: { d: '2.0.0', c: { d: '$d' } },
    },
    ['b'],
  )
  assert.deepEqual(manifest, {
    ...{ name: 'a', version: '1.0.0', dependencies: { b: '1.0.0' } },
    overrides: { d: '2.0.0' },
  })
  const lock: Lock = {
    lockfileVersion: 3,
    packages: {
      '': {
        dependencies: { b: '1.0.0', within: '1.0.0' },
        devDependencies: { c: '1.0.0' },
        optionalDependencies: { runtime: '1.0.0', 'not-locked': '1.0.0' },
      },
      'node_modules/b': { version: '1.0.0', dependencies: { d: '1.0.0', e: '1.0.0' } },
      'node_modules/b/node_modules/d': { version: '1.0.0', dependencies: { e: '1.0.0' } },
      'node_modules/c': { version: '1.0.0', dev: true },
      'node_modules/d': { version: '2.0.0' },
      'node_modules/e': { version: '1.0.0', dependencies: { b: '1.0.0' } },
      'node_modules/runtime': { version: '1.0.0', optional: true },
      'node_modules/within': { version: '1.0.0', dependencies: { d: '2.0.0' } },
    },
  }
  const { '': root, ...packages } = releaseLock(lock, ['b']).packages
  assert.deepEqual(root, {
    dependencies: { b: '1.0.0' },
    optionalDependencies: { runtime: '1.0.0', 'not-locked': '1.0.0' },
  })
  assert.deepEqual(Object.keys(packages), [
    'node_modules/b',
    'node_modules/b/node_modules/d',
    'node_modules/e',
    'node_modules/runtime',
  ])
})
