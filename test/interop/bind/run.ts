/**
 * BIND takes the records of a domain by dynamic update: `npm run interop -- bind`. Shown, written and undone, with keys of both
 * algorithms; a wrong key, a foreign zone, and a record that somebody else writes in between are refused. What stands in the zone
 * is read by BIND's own `dig`.
 */
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createDnsServer } from '../../support/dns-server.ts'
import { eventually, startTestService, type TestService } from '../../support/service.ts'
import { temporaryFolder } from '../../support/stores.ts'

const run = promisify(execFile)
const NAMED = '/usr/sbin/named'
/** It listens on addresses of interfaces only. */
const HOST = '127.0.0.1'
const PORT = 5300
const ZONE = 'shop.example'
const DOMAIN = `mail.${ZONE}`
const CHANGES = `/sendwright/v1/domains/${DOMAIN}/dns-changes`
const SECRET = Buffer.alloc(32, 7).toString('base64')
const ALGORITHMS = ['hmac-sha256', 'hmac-sha512'] as const

const ZONE_FILE = `$TTL 300
@ IN SOA ns.${ZONE}. host.${ZONE}. 1 3600 600 86400 60
@ IN NS ns.${ZONE}.
ns IN A 192.0.2.53
@ IN MX 1 mx.mailboxes.example.
@ IN TXT "google-site-verification=1"
mail IN TXT "v=spf1 include:_spf.mailboxes.example -all"
mail IN TXT "a \\"quoted\\" text" "in two; strings" "\\001\\255"
*.wild IN A 192.0.2.80
`

const configuration = (folder: string, host: string) => `options {
  directory "${folder}"; pid-file "${folder}/named.pid"; session-keyfile "${folder}/session.key";
  listen-on port ${PORT} { ${host}; }; listen-on-v6 { none; }; recursion no; dnssec-validation no; notify no;
};
controls { };
${ALGORITHMS.map((algorithm) => `key "${algorithm}.key" { algorithm ${algorithm}; secret "${SECRET}"; };`).join('\n')}
zone "${ZONE}" {
  type primary; file "${folder}/zone";
  allow-update { ${ALGORITHMS.map((algorithm) => `key "${algorithm}.key";`).join(' ')} };
  allow-transfer { any; };
};
`

export async function runBind(): Promise<void> {
  const ends: (() => unknown)[] = []
  const t = { after: (end: () => unknown) => void ends.unshift(end) }
  try {
    const folder = await temporaryFolder(t as never)
    const host = HOST
    await writeFile(join(folder, 'zone'), ZONE_FILE)
    await writeFile(join(folder, 'named.conf'), configuration(folder, host))
    const named = spawn(NAMED, ['-g', '-c', join(folder, 'named.conf')], {
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    let log = ''
    named.stderr.on('data', (bytes: Buffer) => {
      log += bytes
    })
    t.after(async () => {
      if (named.exitCode !== null) return
      named.kill()
      await once(named, 'exit')
    })
    await eventually('BIND is running', async () => {
      assert.equal(named.exitCode, null, log)
      return log.includes('running')
    })
    const dns = await createDnsServer()
    t.after(() => dns.close())
    const service = await startTestService(t as never, {
      SENDWRIGHT_DNS: `${dns.host}:${dns.port}`,
      SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8',
      SENDWRIGHT_SPF_INCLUDE_HOST: 'spf.service.example',
      SENDWRIGHT_MX_HOSTS: 'mxa.service.example,mxb.service.example',
    })
    await service.call('POST', '/v4/domains', { form: { name: DOMAIN } })
    for (const algorithm of ALGORITHMS) await writeAndUndo(service, host, algorithm)
    await refusals(service, host)
    const { stdout } = await run(NAMED, ['-v'])
    console.log(stdout.trim())
  } finally {
    for (const end of ends) await end()
  }
}

/** All records but the SOA, whose serial grows. */
async function zoneOf(host: string): Promise<string[]> {
  const { stdout } = await run('dig', [`@${host}`, '-p', String(PORT), '+noall', '+answer', ZONE, 'AXFR'])
  const lines = stdout.split('\n').filter((line) => line !== '' && !/\sSOA\s/.test(line))
  return lines.map((line) => line.replaceAll(/\s+/g, ' ')).sort()
}

async function putProvider(service: TestService, host: string, algorithm: string, more: object = {}) {
  const settings = { kind: 'rfc2136', server: `${host}:${PORT}`, key_name: `${algorithm}.key`, algorithm }
  const json = { ...settings, secret: SECRET, ...more }
  const { status, text } = await service.call('PUT', '/sendwright/v1/dns-providers/bind', { json })
  assert.equal(status, 200, text)
}

async function writeAndUndo(service: TestService, host: string, algorithm: string): Promise<void> {
  await putProvider(service, host, algorithm)
  const before = await zoneOf(host)
  const shown = await service.call('POST', CHANGES, { json: { dry_run: true } })
  assert.equal(shown.body.state, 'planned', shown.text)
  assert.deepEqual(await zoneOf(host), before)
  const written = await service.call('POST', CHANGES, { json: { digest: shown.body.digest } })
  assert.equal(written.body.state, 'done', written.text)
  const now = await zoneOf(host)
  for (const line of [
    `${DOMAIN}. 300 IN TXT "v=spf1 include:_spf.mailboxes.example include:spf.service.example -all"`,
    `${DOMAIN}. 3600 IN MX 10 mxa.service.example.`,
  ])
    assert.ok(now.includes(line), `${line}\nis not in\n${now.join('\n')}`)
  assert.deepEqual(
    before.filter((line) => !now.includes(line)),
    [`${DOMAIN}. 300 IN TXT "v=spf1 include:_spf.mailboxes.example -all"`],
  )
  assert.equal((await service.call('POST', CHANGES, { json: {} })).body.state, 'unchanged')
  const back = await service.call('POST', `${CHANGES}/${written.body.id}/undo`, { json: {} })
  assert.equal(back.body.state, 'done', back.text)
  assert.deepEqual(await zoneOf(host), before)
  console.log(`${algorithm}: shown, written (${now.length - before.length} records more) and undone`)
}

async function refusals(service: TestService, host: string): Promise<void> {
  const before = await zoneOf(host)
  const apply = async () => (await service.call('POST', CHANGES, { json: {} })).body
  for (const [what, more] of [
    ['a wrong secret', { secret: Buffer.alloc(32, 8).toString('base64') }],
    ['an unknown key', { key_name: 'other.key' }],
  ] as const) {
    await putProvider(service, host, 'hmac-sha256', more)
    const { message } = await apply()
    assert.match(message, /does not take the key/)
    console.log(`refused: ${what}: ${message}`)
  }
  await putProvider(service, host, 'hmac-sha256')
  await service.call('POST', '/v4/domains', { form: { name: 'elsewhere.example' } })
  const path = '/sendwright/v1/domains/elsewhere.example/dns-changes'
  const { message } = (await service.call('POST', path, { json: {} })).body
  assert.match(message, /has a zone for elsewhere.example/)
  console.log(`refused: another zone: ${message}`)
  assert.deepEqual(await zoneOf(host), before)
}
