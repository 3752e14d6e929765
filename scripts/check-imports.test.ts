import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { plantFiles } from '../test/support/plant-files.ts'
import { importFaults } from './check-imports.ts'

const FAULTS: [name: string, file: string, source: string, said: RegExp][] = [
  [
    'a protocol importing the store',
    'protocols/smtp/a.ts',
    "import { b } from '../../platform/store/b.ts'",
    /protocols\/smtp must not import platform\/store/,
  ],
  [
    'a protocol importing another',
    'protocols/dkim/a.ts',
    "import { b } from '../mime/b.ts'",
    /protocols\/dkim must not import protocols\/mime/,
  ],
  [
    'a type',
    'base/a.ts',
    "import type { B } from '../protocols/smtp/b.ts'",
    /base must not import protocols\/smtp/,
  ],
  [
    'names on several lines',
    'platform/http/a.ts',
    "import {\n  b,\n} from '../../watching/events/b.ts'",
    /platform\/http must not import watching\/events/,
  ],
  [
    'a re-export',
    'mail/deliver/a.ts',
    "export { b } from '../../sending/domains/b.ts'",
    /mail\/deliver must not import sending\/domains/,
  ],
  [
    'a dynamic import',
    'protocols/dns/a.ts',
    "const b = await import('../../platform/config/b.ts')",
    /protocols\/dns must not import platform\/config/,
  ],
  ['a bare import', 'platform/store/a.ts', "import '../../main.ts'", /platform\/store must not import main/],
  [
    'a path out of src',
    'protocols/smtp/a.ts',
    "import { b } from '../../../test/b.ts'",
    /protocols\/smtp must not import \.\./,
  ],
  [
    'a resource importing one of its own layer',
    'sending/lists/a.ts',
    "import '../templates/b.ts'",
    /sending\/lists must not import sending\/templates/,
  ],
  [
    'a resource importing one above it',
    'sending/suppressions/a.ts',
    "import '../../mail/accept/b.ts'",
    /sending\/suppressions must not import mail\/accept/,
  ],
  ['a folder without a layer', 'sending/novelty/a.ts', '', /"sending\/novelty\/a" has no layer/],
]
for (const [name, file, source, said] of FAULTS) {
  test(`${name} is found`, (context) => {
    const faults = importFaults(plantFiles(context, { [file]: `const before = 1\n${source}\n` }))
    assert.equal(faults.length, 1)
    assert.match(String(faults[0]), said)
    assert.match(String(faults[0]), new RegExp(`^src/${file}`))
  })
}

test('imports downward, within a folder, within parentheses, and those of tests are fine', (context) => {
  const root = plantFiles(context, {
    'mail/accept/a.ts':
      "import '../../platform/store/x.ts'\nimport '../../sending/domains/names/x.ts'\nimport './b.ts'\nimport 'node:fs'\n",
    'protocols/smtp/deep/a.ts': "import '../reply.ts'\nimport '../../../base/time/clock.ts'\n",
    'protocols/smtp/a.test.ts': "import '../../platform/store/x.ts'\n",
    'mail/deliver/a.ts': "import '../../watching/events/x.ts'\n",
    'service.ts': "import './mail/accept/a.ts'\n",
  })
  assert.deepEqual(importFaults(root), [])
})

test('the command prints each fault and ends with 1', (context) => {
  const root = plantFiles(context, { 'base/a.ts': "import '../protocols/smtp/b.ts'\n" })
  const command = join(import.meta.dirname, 'check-imports.ts')
  const { status, stderr } = spawnSync(process.execPath, [command, root], { encoding: 'utf8' })
  assert.equal(status, 1)
  assert.equal(stderr, 'src/base/a.ts: base must not import protocols/smtp (../protocols/smtp/b.ts)\n')
})
