/** Every fenced command of the documents is run against a service, or its document says why it is not. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, mkdir, symlink, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { type TestContext, test } from 'node:test'
import { parseEnv, promisify } from 'node:util'
import { readConfig } from '../../src/platform/config/config.ts'
import { createDnsServer } from '../support/dns-server.ts'
import { blocksIn, commandsIn, type FencedBlock, fencedBlocks } from '../support/documents.ts'
import { HANG_MS } from '../support/hang.ts'
import { lacking } from '../support/lacking.ts'
import { createTestDatabase } from '../support/postgres.ts'
import { PROGRAM_FOLDER } from '../support/program.ts'
import { eventually, startTestService, type TestService } from '../support/service.ts'
import { temporaryFolder } from '../support/stores.ts'

const exec = promisify(execFile)
const ROOT = resolve(import.meta.dirname, '../..')
/** A fence without a language could be a command, so each has to name one. */
const SHELLS = ['sh', 'bash', 'console', 'shell', '']

const BLOCKS = fencedBlocks()
const isShell = ({ language }: FencedBlock) => SHELLS.includes(language)

test('fences, markers and continued commands are recognised', () => {
  const markdown = [
    'Text',
    '<!-- not run: needs root -->',
    '```sh',
    'a \\',
    '  b',
    '# note',
    'c  # why',
    "d -j '{",
    "  1}'",
    '```',
    '',
    '```',
    'd',
    '```',
  ]
  const [first, second, ...others] = blocksIn('x.md', markdown.join('\n'))
  assert.deepEqual(
    { ...first, text: commandsIn(first?.text ?? '') },
    {
      place: 'x.md:3',
      language: 'sh',
      text: ['a \\\n  b', 'c  # why', "d -j '{\n  1}'"],
      notRun: 'needs root',
    },
  )
  assert.deepEqual(second, { place: 'x.md:12', language: '', text: 'd', notRun: null })
  assert.deepEqual(others, [])
  assert.throws(() => blocksIn('x.md', '```sh\na'), /x\.md:1: the fence is not closed/)
})

test('settings and JSON in the documents are valid, and markers name tests that exist', () => {
  for (const { place, language, text, notRun } of BLOCKS) {
    // The pages of the API show several answers in one block.
    if (language === 'json' && !place.startsWith('docs/api/'))
      assert.doesNotThrow(() => JSON.parse(text), place)
    if (language === 'env')
      assert.doesNotThrow(() => readConfig(parseEnv(text) as Record<string, string>), place)
    for (const name of notRun?.match(/[\w-]+\.test\.ts/g) ?? [])
      assert.ok(existsSync(join(ROOT, 'test/scenarios', name)), `${place} names ${name}`)
  }
})

/** Files that the commands read, as the other services write them. */
const FILES: Record<string, string> = {
  'invoice.pdf': '%PDF-1.4\n',
  'suppressed.json':
    '{"SuppressedDestinationSummaries": [{"EmailAddress": "ses-b@example.org", "Reason": "BOUNCE", "LastUpdateTime": 1600000000}]}',
  'contacts.json': '{"Contacts": [{"EmailAddress": "ses-u@example.org", "UnsubscribeAll": true}]}',
  'welcome.json':
    '{"TemplateName": "Welcome", "TemplateContent": {"Subject": "Hi {{name}}", "Html": "<p>{{name}}</p>"}}',
  'bounces.csv': 'status,reason,email,created\n5.1.1,550 unknown,sg-b@example.org,1600000000\n',
  'spam.csv': 'email,created,ip\nsg-c@example.org,1600000000,192.0.2.1\n',
  'unsubscribes.csv': 'email,created\nsg-u@example.org,1600000000\n',
  'order.json':
    '{"id": "d-1", "name": "Order", "versions": [{"id": "v", "name": "n", "active": 1, "subject": "O", "html_content": "<p>{{n}}</p>"}]}',
  'suppressions.json':
    '{"Suppressions": [{"EmailAddress": "pm-b@example.org", "SuppressionReason": "HardBounce", "Origin": "Recipient", "CreatedAt": "2020-01-02T03:04:05Z"}]}',
  'template.json': '{"TemplateId": 7, "Name": "W", "Alias": "w", "Subject": "S", "HtmlBody": "<p>{{b}}</p>"}',
  'suppressions.csv':
    'id\ttype\taddress\treason\ttimestamp\tkeep_until\n1\trecipient\tpl-b@example.org\tfails\t1600000000\t4000000000\n',
  'contacts.csv': 'EMAIL;NAME;BLOCKLISTED\nbr-m@example.org;Ann;no\n',
  'blocked.json':
    '{"contacts": [{"email": "br-b@example.org", "reason": {"code": "hardBounce"}, "blockedAt": "2020-01-02T03:04:05Z"}]}',
}

/** What a command must print, where its exit code does not say enough. */
const PRINTED: readonly (readonly [command: RegExp, output: RegExp])[] = [
  [/\/messages /, /"message":\s*"Queued/],
  [/sendwright send/, /Queued|<[^>]+@/],
  [/login-link/, /http:\/\//],
  [/stats\/total/, /"stats":/],
  [/\/zone$/, /_domainkey/],
  [/migrate .*--dry-run/, /target is empty/],
  [/migrate (?!.*--dry-run)/, /are equal/],
]

async function workFolder(t: TestContext): Promise<string> {
  const folder = await temporaryFolder(t)
  await mkdir(join(folder, 'bin'))
  await symlink(join(PROGRAM_FOLDER, 'bin/sendwright'), join(folder, 'bin/sendwright'))
  // An error of HTTP is one of the command.
  await writeFile(join(folder, 'bin/curl'), '#!/bin/sh\nPATH=${PATH#*:} exec curl --fail-with-body "$@"\n')
  await chmod(join(folder, 'bin/curl'), 0o755)
  for (const [name, content] of Object.entries(FILES)) await writeFile(join(folder, name), content)
  return folder
}

/** As it may be an argument. */
function withoutPassword(address: string): string {
  const url = new URL(address)
  url.password = ''
  return url.href
}

/** What the document says must exist before the command. */
async function prepare(command: string, { call }: TestService): Promise<void> {
  const [, address] = /--list (\S+)/.exec(command) ?? []
  if (address === undefined) return
  const made = await call('POST', '/v3/lists', { form: { address } })
  assert.equal(made.status, 200, made.text)
}

test('every command of the documents runs', { skip: lacking('curl') }, async (t) => {
  const folder = await workFolder(t)
  // URLs of the documents resolve, to nothing that listens.
  const dns = await createDnsServer()
  t.after(() => dns.close())
  dns.set('example.com', 'A', ['127.0.0.1'])
  const service = await startTestService(t, {
    SENDWRIGHT_DNS: `${dns.host}:${dns.port}`,
    SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8',
  })
  const created = await service.call('POST', '/v5/accounts/subaccounts', { form: { name: 'a customer' } })
  const database = await createTestDatabase('documents')
  t.after(() => database.drop())
  const { body: sent } = await service.send({})
  const id = sent.id.slice(1, -1)
  const { body: deliveries } = await service.call('GET', `/sendwright/v1/messages/${id}/deliveries`)
  const settings: Record<string, string> = {
    ID: id,
    DELIVERY: deliveries.items[0].id,
    PATH: `${join(folder, 'bin')}:${process.env['PATH']}`,
    KEY: service.key,
    URL: service.url,
    DOMAIN: service.domain,
    SUBACCOUNT: created.body.subaccount.id,
    SENDWRIGHT_HOST: service.config.host,
    SENDWRIGHT_DATA: service.config.dataFolder,
  }
  const restored = join(folder, 'restored')
  const own = (command: string): Record<string, string> => {
    if (/sendwright restore/.test(command)) return { SENDWRIGHT_DATA: restored }
    // A stopped service is moved: the one that was restored.
    if (/migrate --to sqlite:/.test(command))
      return { SENDWRIGHT_DATA: restored, SENDWRIGHT_DATABASE_URL: database.url }
    const PGPASSWORD = decodeURIComponent(new URL(database.url).password)
    return /sendwright migrate/.test(command) ? { SENDWRIGHT_DATA: restored, PGPASSWORD } : {}
  }
  const done = new Set<string>()
  for (const { place, text } of BLOCKS.filter((block) => isShell(block) && block.notRun === null)) {
    for (const written of commandsIn(text)) {
      const command = written
        .replaceAll('http://127.0.0.1:8080', '$URL')
        .replaceAll('/backups/', `${folder}/backups/`)
        .replaceAll('/var/lib/', `${folder}/`)
        .replaceAll('postgres://user@host/database', withoutPassword(database.url))
        .replace(/\s+# .*$/, '')
      // A command that several documents have runs once.
      if (done.has(command)) continue
      done.add(command)
      await prepare(command, service)
      const started = performance.now()
      const env = { ...settings, ...own(command) }
      const { stdout, stderr } = await exec('/bin/sh', ['-c', command], {
        cwd: folder,
        env,
        timeout: HANG_MS,
      }).catch((error: { stdout?: string; stderr?: string }) => {
        throw new Error(`${place}: ${written}\n${error.stdout}${error.stderr}`, { cause: error })
      })
      t.diagnostic(`${Math.round(performance.now() - started)} ms: ${written.split('\n')[0]}`)
      for (const [matching, output] of PRINTED)
        if (matching.test(command)) assert.match(stdout + stderr, output, `${place}: ${written}`)
    }
  }
  await eventually('the message of the first command', async () =>
    (await service.events('?event=delivered')).some(({ tags }) => (tags as string[]).includes('order')),
  )
})
