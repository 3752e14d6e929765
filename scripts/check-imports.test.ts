import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { plantFiles } from '../test/support/plant-files.ts'
import { importFaults } from './check-imports.ts'

const FAULTS: [name: string, file: string, source: string, said: RegExp][] = [
  [
    'a protocol importing the store',
    'smtp/a.ts',
    "import { b } from '../store/b.ts'",
    /smtp must not import store/,
  ],
  [
    'a protocol importing another',
    'dkim/a.ts',
    "import { b } from '../mime/b.ts'",
    /dkim must not import mime/,
  ],
  ['a type', 'base/a.ts', "import type { B } from '../smtp/b.ts'", /base must not import smtp/],
  [
    'names on several lines',
    'http/a.ts',
    "import {\n  b,\n} from '../events/b.ts'",
    /http must not import events/,
  ],
  ['a re-export', 'delivery/a.ts', "export { b } from '../domains/b.ts'", /delivery must not import domains/],
  ['a dynamic import', 'dns/a.ts', "const b = await import('../config/b.ts')", /dns must not import config/],
  ['a bare import', 'store/a.ts', "import '../main.ts'", /store must not import main/],
  ['a path out of src', 'smtp/a.ts', "import { b } from '../../test/b.ts'", /smtp must not import \.\./],
  [
    'a resource importing one of its own layer',
    'lists/a.ts',
    "import '../templates/b.ts'",
    /lists must not import templates/,
  ],
  [
    'a resource importing one above it',
    'suppressions/a.ts',
    "import '../messages/b.ts'",
    /suppressions must not import messages/,
  ],
  ['a folder without a rank', 'novelty/a.ts', '', /folder "novelty" has no rank/],
]
for (const [name, file, source, said] of FAULTS) {
  test(`${name} is found`, (context) => {
    const faults = importFaults(plantFiles(context, { [file]: `const before = 1\n${source}\n` }))
    assert.equal(faults.length, 1)
    assert.match(String(faults[0]), said)
    assert.match(String(faults[0]), new RegExp(`^src/${file}`))
  })
}

test('imports downward, within a folder, between engine folders, and those of tests are fine', (context) => {
  const root = plantFiles(context, {
    'messages/a.ts': "import '../store/x.ts'\nimport '../domains/x.ts'\nimport './b.ts'\nimport 'node:fs'\n",
    'smtp/deep/a.ts': "import '../reply.ts'\nimport '../../base/clock.ts'\n",
    'smtp/a.test.ts': "import '../store/x.ts'\n",
    'delivery/a.ts': "import '../events/x.ts'\n",
    'service.ts': "import './messages/a.ts'\n",
  })
  assert.deepEqual(importFaults(root), [])
})

test('the command prints each fault and ends with 1', (context) => {
  const root = plantFiles(context, { 'base/a.ts': "import '../smtp/b.ts'\n" })
  const command = join(import.meta.dirname, 'check-imports.ts')
  const { status, stderr } = spawnSync(process.execPath, [command, root], { encoding: 'utf8' })
  assert.equal(status, 1)
  assert.equal(stderr, 'src/base/a.ts: base must not import smtp (../smtp/b.ts)\n')
})
