/** An MTA-STS policy that the service publishes, read by the client that we have for those of others. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createAcmeServer } from '../../../test/support/acme-server.ts'
import { createTestClock } from '../../../test/support/clock.ts'
import { createDnsServer } from '../../../test/support/dns-server.ts'
import { addDomain, domainRow } from '../../../test/support/figures.ts'
import { jobContext } from '../../../test/support/job-context.ts'
import { eventually, startTestService } from '../../../test/support/service.ts'
import { eachStore } from '../../../test/support/stores.ts'
import { createSealer } from '../../platform/store/secrets/sealing.ts'
import { insert } from '../../platform/store/store.ts'
import { fetchPolicy } from '../../protocols/mta-sts/fetch.ts'
import { namesHost, parseStsPolicy, readStsRecord } from '../../protocols/mta-sts/policy.ts'
import { createCertificateStore } from './certificate-store.ts'
import { policyCertificateJob } from './hosted-policies.ts'

const NAME = 'hosted.example'
const HOST = `mta-sts.${NAME}`
const TARGET = 'track.service.example'

async function start(t: TestContext) {
  const clock = createTestClock(Date.now())
  const dns = await createDnsServer()
  t.after(() => dns.close())
  const web = { address: '', port: 0 }
  const acme = await createAcmeServer({ now: () => clock.now(), reach: () => web })
  t.after(() => acme.close())
  const env = {
    SENDWRIGHT_DNS: `${dns.host}:${dns.port}`,
    SENDWRIGHT_TRACKING_CNAME_TARGET: TARGET,
    SENDWRIGHT_MX_HOSTS: 'mx1.service.example,mx2.service.example',
    SENDWRIGHT_HTTPS_PORT: '0',
    SENDWRIGHT_ACME_DIRECTORY: acme.directory,
  }
  const service = await startTestService(t, env, { clock, random: () => 0.5 })
  Object.assign(web, { address: service.config.host, port: service.service.port })
  const form = { name: NAME, dkim_key_size: '1024' }
  assert.equal((await service.call('POST', '/v4/domains', { form })).status, 200)
  const { body } = await service.call('GET', `/v4/domains/${NAME}`)
  for (const { name, record_type: type, value } of body.sending_dns_records)
    if (type === 'TXT') dns.set(name, 'TXT', [value])
  const change = async (settings: Record<string, string>) => {
    const answer = await service.call('PUT', `/v4/domains/${NAME}`, { form: settings })
    assert.equal(answer.status, 200, answer.text)
  }
  const state = async () =>
    (await service.call('GET', `/sendwright/v1/domains/${NAME}/mta-sts`)).body as Record<string, string>
  return { clock, dns, acme, service, change, state }
}

test('a policy is served with a certificate of its own, and its record names the policy', async (t) => {
  const { clock, dns, acme, service, change, state } = await start(t)
  assert.deepEqual(await state(), {
    ...{
      mode: 'off',
      max_age: 604_800,
      url: `https://${HOST}/.well-known/mta-sts.txt`,
      policy: null,
      id: null,
    },
    ...{ host_record: 'unknown', policy_record: 'unknown', mx_records: 'unknown' },
    ...{ certificate: null, certificate_error: null },
  })
  await change({ mta_sts: 'testing' })
  const first = await state()
  const explained = await service.call('GET', `/sendwright/v1/domains/${NAME}/dns`)
  const records = explained.body.records
    .map((one: { record: Record<string, string> }) => one.record)
    .filter(({ purpose }: { purpose: string }) => purpose.startsWith('mta-sts'))
    .map(({ name, type, value }: Record<string, string>) => [name, type, value])
  assert.deepEqual(records, [
    [HOST, 'CNAME', TARGET],
    [`_mta-sts.${NAME}`, 'TXT', `v=STSv1; id=${first['id']}`],
  ])
  const zone = await service.call('GET', `/sendwright/v1/domains/${NAME}/zone`)
  assert.match(
    zone.text,
    new RegExp(`_mta-sts\\.hosted\\.example\\.\\t3600\\tIN\\tTXT\\t"v=STSv1; id=${first['id']}"`),
  )

  dns.set(HOST, 'CNAME', [TARGET])
  const record = `v=STSv1; id=${first['id']}`
  dns.set(`_mta-sts.${NAME}`, 'TXT', [record])
  await service.call('PUT', `/v4/domains/${NAME}/verify`)
  await eventually('the certificate', async () => {
    await clock.advance(1_000)
    return (await state())['certificate'] === 'active'
  })
  const ready = await state()
  assert.deepEqual([ready['host_record'], ready['policy_record']], ['valid', 'valid'])

  const read = async () => {
    const fetched = await fetchPolicy(NAME, {
      addressesOf: async () => [service.config.host],
      port: service.service.httpsPort as number,
      ca: acme.root,
    })
    assert.equal(fetched.kind, 'text', JSON.stringify(fetched))
    const policy = parseStsPolicy(fetched.kind === 'text' ? fetched.text : '')
    assert.ok(!('invalid' in policy))
    return policy
  }
  const policy = await read()
  assert.deepEqual(policy, {
    ...{ mode: 'testing', mx: ['mx1.service.example', 'mx2.service.example'], maxAgeSeconds: 604_800 },
  })
  assert.ok(namesHost(policy, 'MX2.service.example'))
  assert.equal(readStsRecord([record]), first['id'])

  await change({ mta_sts: 'enforce', mta_sts_max_age: '86400' })
  assert.equal((await read()).mode, 'enforce')
  const second = await state()
  assert.notEqual(second['id'], first['id'])
  assert.equal(second['policy_record'], 'unknown', 'the record names the policy before')
  await change({ mta_sts: 'none' })
  assert.deepEqual([(await read()).mode, (await read()).mx], ['none', []])
  await change({ mta_sts: 'off' })
  const path = '/.well-known/mta-sts.txt'
  assert.equal((await service.call('GET', path, { headers: { host: HOST } })).status, 404)
  const refused = await service.call('PUT', `/v4/domains/${NAME}`, { form: { mta_sts: 'always' } })
  assert.equal(refused.status, 400)
})

eachStore('domains that do not lead here hold up none after them', async (store) => {
  const clock = createTestClock()
  const certificates = createCertificateStore(store, createSealer('a secret for tests only, 32 long'))
  const dnsTargets = {
    spfIncludeHost: '',
    mxHosts: ['mx1.service.example'],
    tracking: TARGET,
    dkimZone: null,
  }
  const names = Array.from({ length: 1_001 }, (_, at) => `d${String(at).padStart(4, '0')}.example`)
  const check = { purpose: 'mta-sts-host', type: 'CNAME', value: TARGET }
  await addDomain(store, 'first.example', 'account')
  await store.commit(
    names.flatMap((name, at) => [
      insert('domains', { ...domainRow(name, 'account'), mta_sts: 'testing', verified: 1 }),
      insert('domain_dns', {
        domain_id: `id-${name}`,
        checks_json: JSON.stringify([{ ...check, name: `mta-sts.${name}`, valid: at === 1_000 }]),
        ...{ state_since: 0, next_check_at: 0 },
      }),
    ]),
  )
  const orders = { wake: () => undefined }
  const job = policyCertificateJob({ store, clock, config: { dnsTargets }, certificates, orders })
  job.start(jobContext(store, { clock }))
  await eventually('the certificate of the last domain', async () => {
    await clock.advance(60_000)
    return (await certificates.find(`mta-sts.${names.at(-1)}`)) !== null
  })
  await job.stop()
})
