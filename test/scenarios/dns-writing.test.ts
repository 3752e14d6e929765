/** Records of domains are written at DNS providers, shown before, and taken back; nothing of anybody else is touched. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { addAccount } from '../support/accounts.ts'
import { runCases } from '../support/command-cases.ts'
import { createDnsServer } from '../support/dns-server.ts'
import {
  ACCESS_KEY,
  createFakeZone,
  type FakeZone,
  type HttpKind,
  startProviderApi,
  TOKEN,
} from '../support/dns-zone.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { temporaryFolder } from '../support/stores.ts'
import { startUpdateServer } from '../support/update-server.ts'

const NAME = 'mail.shop.example'
const CHANGES = `/sendwright/v1/domains/${NAME}/dns-changes`
const PROVIDER = '/sendwright/v1/dns-providers/main'
const KEY = {
  ...{ name: 'sendwright.key', algorithm: 'hmac-sha256' as const },
  secret: Buffer.from('0123456789abcdef0123456789abcdef'),
}

/** What others have in the zone. */
const FOREIGN = [
  '@ MX 1 mx.mailboxes.example',
  '@ TXT "google-site-verification=1"',
  '@ TXT "v=spf1 include:_spf.mailboxes.example -all"',
  'www A 192.0.2.80',
  'mail TXT "v=spf1 include:_spf.mailboxes.example -all"',
  'mail TXT "a \\"quoted\\" text" "in two strings"',
  '_dmarc TXT "v=DMARC1; p=reject"',
]

interface Rig {
  service: TestService
  zone: FakeZone
}

async function start(t: TestContext): Promise<Rig> {
  const dns = await createDnsServer()
  t.after(() => dns.close())
  const service = await startTestService(t, {
    SENDWRIGHT_DNS: `${dns.host}:${dns.port}`,
    SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8',
    SENDWRIGHT_SPF_INCLUDE_HOST: 'spf.service.example',
    SENDWRIGHT_MX_HOSTS: 'mxa.service.example,mxb.service.example',
    SENDWRIGHT_TRACKING_CNAME_TARGET: 'track.service.example',
  })
  const { status, text } = await service.call('POST', '/v4/domains', { form: { name: NAME } })
  assert.equal(status, 200, text)
  return { service, zone: createFakeZone('shop.example', FOREIGN) }
}

async function putProvider({ service }: Rig, json: Record<string, unknown>) {
  const { status, text, body } = await service.call('PUT', PROVIDER, { json })
  assert.equal(status, 200, text)
  return body
}

/** A provider of that kind over the zone; resolves with what the test may do to it. */
async function startHttpProvider(t: TestContext, rig: Rig, kind: HttpKind) {
  const api = await startProviderApi(t, kind, rig.zone)
  const id = kind === 'route53' ? { access_key_id: ACCESS_KEY } : {}
  await putProvider(rig, { kind, secret: TOKEN, api_url: api.url, ...id })
  return api
}

async function startNameServer(t: TestContext, rig: Rig, secret = KEY.secret) {
  const server = await startUpdateServer(t, rig.zone, KEY)
  const settings = { server: server.server, key_name: KEY.name, secret: secret.toString('base64') }
  await putProvider(rig, { kind: 'rfc2136', ...settings })
  return server
}

const apply = ({ service }: Rig, json: Record<string, unknown> = {}) =>
  service.call('POST', CHANGES, { json })
const undo = ({ service }: Rig, id: string, json: Record<string, unknown> = {}) =>
  service.call('POST', `${CHANGES}/${id}/undo`, { json })

interface Entry {
  purpose: string
  action: string
  add: string[]
  remove: string[]
  reason: string
  written: boolean | null
}
const brief = (entries: Entry[]) => entries.map(({ purpose, action }) => `${action} ${purpose}`).sort()

const HTTP_KINDS: readonly HttpKind[] = ['cloudflare', 'desec', 'hetzner', 'route53']

for (const kind of [...HTTP_KINDS, 'rfc2136'] as const)
  test(`${kind}: shown, written as shown, and undone`, async (t) => {
    const rig = await start(t)
    const { zone } = rig
    await (kind === 'rfc2136' ? startNameServer(t, rig) : startHttpProvider(t, rig, kind))
    const before = zone.lines()

    const shown = await apply(rig, { dry_run: true })
    assert.equal(shown.status, 200, shown.text)
    assert.deepEqual([shown.body.state, shown.body.id, zone.lines()], ['planned', null, before])
    const expected = ['add dkim', 'add dmarc', 'add mx', 'add tls-rpt', 'add tracking', 'change spf']
    assert.deepEqual(brief(shown.body.entries), expected)
    const spf = shown.body.entries.find(({ purpose }: Entry) => purpose === 'spf')
    assert.deepEqual(
      [spf.remove, spf.add],
      [
        ['v=spf1 include:_spf.mailboxes.example -all'],
        ['v=spf1 include:_spf.mailboxes.example include:spf.service.example -all'],
      ],
    )
    const stale = await apply(rig, { digest: '0'.repeat(32) })
    assert.deepEqual([stale.status, zone.lines()], [409, before])

    const written = await apply(rig, { digest: shown.body.digest })
    assert.deepEqual([written.status, written.body.state], [200, 'done'], written.text)
    assert.ok(written.body.entries.every((entry: Entry) => entry.written === true))
    const now = zone.lines()
    const gone = before.filter((line) => !now.includes(line))
    assert.deepEqual(gone, [`${NAME} 300 TXT "v=spf1 include:_spf.mailboxes.example -all"`])
    for (const line of [
      `${NAME} 300 TXT "v=spf1 include:_spf.mailboxes.example include:spf.service.example -all"`,
      `${NAME} 3600 MX 10 mxb.service.example`,
      `email.${NAME} 3600 CNAME track.service.example`,
      `_dmarc.${NAME} 3600 TXT "v=DMARC1; p=none"`,
    ])
      assert.ok(now.includes(line), `${line} in ${now.join('\n')}`)
    assert.equal((await apply(rig)).body.state, 'unchanged')

    const back = await undo(rig, written.body.id)
    assert.deepEqual(
      [back.status, back.body.state, back.body.undoes],
      [200, 'done', written.body.id],
      back.text,
    )
    assert.deepEqual(zone.lines(), before)
    const { items } = (await rig.service.call('GET', CHANGES)).body
    assert.deepEqual(
      items.map(({ state }: { state: string }) => state),
      ['done', 'undone'],
    )
    assert.equal((await undo(rig, written.body.id)).status, 400)
  })

test('what was shown at one provider is not written at another', async (t) => {
  const rig = await start(t)
  const api = await startHttpProvider(t, rig, 'cloudflare')
  const json = { kind: 'cloudflare', secret: TOKEN, api_url: api.url }
  assert.equal((await rig.service.call('PUT', `${PROVIDER}-2`, { json })).status, 200)
  const { digest } = (await apply(rig, { dry_run: true, provider: 'main' })).body
  const before = rig.zone.lines()
  assert.equal((await apply(rig, { digest, provider: 'main-2' })).status, 409)
  assert.deepEqual(rig.zone.lines(), before)
  assert.equal((await apply(rig, { digest, provider: 'main' })).status, 200)
})

test('MX of others is replaced only on request, and comes back', async (t) => {
  const rig = await start(t)
  const { zone } = rig
  await startHttpProvider(t, rig, 'cloudflare')
  zone.add('mail', 'MX', '5 mx.mailboxes.example')
  const before = zone.lines()
  const { body: shown } = await apply(rig, { dry_run: true })
  const mx = shown.entries.find(({ purpose }: Entry) => purpose === 'mx')
  assert.deepEqual([mx.action, mx.reason], ['left', 'the domain receives its mail elsewhere'])
  const { body } = await apply(rig, { replace: ['mx'] })
  assert.deepEqual(zone.find(NAME, 'MX')?.values.toSorted(), [
    '10 mxa.service.example',
    '10 mxb.service.example',
  ])
  await undo(rig, body.id)
  assert.deepEqual(zone.lines(), before)
})

const xml = (code: string) =>
  `<ErrorResponse><Error><Code>${code}</Code><Message>words</Message></Error></ErrorResponse>`

test('a provider that refuses, is busy or is away: the words say so, and nothing is written', async (t) => {
  const rig = await start(t)
  const { zone, service } = rig
  const before = zone.lines()
  for (const kind of HTTP_KINDS)
    await t.test(kind, async (t) => {
      const api = await startHttpProvider(t, rig, kind)
      const busy = { status: 429, headers: { 'retry-after': '77' }, body: kind === 'route53' ? xml('X') : {} }
      api.fault = () => busy
      const limited = await apply(rig)
      assert.deepEqual([limited.status, limited.headers.get('retry-after')], [409, '77'], limited.text)
      assert.match(limited.body.message, /takes no more requests for 77 s \(status 429/)
      const asked = api.requests.length
      assert.equal(asked, 1, 'a long wait is not waited for')
      api.fault = () => ({ status: 500, body: '<html>' })
      assert.match((await apply(rig)).body.message, /could not answer \(status 500/)
      api.fault = () => ({ status: 200, body: '{"result": [' })
      assert.equal((await apply(rig)).status, 409)
      api.fault = () => null
      const settings = { kind, api_url: api.url, ...(kind === 'route53' && { access_key_id: 'AKIDOTHER12' }) }
      await service.call('PUT', PROVIDER, { json: { ...settings, secret: 'wrong-token' } })
      const denied = await apply(rig)
      assert.match(denied.body.message, /does not take the credentials, or not for this \(status 40[13]: \S/)
      assert.doesNotMatch(denied.text, /wrong-token/)
    })
  await t.test('a name server', async (t) => {
    const server = await startNameServer(t, rig, Buffer.from('another secret'))
    assert.match((await apply(rig)).body.message, /does not take the key "sendwright.key" \(NOTAUTH/)
    await startNameServer(t, rig)
    server.clockSkewSeconds = 0
    const skewed = await startNameServer(t, rig)
    skewed.clockSkewSeconds = 900
    assert.match((await apply(rig)).body.message, /does not take the key/)
    await putProvider(rig, { kind: 'rfc2136', server: '127.0.74.99:53', key_name: 'k', secret: 'QUJD' })
    assert.match((await apply(rig)).body.message, /cannot be reached: /)
  })
  await t.test('without a zone of the domain', async (t) => {
    const other = await startProviderApi(t, 'cloudflare', createFakeZone('other.example'))
    await putProvider(rig, { kind: 'cloudflare', secret: TOKEN, api_url: other.url })
    assert.match(
      (await apply(rig)).body.message,
      /No DNS provider of the account has a zone for mail.shop.example/,
    )
    const { body } = await apply(rig, { provider: 'main' })
    assert.deepEqual(
      new Set(body.entries.map(({ reason }: Entry) => reason)),
      new Set(['no zone of the provider holds the name']),
    )
    assert.equal((await apply(rig, { provider: 'absent' })).status, 404)
  })
  assert.deepEqual(zone.lines(), before)
  assert.deepEqual((await service.call('GET', CHANGES)).body.items, [])
})

test('a short wait is waited for', async (t) => {
  const rig = await start(t)
  const api = await startHttpProvider(t, rig, 'desec')
  let refusals = 0
  api.fault = (method) =>
    method === 'PATCH' && refusals++ === 0 ? { status: 429, headers: { 'retry-after': '1' }, body: {} } : null
  assert.equal((await apply(rig)).body.state, 'done')
})

test('a record that appears between the look and the writing is not written over', async (t) => {
  for (const kind of ['rfc2136', 'route53', 'cloudflare', 'hetzner'] as const)
    await t.test(kind, async (t) => {
      const rig = await start(t)
      const { zone } = rig
      const intrude = () => {
        if (zone.find(NAME, 'TXT')?.values.some((value) => value.includes('_spf.mailboxes')))
          zone.put(NAME, 'TXT', 300, ['"v=spf1 mx -all"'])
        zone.put(`_dmarc.${NAME}`, 'TXT', 300, ['"v=DMARC1; p=none"'])
      }
      if (kind === 'rfc2136') (await startNameServer(t, rig)).onUpdate = intrude
      else {
        const api = await startHttpProvider(t, rig, kind)
        api.fault = (method) => {
          if (method !== 'GET') intrude()
          return null
        }
      }
      const { body } = await apply(rig)
      assert.equal(body.state, 'failed', JSON.stringify(body))
      const lines = zone.lines()
      // Hetzner has no transactions: what came before the refusal is there.
      if (kind !== 'hetzner') {
        assert.ok(lines.includes(`${NAME} 300 TXT "v=spf1 mx -all"`))
        assert.equal(zone.find(`email.${NAME}`, 'CNAME'), undefined, 'all or nothing')
      }
      assert.deepEqual(zone.find(`_dmarc.${NAME}`, 'TXT')?.ttl, 300)
    })
})

test('a failure in the middle: what was written is known, finished by the next apply, and undone', async (t) => {
  const rig = await start(t)
  const { zone } = rig
  const api = await startHttpProvider(t, rig, 'hetzner')
  const before = zone.lines()
  let writes = 0
  api.fault = (method) => {
    if (method === 'GET' || ++writes !== 3) return null
    return { status: 422, body: { error: { code: 'invalid_input', message: 'invalid TTL' } } }
  }
  const { body: broken } = await apply(rig)
  assert.deepEqual([broken.state, broken.error], ['failed', 'Hetzner refused (status 422: invalid TTL).'])
  const flags = broken.entries.map(({ written }: Entry) => written)
  assert.deepEqual([flags.filter((flag: boolean) => flag).length, flags.includes(null)], [2, false])
  const { body: rest } = await apply(rig)
  assert.equal(rest.state, 'done')
  assert.equal(rest.entries.filter(({ action }: Entry) => action === 'unchanged').length, 2)
  assert.equal((await undo(rig, broken.id)).body.state, 'done')
  assert.equal((await undo(rig, rest.id)).body.state, 'done')
  assert.deepEqual(zone.lines(), before)
})

test('a connection that breaks after the change: the change is found, and undone', async (t) => {
  const rig = await start(t)
  const { zone } = rig
  const api = await startHttpProvider(t, rig, 'desec')
  const before = zone.lines()
  api.breaksAfter = (method) => method === 'PATCH'
  const { body } = await apply(rig)
  assert.equal(body.state, 'failed')
  assert.match(body.error, /^deSEC cannot be reached: /)
  assert.ok(body.entries.every(({ written }: Entry) => written === true))
  api.breaksAfter = () => false
  assert.equal((await undo(rig, body.id)).body.state, 'done')
  assert.deepEqual(zone.lines(), before)
})

test('what was changed by hand since is left by the undo', async (t) => {
  const rig = await start(t)
  const { zone } = rig
  await startHttpProvider(t, rig, 'cloudflare')
  const { body } = await apply(rig)
  zone.put(NAME, 'TXT', 300, ['"v=spf1 mx -all"'])
  const back = await undo(rig, body.id)
  const left = back.body.entries.filter(({ action }: Entry) => action === 'left')
  assert.deepEqual(
    left.map(({ purpose, reason }: Entry) => [purpose, reason]),
    [['spf', 'it was changed since']],
  )
  assert.deepEqual(zone.at(NAME), [{ name: NAME, type: 'TXT', ttl: 300, values: ['"v=spf1 mx -all"'] }])
})

test('a secret is never shown, and goes nowhere but where it was given for', async (t) => {
  const rig = await start(t)
  const { service } = rig
  const api = await startHttpProvider(t, rig, 'hetzner')
  const texts = await Promise.all(
    [PROVIDER, '/sendwright/v1/dns-providers', '/sendwright/v1/audit'].map(
      async (path) => (await service.call('GET', path)).text,
    ),
  )
  assert.doesNotMatch(texts.join(), new RegExp(TOKEN))
  const again = await service.call('PUT', PROVIDER, { json: { kind: 'hetzner', api_url: api.url } })
  assert.equal(again.status, 200, 'it stays with the same address')
  assert.equal((await apply(rig)).body.state, 'done')
  for (const json of [
    { kind: 'hetzner', api_url: 'http://127.0.0.1:9' },
    { kind: 'hetzner' },
    { kind: 'desec', api_url: api.url },
  ])
    assert.deepEqual(
      [json, (await service.call('PUT', PROVIDER, { json })).body.message],
      [json, 'Missing mandatory parameter: secret'],
    )
  const refused: [object, RegExp][] = [
    [{ kind: 'hetzner', secret: 'a b' }, /^Invalid parameter: secret$/],
    [{ kind: 'hetzner', secret: 'x', api_url: 'http://example.com' }, /^Invalid parameter: api_url$/],
    [{ kind: 'hetzner', secret: 'x', server: 'ns.example' }, /^server is not for hetzner$/],
    [{ kind: 'rfc2136', secret: 'QUJD', server: 'ns.example' }, /^Missing mandatory parameter: key_name$/],
    [
      { kind: 'rfc2136', secret: 'not base64', server: 'ns.example', key_name: 'k' },
      /^Invalid parameter: secret$/,
    ],
    [{ kind: 'rfc2136', secret: 'QUJD', server: 'a b:1', key_name: 'k' }, /^Invalid parameter: server$/],
    [{ kind: 'route53', secret: 'x' }, /^Missing mandatory parameter: access_key_id$/],
  ]
  for (const [json, words] of refused) {
    const { status, body } = await service.call('PUT', PROVIDER, { json })
    assert.equal(status, 400)
    assert.match(body.message, words)
  }
})

test('a private address is not asked, whoever names it', async (t) => {
  const service = await startTestService(t)
  await service.call('POST', '/v4/domains', { form: { name: NAME } })
  const rig = { service, zone: createFakeZone('shop.example') }
  await putProvider(rig, { kind: 'desec', secret: TOKEN, api_url: 'http://127.0.0.1:9' })
  assert.match((await apply(rig)).body.message, /address not allowed/)
  await putProvider(rig, { kind: 'rfc2136', server: '127.0.0.1', key_name: 'k', secret: 'QUJD' })
  assert.match((await apply(rig)).body.message, /address not allowed/)
})

test('an operator writes, looks and takes back in a terminal', async (t) => {
  const rig = await start(t)
  const { zone, service } = rig
  const folder = await temporaryFolder(t)
  const api = await startProviderApi(t, 'hetzner', zone)
  writeFileSync(join(folder, 'token'), `${TOKEN}\n`)
  const before = zone.lines()
  const set = `dns set main --kind hetzner --secret-file ${join(folder, 'token')} --api-url ${api.url}`
  const lines = [
    set,
    `dns apply ${NAME} --dry-run`,
    `dns apply ${NAME}`,
    `dns undo ${NAME}`,
    `dns changes ${NAME}`,
  ]
  const results = await runCases(
    { SENDWRIGHT_DATA: service.config.dataFolder },
    [...lines, `dns undo ${NAME}`, `dns apply ${NAME} --json --dry-run`].map((line) => ({
      args: line.split(' '),
    })),
  )
  assert.deepEqual(
    results.map(({ code, err }) => [code, err]),
    [...lines.map(() => [0, '']), [1, 'There is no change to take back.\n'], [0, '']],
  )
  const [, shown = '', written = '', back = '', changes = ''] = results.map(({ out }) => out)
  assert.match(shown, /^~ {2}spf {2}TXT {2}mail\.shop\.example$/m)
  assert.match(shown, /^ {5}- {2}v=spf1 include:_spf\.mailboxes\.example -all$/m)
  assert.match(shown, /^\+ {2}tracking {2}CNAME {2}email\.mail\.shop\.example$/m)
  assert.match(shown, /^Nothing was written: this is what would be\.$/m)
  assert.match(written, /^done: \S+ \S+ at main, \S+\nmail\.shop\.example is unverified\.\n$/m)
  assert.match(back, /^- {2}tracking {2}CNAME/m)
  assert.match(changes, /^done: [\s\S]*^undone: /m)
  assert.deepEqual(zone.lines(), before)
})

test("a tenant's provider is used for its own domains only, and the operator's not for a tenant's", async (t) => {
  const rig = await start(t)
  const { service, zone } = rig
  await startHttpProvider(t, rig, 'cloudflare')
  const tenant = await addAccount(service, 'tenant')
  const own = { key: tenant.key }
  const made = await service.call('POST', '/v4/domains', { form: { name: 'tenant.shop.example' }, ...own })
  assert.equal(made.status, 200, made.text)
  const before = zone.lines()
  const path = '/sendwright/v1/domains/tenant.shop.example/dns-changes'
  const refused = await service.call('POST', path, { json: {}, ...own })
  assert.match(refused.body.message, /^There is no DNS provider/)
  assert.equal((await service.call('POST', path, { json: { provider: 'main' }, ...own })).status, 404)
  assert.equal((await service.call('POST', CHANGES, { json: {}, ...own })).status, 404)
  assert.equal((await service.call('POST', path, { json: {} })).status, 404)
  assert.deepEqual(zone.lines(), before)
})
