import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { parseEnv } from 'node:util'
import { temporaryFolder } from '../../../test/support/stores.ts'
import { changedNames, changedText, readEnvFile, writeEnvFile } from './env-file.ts'

const TEXT = `# Settings.
  # a comment that stays

#SENDWRIGHT_HOSTNAME=mail.example.com
SENDWRIGHT_DELIVERY=capture
export OTHER_THING = "kept  as it is" # why
SENDWRIGHT_IPS=192.0.2.1
SENDWRIGHT_IPS=192.0.2.2
`

const CHANGES: [what: string, changes: [string, string | null][], lines: [string, string][]][] = [
  [
    'a setting is replaced in its line',
    [['SENDWRIGHT_DELIVERY', 'direct']],
    [['SENDWRIGHT_DELIVERY=capture', 'SENDWRIGHT_DELIVERY=direct']],
  ],
  [
    'a new one follows the comment that mentions it',
    [['SENDWRIGHT_HOSTNAME', 'm.example']],
    [
      [
        '#SENDWRIGHT_HOSTNAME=mail.example.com',
        '#SENDWRIGHT_HOSTNAME=mail.example.com\nSENDWRIGHT_HOSTNAME=m.example',
      ],
    ],
  ],
  [
    'another one comes last',
    [['SENDWRIGHT_PORT', '80']],
    [['SENDWRIGHT_IPS=192.0.2.2', 'SENDWRIGHT_IPS=192.0.2.2\nSENDWRIGHT_PORT=80']],
  ],
  [
    'one that goes back to its default becomes a comment',
    [['SENDWRIGHT_DELIVERY', null]],
    [['SENDWRIGHT_DELIVERY=capture', '#SENDWRIGHT_DELIVERY=capture']],
  ],
  [
    'of two lines the last counts',
    [['SENDWRIGHT_IPS', '192.0.2.3']],
    [['SENDWRIGHT_IPS=192.0.2.2', 'SENDWRIGHT_IPS=192.0.2.3']],
  ],
  [
    'the same value changes nothing',
    [
      ['SENDWRIGHT_DELIVERY', 'capture'],
      ['SENDWRIGHT_PORT', null],
    ],
    [],
  ],
]

for (const [what, changes, lines] of CHANGES)
  test(what, () => {
    const expected = lines.reduce((text, [from, to]) => text.replace(from, to), TEXT)
    assert.equal(changedText(TEXT, new Map(changes)), expected)
    assert.equal(changedNames(TEXT, new Map(changes)).length, lines.length)
  })

test('whatever is written is read back the same', () => {
  for (const value of [
    'a b',
    'x#y',
    '$HOME `id`',
    '"quoted"',
    'back\\slash',
    'smtp://u:p%40@h:25',
    'a=b&c?d*e',
    '',
  ])
    assert.equal(parseEnv(changedText('', new Map([['A', value]])))['A'], value)
  for (const value of ["it's", 'two\nlines', 'nul\0'])
    assert.throws(() => changedText('', new Map([['A', value]])), /A: the value has a quote or a line break/)
})

test('the file is replaced in one step: its mode stays, a new one is private, none is left behind', async (t) => {
  const folder = await temporaryFolder(t)
  const file = join(folder, 'new.env')
  assert.equal(readEnvFile(file), '')
  writeEnvFile(file, 'A=1\n')
  assert.equal(statSync(file).mode & 0o777, 0o600)
  const shared = join(folder, 'shared.env')
  writeFileSync(shared, 'A=1\n', { mode: 0o644 })
  writeEnvFile(shared, 'A=2\n')
  assert.equal(readFileSync(shared, 'utf8'), 'A=2\n')
  assert.equal(statSync(shared).mode & 0o777, 0o640)
  mkdirSync(join(folder, 'folder.env'))
  assert.throws(() => writeEnvFile(join(folder, 'folder.env'), 'A=1\n'), /Cannot write the settings/)
  symlinkSync(shared, join(folder, 'link.env'))
  assert.throws(() => readEnvFile(join(folder, 'link.env')), /is a symbolic link; name the file/)
  assert.throws(() => writeEnvFile(join(folder, 'link.env'), 'A=3\n'), /is a symbolic link; name the file/)
  assert.throws(() => readEnvFile(join(folder, 'folder.env')), /it is no file/)
  assert.equal(readFileSync(shared, 'utf8'), 'A=2\n')
  assert.throws(() => writeEnvFile(join(folder, 'absent', 'a.env'), 'A=1\n'), /Cannot write the settings/)
  assert.deepEqual(readdirSync(folder).sort(), ['folder.env', 'link.env', 'new.env', 'shared.env'])
})
