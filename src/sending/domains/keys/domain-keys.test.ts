// Both databases: a domain is locked while its keys change.
import assert from 'node:assert/strict'
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, type TestContext, test } from 'node:test'
import { eachDatabase } from '../../../../test/support/databases.ts'
import { createDnsServer, type DnsServer } from '../../../../test/support/dns-server.ts'
import { eventually, startTestService, type TestService } from '../../../../test/support/service.ts'
import { publicRecord } from '../../../protocols/dkim/key-material.ts'

let dns: DnsServer
let service: TestService
const cleanUps: (() => Promise<void> | void)[] = []
const whole = { after: (run: () => Promise<void>) => cleanUps.unshift(run) } as unknown as TestContext

before(async () => {
  dns = await createDnsServer()
  service = await startTestService(whole, { SENDWRIGHT_DNS: `${dns.host}:${dns.port}` })
})
after(async () => {
  for (const cleanUp of cleanUps) await cleanUp()
  await dns.close()
})

const addDomain = async (name: string, form: Record<string, string> = {}) =>
  (await service.call('POST', '/v4/domains', { form: { name, dkim_key_size: '1024', ...form } })).body
const createKey = (form: Record<string, string | File>) =>
  service.call('POST', '/v1/dkim/keys', { form: form as Record<string, string> })
const keysOf = async (authority: string) =>
  (await service.call('GET', `/v4/domains/${authority}/keys`)).body.items as {
    selector: string
    signing_domain: string
    dns_record: Record<string, string | boolean | string[]>
  }[]
const change = (authority: string, selector: string, verb: string) =>
  service.call('PUT', `/v4/domains/${authority}/keys/${selector}/${verb}`)
const publishKeys = async (authority: string) => {
  for (const { dns_record: record } of await keysOf(authority))
    dns.set(record['name'] as string, 'TXT', [record['value'] as string])
}
const pkcs1 = (key: KeyObject) => key.export({ type: 'pkcs1', format: 'pem' }).toString()
const pkcs8 = (key: KeyObject) => key.export({ type: 'pkcs8', format: 'pem' }).toString()
const rsa = (modulusLength = 1024) => generateKeyPairSync('rsa', { modulusLength }).privateKey

test('a key is created inactive, in every size and algorithm, and its private half is never shown', async () => {
  await addDomain('make.example')
  const { status, body } = await createKey({
    signing_domain: 'make.example',
    selector: 'S1.2026',
    bits: '1024',
  })
  assert.equal(status, 200)
  assert.deepEqual(Object.keys(body), ['signing_domain', 'selector', 'dns_record'])
  assert.equal(body.selector, 's1.2026')
  assert.deepEqual(
    { ...body.dns_record, value: '' },
    {
      record_type: 'TXT',
      name: 's1.2026._domainkey.make.example',
      value: '',
      valid: 'unknown',
      cached: [],
      is_active: false,
    },
  )
  const ed = await createKey({ signing_domain: 'make.example', selector: 'ed', algorithm: 'ed25519' })
  assert.match(ed.body.dns_record.value, /^k=ed25519; p=[A-Za-z0-9+/]{43}=$/)
  const fourth = await createKey({ signing_domain: 'make.example', selector: 'k4' })
  assert.deepEqual(
    [fourth.status, fourth.body],
    [400, { message: 'maximum of 3 domain keys reached for make.example' }],
  )
  await addDomain('big.example')
  const big = await createKey({ signing_domain: 'big.example', selector: 'big', bits: '4096' })
  assert.ok(big.body.dns_record.value.length > 700)
})

const REFUSED: [form: Record<string, string>, status: number, message: string][] = [
  [{ selector: 'a' }, 400, 'signing_domain is required'],
  [{ signing_domain: 'bad.example' }, 400, 'selector is required'],
  [{ signing_domain: 'bad.example', selector: 'a b' }, 400, 'selector must be a valid dot atom'],
  [{ signing_domain: 'bad.example', selector: 'a..b' }, 400, 'selector must be a valid dot atom'],
  [{ signing_domain: 'no.example', selector: 'a' }, 404, 'domain not found'],
  [{ signing_domain: 'bad.example', selector: 'K1' }, 400, 'failed to create domain key: duplicate key'],
  [{ signing_domain: 'bad.example', selector: 'a', bits: '512' }, 400, 'bits must be 1024, 2048 or 4096'],
  [{ signing_domain: 'bad.example', selector: 'a', bits: 'x' }, 400, 'bits must be 1024, 2048 or 4096'],
  [
    { signing_domain: 'bad.example', selector: 'a', algorithm: 'dsa' },
    400,
    "'dsa' is not a valid value for algorithm",
  ],
  [
    { signing_domain: 'bad.example', selector: 'a', pem: 'nothing' },
    400,
    'failed to import domain key: failed to parse PEM',
  ],
]

test('an invalid key is refused with the texts of the contract', async () => {
  await addDomain('bad.example')
  for (const [form, status, message] of REFUSED) {
    const answer = await createKey(form)
    assert.deepEqual([answer.status, answer.body], [status, { message }], JSON.stringify(form))
  }
  const pems = {
    'too small': pkcs1(generateKeyPairSync('rsa', { modulusLength: 768 }).privateKey),
    ed25519: pkcs8(generateKeyPairSync('ed25519').privateKey),
    encrypted: rsa()
      .export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' })
      .toString(),
    public: generateKeyPairSync('rsa', { modulusLength: 1024 })
      .publicKey.export({ type: 'spki', format: 'pem' })
      .toString(),
    'not PKCS #1': pkcs8(rsa()),
    huge: `-----BEGIN RSA PRIVATE KEY-----\n${'x'.repeat(10_000)}\n-----END RSA PRIVATE KEY-----\n`,
  }
  for (const [what, pem] of Object.entries(pems)) {
    for (const given of [pem, new File([pem], 'key.pem')]) {
      const answer = await createKey({ signing_domain: 'bad.example', selector: 'a', pem: given })
      assert.deepEqual(
        [answer.status, answer.body],
        [
          400,
          {
            message: 'failed to import domain key: failed to parse private key: key must be PKCS1 format',
          },
        ],
        what,
      )
    }
  }
  assert.equal((await keysOf('bad.example')).length, 1)
})

test('an RSA key is imported as text or file, unless DNS has another one', async () => {
  await addDomain('import.example')
  const key = rsa(2048)
  const text = await createKey({ signing_domain: 'import.example', selector: 'text', pem: pkcs1(key) })
  assert.equal(text.body.dns_record.value, publicRecord({ algorithm: 'rsa', privateKey: key }))
  const other = rsa()
  dns.set('file._domainkey.import.example', 'TXT', ['k=rsa; p=MIIBother'])
  const file = () =>
    createKey({ signing_domain: 'import.example', selector: 'file', pem: new File([pkcs1(other)], 'k.pem') })
  const contradicted = await file()
  assert.deepEqual(
    [contradicted.status, contradicted.body],
    [400, { message: 'pem does not match the public key in DNS' }],
  )
  dns.set('file._domainkey.import.example', 'TXT', [publicRecord({ algorithm: 'rsa', privateKey: other })])
  assert.equal((await file()).status, 200)
  // Of the private part: the lines before it hold the modulus, which is public.
  const secret = pkcs1(key).trim().split('\n').at(-3) as string
  for (const name of await readdir(service.config.dataFolder)) {
    if (!name.includes('.db')) continue
    const bytes = await readFile(join(service.config.dataFolder, name))
    assert.ok(!bytes.includes(secret) && !bytes.includes('PRIVATE KEY'), name)
  }
})

test('activation needs the valid record in DNS; repeating it and deactivating always work', async () => {
  await addDomain('act.example')
  const wrong = await change('act.example', 'k1', 'activate')
  assert.deepEqual(
    [wrong.status, wrong.body],
    [400, { message: 'cannot activate domain key: dns record is not valid' }],
  )
  await publishKeys('act.example')
  const active = await change('act.example', 'k1', 'activate')
  assert.deepEqual(active.body, {
    message: 'domain key activated',
    authority: 'act.example',
    selector: 'k1',
    active: true,
  })
  assert.deepEqual(
    (await keysOf('act.example')).map(({ dns_record: record }) => [record['valid'], record['is_active']]),
    [['VALID', true]],
  )
  dns.set('k1._domainkey.act.example', 'TXT', ['k=rsa; p='])
  assert.equal((await change('act.example', 'k1', 'activate')).status, 200)
  const off = await change('act.example', 'k1', 'deactivate')
  assert.deepEqual(off.body, {
    message: 'domain key deactivated',
    authority: 'act.example',
    selector: 'k1',
    active: false,
  })
  dns.misbehave('k1._domainkey.act.example', 'servfail')
  assert.equal((await change('act.example', 'k1', 'activate')).status, 400, 'DNS that is down proves nothing')
  for (const verb of ['activate', 'deactivate']) {
    for (const [authority, selector] of [
      ['act.example', 'nosuch'],
      ['no.example', 'k1'],
    ] as const) {
      const answer = await change(authority, selector, verb)
      assert.deepEqual([answer.status, answer.body], [404, { message: 'domain key not found' }])
    }
  }
})

test('the key made with the domain signs once verification finds it; one deactivated does not come back', async () => {
  await addDomain('auto.example')
  await publishKeys('auto.example')
  const verify = () => service.call('PUT', '/v4/domains/auto.example/verify')
  assert.equal((await verify()).body.sending_dns_records[0].is_active, true)
  await change('auto.example', 'k1', 'deactivate')
  assert.equal((await verify()).body.sending_dns_records[0].is_active, false)
})

test('the only active key cannot be deleted; an inactive one always can', async () => {
  await addDomain('del.example')
  await createKey({ signing_domain: 'del.example', selector: 'k2', bits: '1024' })
  await publishKeys('del.example')
  await change('del.example', 'k1', 'activate')
  const remove = (query: string) => service.call('DELETE', `/v1/dkim/keys?${query}`)
  const only = await remove('signing_domain=del.example&selector=k1')
  assert.deepEqual(
    [only.status, only.body],
    [400, { message: 'cannot delete domain key: must have at least one active domain key' }],
  )
  await change('del.example', 'k2', 'activate')
  assert.deepEqual((await remove('signing_domain=del.example&selector=k1')).body, { message: 'success' })
  await change('del.example', 'k2', 'deactivate')
  assert.equal((await remove('signing_domain=del.example&selector=k2')).status, 200)
  const errors: [string, number, string][] = [
    ['selector=k1', 400, 'signing_domain is required'],
    ['signing_domain=del.example', 400, 'selector is required'],
    ['signing_domain=del.example&selector=k1', 404, 'domain key not found'],
  ]
  for (const [query, status, message] of errors) {
    const answer = await remove(query)
    assert.deepEqual([answer.status, answer.body], [status, { message }])
  }
})

test('the list goes through all authorities in pages, forwards and backwards, and can be filtered', async (t) => {
  const one = await startTestService(t)
  for (const name of ['c.example', 'a.example', 'b.example'])
    await one.call('POST', '/v4/domains', { form: { name, dkim_key_size: '1024' } })
  await one.call('POST', '/v1/dkim/keys', {
    form: { signing_domain: 'a.example', selector: 'z', bits: '1024' },
  })
  const names = (body: { items: { signing_domain: string; selector: string }[] }) =>
    body.items.map((item) => `${item.selector}.${item.signing_domain}`)
  const get = async (url: string) => (await one.call('GET', url.replace(/^https?:\/\/[^/]+/, ''))).body
  const all = await get('/v1/dkim/keys?page=&limit=')
  assert.equal(all.total_count, 5)
  const expected = names(all)
  assert.deepEqual(expected.slice(0, 4), ['k1.a.example', 'z.a.example', 'k1.b.example', 'k1.c.example'])
  assert.equal(all.items[0].dns_record.valid, 'UNKNOWN')
  const seen: string[] = []
  let page = await get('/v1/dkim/keys?limit=2')
  const first = page
  while (page.items.length > 0) {
    seen.push(...names(page))
    for (const url of Object.values(page.paging)) assert.ok(URL.canParse(url as string))
    page = await get(page.paging.next)
  }
  assert.deepEqual(seen, expected)
  assert.deepEqual(names(await get(first.paging.last)), expected.slice(-2))
  const second = await get(first.paging.next)
  assert.deepEqual(names(await get(second.paging.previous)), expected.slice(0, 2))
  assert.equal((await get('/v1/dkim/keys?signing_domain=a.example')).total_count, 2)
  assert.deepEqual(names(await get('/v1/dkim/keys?selector=z')), ['z.a.example'])
  assert.equal((await get('/v1/dkim/keys?selector=%00')).total_count, 0)
  for (const token of ['nonsense', Buffer.from('["next","\0","a"]').toString('base64url')]) {
    const bad = await one.call('GET', `/v1/dkim/keys?page=${encodeURIComponent(token)}`)
    assert.equal(bad.status, 400)
  }
  assert.equal((await one.call('GET', '/v4/domains/no.example/keys')).status, 404)
})

test('authority: to the nearest parent and back, the former key signs meanwhile', async () => {
  await addDomain('top.example')
  await addDomain('a.b.top.example')
  await publishKeys('a.b.top.example')
  await service.call('PUT', '/v4/domains/a.b.top.example/verify')
  const authority = (self: string) =>
    service.call('PUT', `/v3/domains/a.b.top.example/dkim_authority?self=${self}`)
  const up = await authority('false')
  assert.equal(up.body.message, 'Domain DKIM authority has been changed')
  assert.equal(up.body.changed, true)
  assert.equal(up.body.sending_dns_records[0].name, 'k1._domainkey.top.example')
  assert.equal(up.body.sending_dns_records[0].valid, 'unknown')
  const again = await authority('no')
  assert.deepEqual(
    [again.status, again.body.changed, again.body.message],
    [200, false, 'Domain DKIM authority has not been changed'],
  )
  assert.equal(
    await signerOf('a.b.top.example'),
    'k1._domainkey.a.b.top.example',
    'the new authority has no active key',
  )
  await publishKeys('top.example')
  await change('top.example', 'k1', 'activate')
  assert.equal(await signerOf('a.b.top.example'), 'k1._domainkey.top.example')
  assert.equal((await authority('true')).body.changed, true)
  const alone = await service.call('PUT', '/v3/domains/top.example/dkim_authority', {
    form: { self: 'false' },
  })
  assert.equal(alone.body.changed, false, 'there is no parent')
  const missing = await service.call('PUT', '/v3/domains/top.example/dkim_authority')
  assert.deepEqual([missing.status, missing.body], [400, { message: 'self is required' }])
  const unknown = await service.call('PUT', '/v3/domains/no.example/dkim_authority?self=true')
  assert.deepEqual([unknown.status, unknown.body], [404, { message: 'Domain not found' }])
})

test('a domain without keys of its own gets one when it becomes its own authority', async () => {
  await addDomain('mother.example')
  await addDomain('kid.mother.example', { force_dkim_authority: 'false' })
  const answer = await service.call('PUT', '/v3/domains/kid.mother.example/dkim_authority?self=true')
  assert.equal(answer.body.sending_dns_records[0].name, 'k1._domainkey.kid.mother.example')
})

test('a new selector signs once DNS has it, and the pair stays the same', async () => {
  await addDomain('sel.example')
  await publishKeys('sel.example')
  const verify = () => service.call('PUT', '/v4/domains/sel.example/verify')
  const rename = (selector: string) =>
    service.call('PUT', `/v3/domains/sel.example/dkim_selector?dkim_selector=${encodeURIComponent(selector)}`)
  const value = (await verify()).body.sending_dns_records[0].value
  assert.deepEqual((await rename('fresh')).body, { message: 'DKIM selector changed' })
  const [record] = (await service.call('GET', '/v4/domains/sel.example')).body.sending_dns_records
  assert.deepEqual(
    [record.name, record.value, record.valid],
    ['fresh._domainkey.sel.example', value, 'unknown'],
  )
  assert.equal(await signerOf('sel.example'), 'k1._domainkey.sel.example')
  await publishKeys('sel.example')
  assert.equal((await verify()).body.sending_dns_records[0].valid, 'valid')
  assert.equal(await signerOf('sel.example'), 'fresh._domainkey.sel.example')
  await createKey({ signing_domain: 'sel.example', selector: 'other', bits: '1024' })
  const taken = await rename('other')
  assert.deepEqual(
    [taken.status, taken.body],
    [400, { message: 'failed to create domain key: duplicate key' }],
  )
  assert.equal((await rename('a.b')).body.message, 'selector must be a valid dot atom')
  assert.deepEqual((await rename('')).body, { message: 'DKIM selector changed' })
  const unknown = await service.call('PUT', '/v3/domains/no.example/dkim_selector?dkim_selector=a')
  assert.deepEqual([unknown.status, unknown.body], [404, { message: 'Domain not found' }])
})

test('an RSA and an Ed25519 key sign side by side', async () => {
  await addDomain('dual.example')
  await createKey({ signing_domain: 'dual.example', selector: 'ed', algorithm: 'ed25519' })
  await publishKeys('dual.example')
  for (const selector of ['k1', 'ed'])
    assert.equal((await change('dual.example', selector, 'activate')).status, 200)
  const item = await captured('dual.example')
  assert.deepEqual(
    item.authentication.dkim.map((one: Record<string, string>) => [one['selector'], one['result']]).sort(),
    [
      ['ed', 'pass'],
      ['k1', 'pass'],
    ],
  )
})

test('another account cannot sign with this one’s domain, nor take the name it signs with', async () => {
  await addDomain('victim.example')
  await addDomain('mail.other-root.example', { force_root_dkim_host: 'true' })
  const { DatabaseSync } = await import('node:sqlite')
  const database = new DatabaseSync(join(service.config.dataFolder, 'sendwright.db'), { timeout: 5000 })
  database.exec(
    "INSERT INTO accounts (id, parent_id, name, signing_key_sealed, created_at) SELECT 'stranger', NULL, 'Stranger', signing_key_sealed, created_at FROM accounts LIMIT 1",
  )
  database.exec(
    "UPDATE domains SET account_id = 'stranger' WHERE name IN ('victim.example', 'mail.other-root.example')",
  )
  database.exec(
    "UPDATE dkim_keys SET account_id = 'stranger' WHERE authority IN ('victim.example', 'other-root.example')",
  )
  database.close()
  const root = await service.call('POST', '/v4/domains', {
    form: { name: 'x.victim.example', force_root_dkim_host: 'true' },
  })
  assert.equal(root.status, 400)
  const named = await service.call('POST', '/v4/domains', {
    form: { name: 'x.victim.example', dkim_host_name: 'victim.example' },
  })
  assert.deepEqual(named.body, { message: "'victim.example' is not a valid value for dkim_host_name" })
  const taken = await service.call('POST', '/v4/domains', { form: { name: 'other-root.example' } })
  assert.deepEqual(taken.body, { message: 'This domain name is already taken' })
  const own = await service.call('POST', '/v4/domains', {
    form: { name: 'x.victim.example', force_dkim_authority: 'false' },
  })
  assert.equal(own.body.sending_dns_records[0].name, 'k1._domainkey.x.victim.example')
  assert.equal((await createKey({ signing_domain: 'victim.example', selector: 'evil' })).status, 404)
  assert.equal((await service.call('GET', '/v4/domains/victim.example/keys')).status, 404)
})

eachDatabase((database) => {
  test('concurrent changes keep the limit of three keys and the last active one', async (t) => {
    const one = await startTestService(t, { SENDWRIGHT_DNS: `${dns.host}:${dns.port}` }, { database })
    const name = `race-${database}.example`
    const put = (path: string) => one.call('PUT', path)
    const listed = async () => (await one.call('GET', `/v4/domains/${name}/keys`)).body.items
    await one.call('POST', '/v4/domains', { form: { name, dkim_key_size: '1024' } })
    const made = await Promise.all(
      ['a', 'b', 'c', 'd', 'e'].map((selector) =>
        one.call('POST', '/v1/dkim/keys', { form: { signing_domain: name, selector, bits: '1024' } }),
      ),
    )
    assert.deepEqual(made.map(({ status }) => status).sort(), [200, 200, 400, 400, 400])
    for (const { dns_record: record } of await listed()) dns.set(record.name, 'TXT', [record.value])
    const selectors = (await listed()).map((item: { selector: string }) => item.selector) as string[]
    assert.equal(selectors.length, 3)
    for (const selector of selectors)
      assert.equal((await put(`/v4/domains/${name}/keys/${selector}/activate`)).status, 200)
    const removed = await Promise.all(
      selectors.map((selector) =>
        one.call('DELETE', `/v1/dkim/keys?signing_domain=${name}&selector=${selector}`),
      ),
    )
    assert.deepEqual(removed.map(({ status }) => status).sort(), [200, 200, 400])
    assert.deepEqual(
      (await listed()).map((item: { dns_record: { is_active: boolean } }) => item.dns_record.is_active),
      [true],
    )
    const child = { name: `kid.${name}`, force_dkim_authority: 'false', dkim_key_size: '1024' }
    const [kid, gone] = await Promise.all([
      one.call('POST', '/v4/domains', { form: child }),
      one.call('DELETE', `/v3/domains/${name}`),
    ])
    assert.equal(kid.status, 200)
    const signer = kid.body.sending_dns_records[0].name as string
    const parentSigns = signer.endsWith(`._domainkey.${name}`)
    assert.equal(gone.status, parentSigns ? 400 : 200, 'no domain is left with an authority that is gone')
  })
})

/** A message of the domain as it was captured. */
async function captured(domain: string) {
  const sent = await service.call('POST', `/v3/${domain}/messages`, {
    form: { from: `a@${domain}`, to: 'b@example.org', subject: 's', text: 't' },
  })
  return eventually('the message in the inbox', async () => {
    const { body } = await service.call('GET', `/sendwright/v1/inbox?domain=${domain}`)
    for (const { id } of body.items as { id: string }[]) {
      const item = (await service.call('GET', `/sendwright/v1/inbox/${id}`)).body
      if (`<${item.message_id}>` === sent.body.id) return item
    }
    return null
  })
}

/** Name of the record of the key that signs for the domain now. */
async function signerOf(domain: string): Promise<string> {
  const { dkim } = (await captured(domain)).authentication
  return `${dkim[0].selector}._domainkey.${dkim[0].domain}`
}
