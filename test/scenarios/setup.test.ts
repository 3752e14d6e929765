/** `sendwright setup`: before the first start, beside the running service, and on a terminal. */
import assert from 'node:assert/strict'
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { parseEnv } from 'node:util'
import { createDnsServer } from '../support/dns-server.ts'
import { createInternet } from '../support/internet.ts'
import { COMPILE_CACHE, PROGRAM_FOLDER } from '../support/program.ts'
import { eventually, ownAddress } from '../support/service.ts'
import { AUTHORIZATION, startProcess } from '../support/service-process.ts'
import { createSink } from '../support/smtp-sink.ts'
import { temporaryFolder } from '../support/stores.ts'

const LAUNCHER = join(PROGRAM_FOLDER, 'bin/sendwright')
const PASSWORD = 'correct horse battery staple'
const ADDRESS = '192.0.2.7'

interface World {
  folder: string
  file: string
  env: Record<string, string>
  run(args: readonly string[], more?: { input?: string; env?: Record<string, string> }): Promise<Ended>
}

interface Ended {
  code: number | null
  out: string
  err: string
  // biome-ignore lint/suspicious/noExplicitAny: the report of --json; the tests assert on what it holds
  report: any
}

async function createWorld(t: TestContext): Promise<World> {
  const dns = await createDnsServer()
  t.after(() => dns.close())
  dns.set('mail.own.example', 'A', [ADDRESS])
  const folder = await temporaryFolder(t)
  const file = join(folder, 'settings.env')
  const env = {
    PATH: process.env['PATH'] ?? '',
    NODE_COMPILE_CACHE: COMPILE_CACHE,
    SENDWRIGHT_ENV_FILE: file,
    SENDWRIGHT_DATA: join(folder, 'data'),
    SENDWRIGHT_DNS: `${dns.host}:${dns.port}`,
    SENDWRIGHT_DNSBL_ZONES: 'off',
  }
  return {
    folder,
    file,
    env,
    async run(args, { input = '', env: more = {} } = {}) {
      const child = spawn(LAUNCHER, ['setup', ...args], { cwd: folder, env: { ...env, ...more } })
      child.stdin.on('error', () => {}) // it may end before it reads
      child.stdin.end(input)
      const [out, err] = [collect(child.stdout), collect(child.stderr)]
      const [code] = (await once(child, 'close')) as [number | null]
      const report = args.includes('--json') && code === 0 ? JSON.parse(out()) : null
      return { code, out: out(), err: err(), report }
    },
  }
}

function collect(stream: NodeJS.ReadableStream): () => string {
  let text = ''
  stream.on('data', (bytes: Buffer) => {
    text += bytes.toString()
  })
  return () => text
}

const FLAGS = ['--host', 'mail.own.example', '--https', 'proxy', '--smtp-port', '2525', '--yes', '--json']

const line = ({ name, type, value }: { name: string; type: string; value: string }) =>
  `${name} ${type} ${value}`

test('setup before the first start, then beside the running service', async (t) => {
  const world = await createWorld(t)
  const { file, env, run } = world
  // What is there is faulty: ACME needs a name.
  writeFileSync(
    file,
    '# mine\nSENDWRIGHT_LOG_LEVEL=warn\nSENDWRIGHT_ACME=yes\n#SENDWRIGHT_HOSTNAME=mail.example.com\n',
    {
      mode: 0o640,
    },
  )

  const first = await run(
    [...FLAGS, '--admin', 'boss@own.example', '--password-stdin', '--domain', 'news.example'],
    {
      input: `${PASSWORD}\n`,
    },
  )
  assert.equal(first.code, 0, first.err)
  const text = readFileSync(file, 'utf8')
  assert.match(
    text,
    /^# mine\nSENDWRIGHT_LOG_LEVEL=warn\n#SENDWRIGHT_ACME=yes\n#SENDWRIGHT_HOSTNAME=mail\.example\.com\nSENDWRIGHT_HOSTNAME=mail\.own/,
  )
  assert.equal(statSync(file).mode & 0o777, 0o640)
  assert.equal((text + first.out + first.err).includes(PASSWORD), false)
  const { report } = first
  assert.deepEqual([report.running, report.restart_needed], [false, false])
  assert.deepEqual(report.admin, { name: 'boss@own.example', created: true })
  assert.deepEqual(report.domain, { name: 'news.example', created: true })
  assert.match(report.api_key, /^[\w-]{20,}$/)
  const service = report.records.service.map(line)
  for (const wanted of [
    `mail.own.example A ${ADDRESS}`,
    `mxa.mail.own.example A ${ADDRESS}`,
    'track.mail.own.example CNAME mail.own.example',
    `spf.mail.own.example TXT v=spf1 ip4:${ADDRESS} -all`,
    '7.2.0.192.in-addr.arpa PTR mail.own.example',
  ])
    assert.ok(service.includes(wanted), `${wanted} in ${service.join('; ')}`)
  const domain = report.records.domain.map(line).join('\n')
  assert.match(domain, /^k1\._domainkey\.news\.example TXT k=rsa; p=/m)
  assert.match(domain, /^news\.example TXT v=spf1 include:spf\.mail\.own\.example ~all$/m)
  assert.match(domain, /^news\.example MX 10 mxa\.mail\.own\.example$/m)
  assert.ok(report.checks.some(({ name }: { name: string }) => name === 'own-records'))

  await t.test('again without flags nothing changes', async () => {
    const { mtimeMs } = statSync(file)
    const again = await run(['--yes', '--json'])
    assert.deepEqual([again.report.changed, again.report.admin], [[], null])
    assert.equal(again.report.api_key, null)
    assert.deepEqual(again.report.domain, { name: 'news.example', created: false })
    assert.equal(readFileSync(file, 'utf8'), text)
    assert.equal(statSync(file).mtimeMs, mtimeMs)
  })

  const host = ownAddress()
  const { SENDWRIGHT_ENV_FILE: _, ...settings } = env
  const process = await startProcess(host, { ...settings, ...(parseEnv(text) as Record<string, string>) })
  t.after(() => process.end('SIGKILL'))

  await t.test('the admin can sign in, the key works', async () => {
    const signIn = await fetch(`${process.url}/sendwright/v1/session`, {
      method: 'POST',
      body: new URLSearchParams({ email: 'boss@own.example', password: PASSWORD }),
    })
    assert.equal(signIn.status, 200, await signIn.text())
    const authorization = `Basic ${Buffer.from(`api:${report.api_key}`).toString('base64')}`
    assert.equal((await fetch(`${process.url}/v4/domains`, { headers: { authorization } })).status, 200)
  })

  await t.test('beside the service: a further domain and a test message', async () => {
    const beside = { env: { SENDWRIGHT_HOST: host, SENDWRIGHT_SETUP_PASSWORD: PASSWORD } }
    const args = [
      '--yes',
      '--json',
      '--domain',
      'more.example',
      '--admin',
      'boss@own.example',
      '--test-to',
      'me@x.example',
    ]
    const { report: second, err } = await run(args, beside)
    assert.ok(second, err)
    assert.deepEqual([second.running, second.restart_needed, second.changed], [true, false, []])
    assert.deepEqual([second.domain.created, second.admin.created], [true, false])
    assert.match(second.test_message, /@more\.example/)
    const inbox = await fetch(`${process.url}/v3/more.example/events`, {
      headers: { authorization: AUTHORIZATION },
    })
    assert.match(await inbox.text(), /me@x\.example/)

    const changed = (
      await run(['--yes', '--json', '--delivery', 'direct', '--test-to', 'me@x.example'], beside)
    ).report
    assert.deepEqual(changed.changed, ['SENDWRIGHT_DELIVERY', 'SENDWRIGHT_SMTP_PORT', 'SENDWRIGHT_SMTP_HOST'])
    assert.deepEqual([changed.restart_needed, changed.test_message], [true, null])
  })
})

test('what is wrong is said before anything is written', async (t) => {
  const { file, run } = await createWorld(t)
  const ended = await run([...FLAGS, '--trusted-proxies', 'nonsense'])
  assert.equal(ended.code, 1, ended.out + ended.err)
  assert.match(ended.err, /SENDWRIGHT_TRUSTED_PROXIES: "nonsense" is not a network/)
  assert.equal(statSync(file, { throwIfNoEntry: false }), undefined)
})

test('admin, password, domain and recipient are checked before anything is written', async (t) => {
  const { file, run } = await createWorld(t)
  const good = ['--admin', 'boss@own.example', '--domain', 'news.example']
  for (const [args, input, says] of [
    [good, null, /^--admin needs a password: --password-stdin, or SENDWRIGHT_SETUP_PASSWORD\.\n$/],
    [['--admin', 'notanaddress'], null, /^--admin: "notanaddress" is not a mail address\.\n$/],
    [good, 'short', /^--admin: the password must have 12 to 256 characters\n$/],
    [[...good, '--domain', 'no domain'], PASSWORD, /^--domain: "no domain" is not a domain name\.\n$/],
    [[...good, '--test-to', 'nobody'], PASSWORD, /^--test-to: "nobody" is not a mail address\.\n$/],
  ] as const) {
    const stdin = input === null ? [] : ['--password-stdin']
    const ended = await run([...FLAGS, ...args, ...stdin], { input: `${input ?? ''}\n` })
    assert.deepEqual([ended.code, ended.out], [2, ''], ended.err)
    assert.match(ended.err, says)
    assert.equal(statSync(file, { throwIfNoEntry: false }), undefined)
  }
})

type Dialogue = (answers: readonly [question: string, answer: string][]) => Promise<string>

/** Answers the questions of a setup on a terminal, in order; resolves with all that it showed. */
function dialogueIn(t: TestContext, folder: string, env: Record<string, string>): Dialogue {
  return async (answers) => {
    const child: ChildProcessWithoutNullStreams = spawn(
      'script',
      ['-qec', `${LAUNCHER} setup`, '/dev/null'],
      {
        cwd: folder,
        env: { ...env, SHELL: '/bin/sh', TERM: 'dumb' },
      },
    )
    t.after(() => child.kill('SIGKILL'))
    const out = collect(child.stdout)
    let read = 0
    for (const [question, answer] of answers) {
      await eventually(question, async () => {
        const at = out().indexOf(question, read)
        if (at < 0) assert.equal(child.exitCode, null, out())
        read = at < 0 ? read : at + question.length
        return at >= 0
      })
      child.stdin.write(`${answer}\r`)
    }
    await once(child, 'close')
    assert.equal(child.exitCode, 0, out())
    return out()
  }
}

test('on a terminal setup asks, shows the present settings, and hides the password', async (t) => {
  const { file, env, folder } = await createWorld(t)
  const dialogue = dialogueIn(t, folder, env)
  const asked = await dialogue([
    ['Public host name: ', '192.0.2.7'],
    ['An address is not enough', ''],
    ['An answer is needed.', 'mail.own.example'],
    ['HTTPS by (acme, files, proxy, off) [acme]: ', 'proxy'],
    ['Addresses of the proxy [127.0.0.1/32]: ', ''],
    ['Mail goes (capture, direct, relay) [capture]: ', ''],
    ['Database (sqlite, postgres) [sqlite]: ', ''],
    ['Folder for the data [', ''],
    ['Mail address of the admin (empty: none): ', 'boss@own.example'],
    ['Password, at least 12 characters: ', PASSWORD],
    ['Again: ', 'another one of them'],
    ['They differ.', PASSWORD],
    ['Again: ', PASSWORD],
    ['First sending domain (empty: none): ', 'news.example'],
  ])
  assert.equal(asked.includes(PASSWORD), false)
  assert.match(
    asked,
    /Admin boss@own\.example: created\.[\s\S]*Publish once for this service[\s\S]*own-records[\s\S]*Now: /,
  )
  const text = readFileSync(file, 'utf8')
  assert.match(text, /^SENDWRIGHT_PUBLIC_URL=https:\/\/mail\.own\.example$/m)

  const again = await dialogue([
    ['Public host name [mail.own.example]: ', ''],
    ['[proxy]: ', ''],
    ['[127.0.0.1/32]: ', ''],
    ['[capture]: ', ''],
    ['[sqlite]: ', ''],
    ['Folder for the data [', ''],
    ['Mail address of a further admin (empty: none): ', ''],
    ['First sending domain (empty: none) [news.example]: ', ''],
  ])
  assert.match(again, /stay as they are/)
  assert.equal(readFileSync(file, 'utf8'), text)
})

test('on a terminal: port 25 is tried first, and the login of a relay before it is written', async (t) => {
  const internet = await createInternet(t)
  const relay = await createSink({ host: ownAddress(), auth: { user: 'shop@own', password: PASSWORD } })
  t.after(() => relay.close())
  const { file, env, folder } = await createWorld(t)
  const { SENDWRIGHT_DELIVERY: _, ...network } = internet.env
  const SENDWRIGHT_DNS = internet.env['SENDWRIGHT_DNS'] as string
  const dialogue = dialogueIn(t, folder, { ...env, ...network, SENDWRIGHT_DNS })
  const begin: [string, string][] = [
    ['Public host name', 'mail.own.example'],
    ['HTTPS by', 'proxy'],
    ['Addresses of the proxy', ''],
  ]
  const rest: [string, string][] = [
    ['Port for SMTP', '2525'],
    ['Database', ''],
    ['Folder for the data', ''],
    ['Mail address of', ''],
    ['First sending domain', ''],
  ]
  const login = (password: string): [string, string][] => [
    ['Host of the relay: ', relay.host],
    ['Port (465: TLS from the first byte) [587]: ', String(relay.port)],
    ['User (empty: no login): ', 'shop@own'],
    ['Password (not shown): ', password],
  ]
  const shown = await dialogue([
    ...begin,
    ['No mail server could be reached', 'relay'],
    ...login('wrong'),
    ['Use it all the same (yes, no) [no]: ', ''],
    ...login(PASSWORD),
    ['the login works', '2525'],
    ...rest.slice(1),
  ])
  assert.equal(shown.includes(PASSWORD), false)
  assert.match(shown, /Forward port 25 to 2525: bounces/)
  const written = /^SENDWRIGHT_DELIVERY=(.*)$/m.exec(readFileSync(file, 'utf8'))?.[1]
  const { username, password, port } = new URL((written ?? '').replace(/^["']|["']$/g, ''))
  assert.deepEqual([username, password, port].map(decodeURIComponent), [
    'shop@own',
    PASSWORD,
    String(relay.port),
  ])
  await internet.site(['gmail.com'])
  await dialogueIn(t, folder, { ...env, ...network, SENDWRIGHT_DNS, SENDWRIGHT_DELIVERY: 'direct' })([
    ['Public host name', ''],
    ['HTTPS by', ''],
    ['Addresses of the proxy', ''],
    ['mx.gmail.com was reached', ''],
    ...rest,
  ])
})
