/** What every command says when the machine around it is not as it should be: one sentence, never a stack. */
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { COMMANDS } from '../../src/cli/commands.ts'
import { type CommandCase, runCases } from '../support/command-cases.ts'
import { ownAddress } from '../support/service.ts'
import { assertPlain, refusedStart } from '../support/starts.ts'
import { temporaryFolder } from '../support/stores.ts'

interface Broken extends CommandCase {
  err: RegExp
  /** Default: 1. */
  code?: number
}

/** By command; `data` has a secret and no service, below `file` nothing can be created. */
function cases(folder: string): Record<string, Broken[]> {
  const file = join(folder, 'file')
  const below = join(file, 'x')
  const data = join(folder, 'data')
  const inFile = { SENDWRIGHT_DATA: below }
  const mail = ['--from', 'a@own.example', '--to', 'b@own.example', '--subject', 'Hello']
  const away = /^Cannot reach the service through .*: is it running/
  const noSecret = /^Cannot read the sealing secret in .*: ENOTDIR/
  const host = ['--yes', '--host', 'mail.own.example']
  return {
    setup: [
      {
        args: [...host, '--https', 'off', '--file', join(below, 'x.env')],
        err: /^Cannot read the settings in/,
      },
      {
        args: [...host, '--https', 'off', '--file', folder],
        err: /^Cannot read the settings in .*no file\n$/,
      },
      {
        args: [...host, '--https', 'off', '--file', join(folder, 'a.env')],
        env: inFile,
        err: /^Cannot open the data folder, as SENDWRIGHT_DATA says: Cannot create the folder .*\(ENOTDIR\)/,
      },
    ],
    send: [
      {
        args: [...mail, '--attach', '/nope'],
        err: /^Cannot open "\/nope": no such file or directory \(ENOENT\)/,
      },
      { args: [...mail, '--text-file', '/nope'], err: /^Cannot open "\/nope": no such file/ },
      { args: ['--file', '/nope'], err: /^Cannot open "\/nope": no such file/ },
      { args: mail, err: away },
    ],
    keys: [
      { args: ['list'], err: away },
      { args: ['list'], env: inFile, err: noSecret },
    ],
    queue: [
      { args: [], err: away },
      { args: ['list'], env: inFile, err: noSecret },
    ],
    events: [{ args: ['--follow'], err: away }],
    trace: [{ args: ['id@own.example'], err: away }],
    top: [
      { args: [], err: away },
      {
        args: ['--service', 'http://127.0.0.1:1', '--key-file', '/nope'],
        code: 2,
        err: /^Cannot read the key: ENOENT/,
      },
      {
        args: ['--service', 'http://127.0.0.1:1', '--key-file', join(folder, 'data/secret')],
        err: /^Cannot reach the service at http:\/\/127\.0\.0\.1:1 \(/,
      },
    ],
    domains: [{ args: [], err: away }],
    suppressions: [
      { args: ['export', 'bounces', '--domain', 'own.example'], err: away },
      {
        args: ['import', 'bounces', '/nope', '--domain', 'own.example'],
        err: /^Cannot open "\/nope": no such file/,
      },
    ],
    routes: [{ args: [], err: away }],
    relays: [{ args: [], err: away }],
    dns: [
      { args: ['providers'], err: away },
      {
        args: ['set', 'own', '--kind', 'desec', '--secret-file', '/nope'],
        err: /^Cannot read the secret in "\/nope": ENOENT/,
      },
    ],
    mcp: [
      {
        args: ['--service', 'http://127.0.0.1:1', '--key-file', '/nope'],
        code: 2,
        err: /^Cannot read the key: ENOENT/,
      },
    ],
    people: [
      { args: ['erase', 'alice@example.org'], err: away },
      { args: ['export', 'alice@example.org', '--file', '/nope/a.tar.gz'], err: away },
    ],
    'login-link': [{ args: [], err: away }],
    backup: [{ args: [join(folder, 'copy')], env: inFile, err: /holds no database/ }],
    verify: [{ args: [below], err: /holds no whole backup|not a directory/ }],
    restore: [{ args: [below], err: /not empty|holds no whole backup/ }],
    migrate: [
      { args: ['--to', `sqlite:${data}`], err: /both SQLite/ },
      { args: ['--to-file', '/nope'], code: 2, err: /^Cannot read the address in "\/nope": ENOENT/ },
    ],
    export: [
      { args: ['--to', below], err: /^Cannot create the folder ".*\/file\/x": not a directory \(ENOTDIR\)/ },
      { args: ['--to', file], err: /^Cannot create the folder ".*\/file": file already exists \(EEXIST\)/ },
      { args: ['--to', below], env: inFile, err: noSecret },
    ],
    import: [
      { args: ['folder', below], code: 2, err: /has no files of an export/ },
      { args: ['mailgun', '--source-key-file', '/nope'], code: 2, err: /^Cannot read the key: ENOENT/ },
    ],
    doctor: [{ args: [], env: { SENDWRIGHT_PORT: 'x' }, err: /SENDWRIGHT_PORT/ }],
    health: [{ args: [], err: /^No answer from/ }],
    pods: [
      {
        args: ['list'],
        env: { SENDWRIGHT_DATABASE_URL: 'postgres://a:b@127.0.0.1:1/x' },
        err: /^Cannot reach PostgreSQL at 127\.0\.0\.1:1/,
      },
    ],
    shaping: [{ args: ['check', '/nope'], err: /^\/nope has faults:\n {2}ENOENT/ }],
  }
}

test('no command shows a stack when files, folders or the service are missing', async (t) => {
  const folder = await temporaryFolder(t)
  mkdirSync(join(folder, 'data'))
  writeFileSync(join(folder, 'data/secret'), `${'s'.repeat(43)}\n`)
  writeFileSync(join(folder, 'file'), 'no folder')
  const all = cases(folder)
  const others = ['serve', 'completion'] // the start below; it reads nothing
  assert.deepEqual(
    Object.keys(all).toSorted(),
    Object.keys(COMMANDS)
      .filter((name) => !others.includes(name))
      .toSorted(),
    'a new command needs cases here',
  )
  const lines = Object.entries(all).flatMap(([name, list]) =>
    list.map((one) => ({ ...one, args: [name, ...one.args] })),
  )
  const settings = {
    SENDWRIGHT_DATA: join(folder, 'data'),
    SENDWRIGHT_HOST: ownAddress(),
    SENDWRIGHT_PORT: '1',
    SENDWRIGHT_DNS: '127.0.0.1:1',
    SENDWRIGHT_DNSBL_ZONES: 'off',
  }
  for (const [at, { code, err }] of (await runCases(settings, lines)).entries()) {
    const { args, code: wanted = 1, err: says } = lines[at] as Broken
    const what = `sendwright ${args.join(' ')}: ${err}`
    assert.equal(code, wanted, what)
    assert.match(err, says, what)
    assert.doesNotMatch(err, /^ +at .*:\d+/m, what)
  }
})

test('a start names the setting of a data folder that cannot be made', async (t) => {
  const file = join(await temporaryFolder(t), 'file')
  writeFileSync(file, 'no folder')
  const expected = /^Cannot open the data folder, as SENDWRIGHT_DATA says: Cannot create the folder/
  for (const folder of [file, join(file, 'x')])
    assertPlain(
      await refusedStart({ SENDWRIGHT_DATA: folder, SENDWRIGHT_HOSTNAME: 'm.example.com' }),
      expected,
    )
})
