/** Moving in and out: `sendwright import` from a service behind a faulty server, and from files; `sendwright export`. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { run as exportCommand } from '../../src/cli/data/export.ts'
import { run as importCommand } from '../../src/cli/data/import.ts'
import { CommandError } from '../../src/cli/usage.ts'
import { type CommandResult, runCommand } from '../support/command.ts'
import {
  contentsOf,
  createFaultyProxy,
  type Fault,
  type FillCall,
  fillSource,
} from '../support/moving-source.ts'
import { MAIN } from '../support/program.ts'
import { ownAddress, startTestService, TEST_KEY, type TestService } from '../support/service.ts'
import { temporaryFolder } from '../support/stores.ts'

const ENV = { SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8' }

const fillCall =
  ({ call }: TestService): FillCall =>
  async (method, path, body) => {
    const { status, text } = await call(method, path, body)
    assert.equal(status, 200, `${method} ${path}: ${text}`)
  }

const getFrom =
  ({ call }: TestService) =>
  async (path: string) =>
    (await call('GET', path)).body as Record<string, unknown>

/** A command within this process, which saves the start of another. */
async function within(
  command: (args: string[], print: (text: string) => void) => Promise<void>,
  ...args: string[]
): Promise<CommandResult> {
  let out = ''
  try {
    await command(args, (text) => {
      out += text
    })
    return { code: 0, out, err: '' }
  } catch (error) {
    if (error instanceof CommandError) return { code: error.exitCode, out, err: error.message }
    throw error
  }
}

/** A folder with the key of the tests in a file. */
async function workFolder(
  t: TestContext,
): Promise<{ folder: string; key: string; at: (name: string) => string }> {
  const folder = await temporaryFolder(t)
  const at = (name: string) => join(folder, name)
  await writeFile(at('key'), `${TEST_KEY}\n`)
  return { folder, key: at('key'), at }
}

/** Refuses one request in seven and fails one in eleven. */
const now = { 'retry-after': '0' }
const faults = (count: number): Fault =>
  count % 7 === 3 ? { status: 429, headers: now } : count % 11 === 5 ? { status: 503, headers: now } : 'pass'

test('an import that is killed continues, is complete, and repeated it makes nothing twice', async (t) => {
  const [source, target] = [
    await startTestService(t, ENV),
    await startTestService(t, ENV, { database: 'postgres' }),
  ]
  const filled = await fillSource(fillCall(source), {
    domains: 4,
    suppressions: 3_200,
    templates: 6,
    members: 230,
  })
  const proxy = await createFaultyProxy(source.url, ownAddress(), faults)
  t.after(() => proxy.close())
  const { key, at } = await workFolder(t)
  const args = ['mailgun', '--source', proxy.url, '--source-key-file', key]
  const to = ['--service', target.url, '--key-file', key, '--state', at('state'), '--json']

  const dry = await within(importCommand, ...args, ...to, '--dry-run')
  assert.equal(dry.code, 3, dry.err)
  const planned = JSON.parse(dry.out)
  assert.equal(planned.totals.domain.made, 4)
  assert.equal(planned.totals.bounce.made, 800)
  assert.match(planned.remarks[0].reason, /sandbox/)
  assert.equal((await target.call('GET', '/v4/domains')).body.total_count, 1)

  const started = proxy.count()
  const killed: ChildProcess = spawn(process.execPath, [MAIN, 'import', ...args, ...to], { stdio: 'ignore' })
  await proxy.reached(started + 60)
  killed.kill('SIGKILL')
  await once(killed, 'close')

  const resumed = await runCommand({}, 'import', ...args, ...to)
  assert.equal(resumed.code, 3, resumed.err)
  const result = JSON.parse(resumed.out)
  assert.equal(result.resumed, true)
  const { domain, bounce, template, member } = result.totals
  const taken = [domain, bounce, template, member].map(({ made, existing }) => made + existing)
  assert.deepEqual(taken, [4, 800, 6, 230])
  const remarks = (await readFile(result.report, 'utf8')).trim().split('\n')
  assert.equal(remarks.length, 1, 'only the sandbox domain is not taken')
  const zone = await readFile(result.records, 'utf8')
  for (const name of filled.domains)
    assert.equal(zone.split(`k2._domainkey.${name}.`).length, 2, 'a selector of its own')
  const expected = await contentsOf(getFrom(source), filled.domains)
  assert.deepEqual(await contentsOf(getFrom(target), filled.domains), expected)

  await source.call('PUT', `/v3/lists/news@d0.moving.example/members/m0@people.example.org`, {
    form: { subscribed: 'no' },
  })
  await source.call('POST', '/v3/d0.moving.example/unsubscribes', {
    form: { address: 'u0@people.example.org', tag: 'x' },
  })
  const repeated = JSON.parse((await within(importCommand, ...args, ...to)).out)
  for (const { made, changed } of Object.values(repeated.totals) as { made: number; changed: number }[])
    assert.deepEqual([made, changed], [0, 0])
  assert.deepEqual(
    await contentsOf(getFrom(target), filled.domains),
    await contentsOf(getFrom(source), filled.domains),
    'who has unsubscribed meanwhile is unsubscribed',
  )
})

test('an export is imported into another service as it was', async (t) => {
  const source = await startTestService(t, ENV)
  const target = await startTestService(t, ENV)
  const { domains } = await fillSource(fillCall(source), {
    domains: 2,
    suppressions: 80,
    templates: 3,
    members: 20,
  })
  const { key, at } = await workFolder(t)
  const local = { SENDWRIGHT_DATA: source.config.dataFolder, SENDWRIGHT_HOST: source.config.host }
  const exported = await runCommand(local, 'export', '--to', at('out'), '--json')
  assert.equal(exported.code, 0, exported.err)
  assert.equal(JSON.parse(exported.out).counts.bounce, 20)
  const to = ['--service', target.url, '--key-file', key]
  const imported = await within(importCommand, 'folder', at('out'), ...to, '--state', at('state'))
  assert.equal(imported.code, 0, imported.err + imported.out)
  assert.deepEqual(await contentsOf(getFrom(target), domains), await contentsOf(getFrom(source), domains))
  const again = await within(exportCommand, '--to', at('again'), ...to)
  assert.equal(again.code, 0, again.err)
  for (const kind of ['bounce', 'unsubscribe', 'member', 'template', 'route', 'webhook'])
    assert.equal(
      await readFile(at(`again/${kind}.jsonl`), 'utf8'),
      await readFile(at(`out/${kind}.jsonl`), 'utf8'),
    )
  assert.equal(
    (await within(exportCommand, '--to', at('out'), ...to)).code,
    2,
    'a folder in use is left alone',
  )
})

test('one service takes from a hostile source and from files', async (t) => {
  const service = await startTestService(t, ENV)
  await t.test('no other host gets the key of the source', (t) => hostileSource(t, service))
  await t.test('files of other services become suppressions, members and templates', (t) => files(t, service))
})

async function hostileSource(t: TestContext, target: TestService): Promise<void> {
  const seen: string[] = []
  const other = await createFaultyProxy(target.url, ownAddress(), (_, path) => {
    seen.push(path)
    return { status: 200, headers: {} }
  })
  t.after(() => other.close())
  const { key, at } = await workFolder(t)
  const redirecting = await createFaultyProxy(target.url, ownAddress(), () => ({
    status: 302,
    headers: { location: `${other.url}/v4/domains` },
  }))
  t.after(() => redirecting.close())
  const to = ['--service', target.url, '--key-file', key, '--state', at('state')]
  const args = (url: string) => ['mailgun', '--source', url, '--source-key-file', key, ...to]
  const result = await within(importCommand, ...args(redirecting.url))
  assert.equal(result.code, 1)
  assert.match(result.err, /redirects to/)
  assert.deepEqual(seen, [])

  const refusing = await within(importCommand, ...args(target.url), '--source-key-file', at('other-key'))
  assert.equal(refusing.code, 2)
  await writeFile(at('other-key'), 'wrong')
  const wrong = await within(importCommand, ...args(target.url), '--source-key-file', at('other-key'))
  assert.equal(wrong.code, 1, wrong.err)
  assert.match(wrong.err, /401 Invalid private key/)

  // A terminal would act on what a name holds, and another line would look like one of ours.
  const painting = createServer((request, answer) => {
    const hooks = request.url?.startsWith('/v1/webhooks') ? [{ url: 'x\u001b[2J\u009b1A\nroute  5' }] : []
    answer.end(JSON.stringify({ items: [], webhooks: hooks }))
  }).listen(8080, ownAddress())
  await once(painting, 'listening')
  t.after(() => painting.close())
  const { address } = painting.address() as AddressInfo
  const painted = await within(importCommand, ...args(`http://${address}:8080`), '--dry-run')
  assert.match(
    painted.out,
    /\nGET \/v1\/webhooks: x\\u001b\[2J\\u009b1A\\u000aroute {2}5: has no event types\n/,
  )
}

interface FileCase {
  args: string[]
  files: Record<string, string | Buffer>
  code: number
}

const json = (value: unknown) => JSON.stringify(value, null, 1)

async function files(t: TestContext, service: TestService): Promise<void> {
  const domain = 'files.example'
  await service.call('POST', '/v4/domains', { form: { name: domain } })
  await service.call('POST', '/v3/lists', { form: { address: `all@${domain}` } })
  const { key, folder } = await workFolder(t)
  const run = async ({ args: [from = '', ...args], files, code }: FileCase): Promise<CommandResult> => {
    const own = join(folder, from)
    await mkdir(own, { recursive: true })
    for (const [name, content] of Object.entries(files)) await writeFile(join(own, name), content)
    const to = ['--service', service.url, '--key-file', key, '--state', join(own, 'state'), '--json']
    const all = args.map((arg) => arg.replace('@/', `${own}/`))
    const result = await within(importCommand, from, '--domain', domain, ...to, ...all)
    assert.equal(result.code, code, `${from}: ${result.err} ${result.out}`)
    return result
  }
  const report = async (from: string) => await readFile(join(folder, from, 'state/report.jsonl'), 'utf8')

  await run({
    args: ['ses', '--list', `all@${domain}`, '@/suppressed.json.gz', '@/contacts.json', '@/template.json'],
    files: {
      'suppressed.json.gz': gzipSync(
        json({
          SuppressedDestinationSummaries: [
            { EmailAddress: 'ses-b@example.org', Reason: 'BOUNCE', LastUpdateTime: 1_600_000_000.5 },
            {
              EmailAddress: 'ses-c@example.org',
              Reason: 'COMPLAINT',
              LastUpdateTime: '2020-09-13T12:26:40Z',
            },
            { EmailAddress: 'not an address', Reason: 'BOUNCE' },
          ],
          NextToken: 'x',
        }),
      ),
      'contacts.json': json({
        Contacts: [
          { EmailAddress: 'ses-m@example.org', UnsubscribeAll: false, TopicPreferences: [] },
          {
            EmailAddress: 'ses-t@example.org',
            TopicPreferences: [{ TopicName: 'offers', SubscriptionStatus: 'OPT_OUT' }],
          },
          { EmailAddress: 'ses-u@example.org', UnsubscribeAll: true },
        ],
      }),
      'template.json': json({
        TemplateName: 'Welcome',
        TemplateContent: { Subject: 'Hi {{name}}', Html: '<p>{{name}}</p>', Text: 'Hi' },
      }),
    },
    code: 3,
  })
  assert.match(await report('ses'), /suppressed\.json\.gz line \d+.*not an address/)
  await run({
    args: [
      'sendgrid',
      '--list',
      `all@${domain}`,
      'bounces=@/b.csv',
      'spam=@/s.json',
      'contacts=@/c.csv',
      'templates=@/t.json',
    ],
    files: {
      'b.csv':
        'status,reason,email,created\n5.1.1,"550 5.1.1 unknown, sorry",sg-b@example.org,1600000000\n,,,\n',
      's.json': json([{ email: 'sg-c@example.org', created: 1_600_000_000, ip: '192.0.2.1' }]),
      'c.csv': 'EMAIL,FIRST_NAME,LAST_NAME,CITY\nsg-m@example.org,Ann,Lee,Paris\n',
      't.json': json({
        id: 'd-1',
        name: 'Order',
        generation: 'dynamic',
        versions: [
          {
            id: 'v1',
            name: 'old',
            active: 0,
            subject: 's',
            html_content: '{{formatDate d}}',
            plain_content: '',
          },
          {
            id: 'v2',
            name: 'new',
            active: 1,
            subject: 'O {{n}}',
            html_content: '{{#equals a "b"}}x{{/equals}}',
          },
        ],
      }),
    },
    code: 3,
  })
  assert.match(await report('sendgrid'), /b\.csv row 3.*no address[\s\S]*version v1/)
  await run({
    args: ['postmark', '@/dump.json', '@/t.json'],
    files: {
      'dump.json': json({
        Suppressions: [
          {
            EmailAddress: 'pm-b@example.org',
            SuppressionReason: 'HardBounce',
            Origin: 'Recipient',
            CreatedAt: '2020-01-02T03:04:05-05:00',
          },
          { EmailAddress: 'pm-u@example.org', SuppressionReason: 'ManualSuppression', Origin: 'Customer' },
        ],
      }),
      't.json': json({
        TemplateId: 7,
        Name: 'W',
        Alias: 'w',
        Subject: 'S',
        HtmlBody: '{{#a}}{{b}}{{/a}}',
        TextBody: '',
      }),
    },
    code: 0,
  })
  await run({
    args: ['postal', '@/s.csv'],
    files: {
      's.csv':
        'id\ttype\taddress\treason\ttimestamp\tkeep_until\n1\trecipient\tpl-b@example.org\ttoo many hard fails\t1600000000.5\t4000000000\n2\trecipient\told@example.org\tx\t1\t2\n',
    },
    code: 3,
  })
  const noColumn = {
    args: ['brevo', 'contacts=@/c.csv'],
    files: { 'c.csv': 'EMAIL;NAME\na@example.org;A\n' },
    code: 2,
  }
  assert.match((await run(noColumn)).err, /--blocklist-column/)
  await run({
    args: ['brevo', '--list', `all@${domain}`, 'contacts=@/c.csv', 'blocked=@/blocked.json'],
    files: {
      'c.csv':
        'EMAIL;FIRSTNAME;BLOCKLISTED;PLAN\nbr-u@example.org;Bo;Yes;gold\nbr-m@example.org;Cy;No;free\n',
      'blocked.json': json({
        contacts: [
          {
            email: 'br-b@example.org',
            reason: { code: 'hardBounce', message: 'gone' },
            blockedAt: '2020-01-02T03:04:05Z',
          },
        ],
      }),
    },
    code: 0,
  })
  await run({
    args: ['sendgrid', 'bounces=@/wide.csv'],
    files: { 'wide.csv': `${'a,'.repeat(1_000_000)}\n` },
    code: 3,
  })
  assert.match(await report('sendgrid'), /more than 1000 fields/)

  const addresses = async (kind: string) => {
    const { items } = (await service.call('GET', `/v3/${domain}/${kind}`)).body
    return (items as { address: string }[]).map(({ address }) => address.split('@')[0])
  }
  assert.deepEqual(await addresses('bounces'), ['br-b', 'pl-b', 'pm-b', 'ses-b', 'sg-b'])
  assert.deepEqual(await addresses('complaints'), ['ses-c', 'sg-c'])
  assert.deepEqual(await addresses('unsubscribes'), ['br-u', 'pm-u', 'ses-t', 'ses-u'])
  const { items } = (await service.call('GET', `/v3/lists/all@${domain}/members/pages`)).body
  const members = items.map(({ address, name, vars, subscribed }: Record<string, unknown>) => [
    address,
    name,
    vars,
    subscribed,
  ])
  assert.deepEqual(members, [
    ['br-m@example.org', 'Cy', { PLAN: 'free' }, true],
    ['br-u@example.org', 'Bo', { PLAN: 'gold' }, false],
    ['ses-m@example.org', '', {}, true],
    ['ses-t@example.org', '', {}, true],
    ['ses-u@example.org', '', {}, false],
    ['sg-m@example.org', 'Ann Lee', { CITY: 'Paris' }, true],
  ])
  const bounce = (await service.call('GET', `/v3/${domain}/bounces/sg-b@example.org`)).body
  assert.deepEqual([bounce.code, bounce.error], ['550', '550 5.1.1 unknown, sorry'])
  assert.equal(bounce.created_at, 'Sun, 13 Sep 2020 12:26:40 UTC')
  for (const [name, content] of [
    ['welcome', '<p>{{{name}}}</p>'],
    ['d-1', '{{#equal a "b"}}x{{/equal}}'],
    ['w', '{{#with a}}{{b}}{{/with}}'],
  ]) {
    const { template } = (await service.call('GET', `/v3/${domain}/templates/${name}?active=yes`)).body
    assert.equal(template.version.template, content)
  }
}
