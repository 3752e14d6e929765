/** What holds for all commands: `--json`, exit codes, wrong arguments, help, and completion in bash. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { COMMANDS } from '../../src/cli/commands.ts'
import type { CommandResult } from '../support/command.ts'
import { type CommandCase, runCases } from '../support/command-cases.ts'
import { startTestService } from '../support/service.ts'
import { temporaryFolder } from '../support/stores.ts'

const NAMES = Object.keys(COMMANDS)
/** They print no facts. */
const WITHOUT_JSON = ['serve', 'completion', 'mcp']
/** Counts by store only where something was found. */
const PERSON_TASK = 'address_hash counts created_at dry_run finished_at id kind state'.split(' ')
const SPOILED_LIMITS = '{"version": "bad", "default": {"connections": "ten"}}'

interface Expected extends CommandCase {
  /** Default: 0. */
  code?: number
  /** Keys of the document on standard output, `[]` for a list; null: nothing is printed there. */
  json: string[] | '[]' | null
  /** On standard error; nothing where it is missing. */
  err?: RegExp
}

interface Given {
  folder: string
  domain: string
  keyId: string
  messageId: string
}

/** By command: each form of each, and how it fails. Later ones use what earlier ones have made. */
const cases = ({ folder, domain, keyId, messageId }: Given): Record<string, Expected[]> => {
  const at = (name: string) => join(folder, name)
  const mail = ['--to', 'ann@example.org', '--subject', 'Hello', '--text', 'Hello']
  const failed = ['error', 'ok']
  return {
    setup: [
      {
        args: ['--yes', '--host', 'mail.own.example', '--https', 'off', '--file', at('settings.env')],
        json: 'admin api_key changed checks domain file records restart_needed running test_message'.split(
          ' ',
        ),
      },
      {
        args: ['--yes', '--https', 'perhaps'],
        code: 2,
        json: null,
        err: /^--https: "perhaps" is not one of/,
      },
    ],
    send: [
      { args: ['--from', `shop@${domain}`, ...mail], json: ['id', 'message'] },
      { args: ['--file', at('message.eml')], json: ['id', 'message'] },
      { args: ['--from', 'shop@other.example', ...mail], code: 1, json: null, err: /answered 404/ },
      { args: ['--from', `shop@${domain}`], code: 2, json: null, err: /^Give --from, --to and --subject/ },
    ],
    keys: [
      { args: ['list'], json: '[]' },
      {
        args: ['create', '--role', 'basic'],
        json: 'created_at description domain_name id is_disabled kind requestor role secret updated_at user_name'.split(
          ' ',
        ),
      },
      { args: ['delete', keyId], json: ['deleted', 'id'] },
      { args: ['delete', keyId], code: 1, json: null, err: /answered 404/ },
      { args: ['create', '--role', 'king'], code: 1, json: null, err: /answered 400/ },
      { args: ['delete'], code: 2, json: null, err: /^Name one of list, create and delete ID;/ },
      {
        args: ['create', '--role', 'sending'],
        code: 2,
        json: null,
        err: /^--role sending needs --domain; "sendwright help keys"/,
      },
    ],
    // What they do: operator-commands.test.ts.
    queue: [
      { args: [], json: '[]' },
      { args: ['list'], json: '[]' },
      { args: ['domains'], json: ['recipient', 'sending'] },
      { args: ['retry', '--domain', domain, '--dry-run'], json: ['changed', 'matched'] },
      { args: ['retry'], code: 2, json: null, err: /^Say what to retry/ },
      { args: ['list', '--older-than', 'soon'], code: 1, json: null, err: /answered 400/ },
      { args: ['list', '--limit', 'all'], code: 2, json: null, err: /^--limit/ },
    ],
    events: [
      { args: [], json: '[]' },
      { args: ['--last', 'week'], code: 2, json: null, err: /^--last/ },
      { args: ['--service', 'http://192.0.2.1'], code: 2, json: null, err: /^--service needs --key-file/ },
    ],
    trace: [
      { args: [messageId], json: ['deliveries', 'dialogues', 'events', 'message_id'] },
      { args: ['no@such.example'], code: 1, json: null, err: /^No message no@such.example/ },
    ],
    top: [{ args: [], json: ['alerts', 'at', 'counts', 'lanes', 'system'] }],
    domains: [
      { args: [], json: '[]' },
      {
        args: ['add', 'added.example'],
        json: ['domain', 'message', 'receiving_dns_records', 'sending_dns_records'],
      },
      { args: ['dns', 'added.example', '--zone'], json: ['zone'] },
      { args: ['show', 'none.example'], code: 1, json: null, err: /answered 404/ },
      { args: ['add'], code: 2, json: null, err: /^Name one of list, or add/ },
    ],
    // What it does: dns-writing.test.ts.
    dns: [
      { args: [], json: '[]' },
      { args: ['changes', 'own.example'], json: '[]' },
      { args: ['link', 'own.example'], json: ['provider', 'reason', 'url'] },
      {
        args: ['apply', 'own.example', '--dry-run'],
        code: 1,
        json: null,
        err: /answered 400: There is no DNS/,
      },
      { args: ['undo', 'own.example'], code: 1, json: null, err: /^There is no change to take back/ },
      {
        args: ['set', 'main', '--kind', 'desec'],
        code: 1,
        json: null,
        err: /answered 400: Missing mandatory/,
      },
      {
        args: ['set', 'main', '--secret-file', at('nowhere')],
        code: 1,
        json: null,
        err: /^Cannot read the secret/,
      },
      { args: ['apply'], code: 2, json: null, err: /^Name providers, or apply/ },
    ],
    suppressions: [
      { args: ['add', 'bounces', 'x@example.org', '--domain', domain], json: ['address', 'message'] },
      { args: ['list', 'bounces', '--domain', domain], json: '[]' },
      { args: ['export', 'bounces', '--domain', domain], json: ['csv'] },
      { args: ['list', 'bounces'], code: 2, json: null, err: /^Name the sending domain/ },
      { args: ['list', 'enemies', '--domain', domain], code: 2, json: null, err: /^Name a kind/ },
      {
        args: ['import', 'bounces', at('nowhere'), '--domain', domain],
        code: 1,
        json: null,
        err: /nowhere/,
      },
    ],
    people: [
      { args: ['erase', 'nobody@example.org'], json: PERSON_TASK },
      { args: ['export', 'nobody@example.org'], json: PERSON_TASK },
      { args: ['erase', 'nobody'], code: 1, json: null, err: /address is not a mail address/ },
      { args: ['erase'], code: 2, json: null, err: /^Name one address/ },
      { args: ['forget', 'nobody@example.org'], code: 2, json: null, err: /^Name one of export, erase/ },
    ],
    routes: [
      { args: [], json: '[]' },
      { args: ['test', 'x@example.org'], code: 1, json: null, err: /^No route takes mail to x@example.org/ },
    ],
    relays: [
      { args: [], json: '[]' },
      { args: ['resume', 'none'], code: 1, json: null, err: /answered 404/ },
      { args: ['test', 'none'], code: 2, json: null, err: /^test needs --from and --to/ },
    ],
    backup: [
      {
        args: [at('copy')],
        json: 'counts folder format madeAt missingBlobs schemaVersion sizeBytes version withSecret'.split(
          ' ',
        ),
      },
      { args: [at('copy')], code: 1, json: failed, err: /not empty/ },
      { args: [at('a'), at('b')], code: 2, json: null, err: /^Name one folder;/ },
    ],
    verify: [
      {
        args: [at('copy')],
        json: 'counts folder format madeAt missingBlobs ok schemaVersion version warnings withSecret'.split(
          ' ',
        ),
      },
      { args: [at('empty')], code: 1, json: failed, err: /empty/ },
    ],
    restore: [
      {
        args: [at('copy')],
        env: { SENDWRIGHT_DATA: at('restored') },
        json: 'counts dataFolder folder format madeAt missingBlobs schemaVersion version warnings withSecret'.split(
          ' ',
        ),
      },
      {
        args: [at('copy')],
        env: { SENDWRIGHT_DATA: at('restored') },
        code: 1,
        json: failed,
        err: /restored/,
      },
    ],
    // Copies: moving-databases.test.ts, which has both databases.
    migrate: [
      { args: ['--to', `sqlite:${at('other')}`], code: 1, json: failed, err: /both SQLite/ },
      { args: ['--to', 'mysql://x'], code: 2, json: null, err: /^The new database is/ },
    ],
    export: [
      { args: ['--to', at('moved')], json: ['counts', 'missing'] },
      { args: ['--to', at('moved')], code: 2, json: null, err: /is not empty/ },
    ],
    // From APIs and from files of other services: moving.test.ts.
    import: [
      { args: ['folder', at('moved'), '--dry-run'], json: ['dry_run', 'remarks', 'totals'] },
      {
        args: ['folder', at('moved'), '--state', at('state')],
        json: ['dry_run', 'records', 'report', 'resumed', 'totals'],
      },
      { args: ['folder', at('nowhere')], code: 2, json: null, err: /nowhere/ },
      { args: ['moon'], code: 2, json: null, err: /^Name one of mailgun, folder, ses/ },
    ],
    doctor: [
      { args: [], json: ['items'] },
      {
        args: [],
        env: { SENDWRIGHT_DATA: 'relative', SENDWRIGHT_PORT: 'x' },
        code: 1,
        json: null,
        err: /PORT/,
      },
    ],
    health: [
      { args: [], json: ['ready', 'url'] },
      { args: [], env: { SENDWRIGHT_PORT: '1' }, code: 1, json: null, err: /^No answer from/ },
    ],
    // With PostgreSQL: pods.test.ts.
    pods: [
      { args: ['list'], code: 1, json: null, err: /^Pods need SENDWRIGHT_DATABASE_URL/ },
      { args: ['create', 'A-b'], code: 2, json: null, err: /^Cannot name a pod "A-b": expected up to 40/ },
    ],
    shaping: [
      { args: ['check'], json: 'default faults file loaded_at providers version'.split(' ') },
      {
        args: ['check', at('limits.json')],
        json: 'default faults file loaded_at providers version'.split(' '),
      },
      {
        args: ['check', at('spoiled.json')],
        code: 1,
        json: null,
        err: /has faults:\n {2}line 1: default\.connections/,
      },
      { args: ['chekc'], code: 2, json: null, err: /^Say "check"/ },
    ],
    'login-link': [
      { args: [], json: ['url'] },
      { args: [], env: { SENDWRIGHT_DATA: at('empty') }, code: 1, json: null, err: /there is no secret in/ },
    ],
  }
}

test('every command that prints facts prints one JSON document with --json, and nothing else; exit codes are as documented', async (t) => {
  const { config, call, domain, send } = await startTestService(t)
  const messageId = (await send({ to: 'ann@example.org' })).body.id
  const folder = await temporaryFolder(t)
  for (const name of ['empty', 'restored']) mkdirSync(join(folder, name))
  writeFileSync(
    join(folder, 'message.eml'),
    `From: shop@${domain}\nTo: ann@example.org\nSubject: Hello\n\nHello\n`,
  )
  writeFileSync(join(folder, 'limits.json'), '{"version": "mine"}')
  writeFileSync(join(folder, 'spoiled.json'), SPOILED_LIMITS)
  assert.equal((await call('POST', '/v4/domains', { form: { name: 'own.example' } })).status, 200)
  const made = await call('POST', '/v1/keys', { form: { role: 'basic' } })
  const all = cases({ folder, domain, keyId: made.body.key.id, messageId })
  assert.deepEqual(
    Object.keys(all).toSorted(),
    NAMES.filter((name) => !WITHOUT_JSON.includes(name)).toSorted(),
    'a new command needs cases here',
  )
  const lines = Object.entries(all).flatMap(([name, list]) =>
    list.map((one) => ({ ...one, args: [name, ...one.args, '--json'] })),
  )
  const settings = {
    SENDWRIGHT_DATA: config.dataFolder,
    SENDWRIGHT_HOST: config.host,
    SENDWRIGHT_DNS: `${config.host}:1`,
    SENDWRIGHT_DNSBL_ZONES: 'off',
    SENDWRIGHT_PORT: String(config.port),
  }
  const results = await runCases(settings, lines)
  for (const [at, { code, out, err }] of results.entries()) {
    const { args, code: wanted = 0, json, err: says } = lines[at] as Expected
    const what = `sendwright ${args.join(' ')}: ${out}${err}`
    assert.equal(code, wanted, what)
    assert.match(err, says ?? /^$/, what)
    if (json === null) assert.equal(out, '', what)
    else {
      assert.match(out, /^[^\n]+\n$/, what)
      const value: unknown = JSON.parse(out)
      if (json === '[]') assert.ok(Array.isArray(value), what)
      else assert.deepEqual(Object.keys(value as object).toSorted(), json, what)
    }
  }
})

const isOneSentence = ({ out, err }: CommandResult, start: string, what: string) => {
  assert.equal(out, '', what)
  assert.ok(err.startsWith(start), `${what}: ${err}`)
  assert.match(err, /^[^\n]+\.\n$/, what)
}

const MISSPELT: [line: string[], sentence: string][] = [
  [['sned'], 'Unknown command "sned" (did you mean send?);'],
  [['send', '--atach', 'x'], "Unknown option '--atach' (did you mean --attach?);"],
  [['keys', 'list', '--jsno'], "Unknown option '--jsno' (did you mean --json?);"],
]

/** What bash offers at the end of a line. */
const COMPLETIONS: [line: string, offered: string[]][] = [
  ['sendwright ', [...NAMES, 'help']],
  ['sendwright ke', ['keys']],
  ['sendwright --', ['--version']],
  ['sendwright keys ', ['list', 'create', 'delete']],
  ['sendwright keys create --r', ['--role']],
  ['sendwright keys list ', ['--json', '--role', '--domain', '--description', '--help']],
  ['sendwright import ', ['mailgun', 'ses', 'postmark', 'postal', 'sendgrid', 'brevo', 'folder']],
  ['sendwright import mailgun --s', ['--source-key-file', '--source', '--state', '--service']],
  ['sendwright completion ', ['bash', 'zsh', 'fish']],
  ['sendwright login-link ', ['--json', '--help']],
  ['sendwright help log', ['login-link']],
  ['sendwright verify --w', []],
  // The shell completes files.
  ['sendwright backup ', []],
  ['sendwright backup --', ['--with-secret', '--json', '--help']],
]

function completes(script: string): void {
  const asked = COMPLETIONS.map(([line]) => {
    // As readline splits it.
    const words = line.split(' ').map((word) => `'${word}'`)
    return `COMP_WORDS=(${words.join(' ')}); COMP_CWORD=${words.length - 1}; _sendwright; echo "\${COMPREPLY[@]}"`
  })
  const text = [script, 'complete -p sendwright', ...asked].join('\n')
  const [registered, ...offered] = execFileSync('bash', ['--norc', '-uc', text], { encoding: 'utf8' })
    .trimEnd()
    .split('\n')
  assert.equal(registered, 'complete -o default -F _sendwright sendwright')
  for (const [at, [line, words]] of COMPLETIONS.entries())
    assert.deepEqual((offered[at] ?? '').split(' ').filter(Boolean), words, `after "${line}"`)
}

test('wrong arguments end with code 2 and one sentence, help with code 0; bash completes', async (t) => {
  // There is no service: arguments are checked first.
  const env = { SENDWRIGHT_DATA: join(await temporaryFolder(t), 'none') }
  const lines = [
    ...NAMES.flatMap((name) => [
      [name, '--bogus'],
      [name, 'surplus', 'surplus', 'surplus'],
      [name, '--help'],
    ]),
    ...[['bogus'], ['help', 'bogus'], ['constructor'], ['--bogus'], ...MISSPELT.map(([line]) => line)],
    ...[[], ['help'], ['--help'], ['--version'], ['completion', 'bash']],
  ]
  const results = await runCases(
    env,
    lines.map((args) => ({ args })),
  )
  const resultOf = (...args: string[]) => {
    const at = lines.findIndex((line) => line.join(' ') === args.join(' '))
    return results[at] as CommandResult
  }
  for (const name of NAMES) {
    const unknown = resultOf(name, '--bogus')
    assert.equal(unknown.code, 2, name)
    isOneSentence(unknown, `Unknown option '--bogus'; "sendwright help ${name}"`, name)
    const surplus = resultOf(name, 'surplus', 'surplus', 'surplus')
    assert.equal(surplus.code, 2, name)
    isOneSentence(surplus, '', name)
    const help = resultOf(name, '--help')
    assert.deepEqual([help.code, help.err], [0, ''], name)
    assert.match(help.out, new RegExp(`^sendwright ${name}\\b`, 'm'))
    assert.equal(/--json\b/.test(help.out), !WITHOUT_JSON.includes(name), `${name}: --json`)
  }
  for (const args of [['bogus'], ['help', 'bogus'], ['constructor'], ['--bogus']]) {
    assert.equal(resultOf(...args).code, 2)
    isOneSentence(resultOf(...args), `Unknown command "${args.at(-1)}"`, args.join(' '))
  }
  for (const [line, start] of MISSPELT) {
    assert.equal(resultOf(...line).code, 2)
    isOneSentence(resultOf(...line), start, line.join(' '))
  }
  const overview = resultOf('help')
  for (const name of NAMES) assert.match(overview.out, new RegExp(`^ {2}${name} +\\S`, 'm'))
  for (const args of [[], ['help'], ['--help']]) assert.deepEqual(resultOf(...args), overview)
  assert.match(resultOf('--version').out, /^sendwright \d+\.\d+\.\d+\n$/)
  assert.equal(existsSync(env.SENDWRIGHT_DATA), false)
  const script = resultOf('completion', 'bash')
  assert.equal(script.code, 0)
  await t.test('bash completes commands, actions and options', () => completes(script.out))
})
