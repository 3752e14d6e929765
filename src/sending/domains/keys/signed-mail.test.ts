/**
 * Signatures of outgoing mail: keys are created, published and activated over the API, the message is taken from a
 * real SMTP server, and mailauth verifies its signatures with keys from a real name server.
 */
import assert from 'node:assert/strict'
import { Resolver } from 'node:dns/promises'
import { type TestContext, test } from 'node:test'
import { dkimVerify } from 'mailauth/lib/dkim/verify.js'
import { createTestClock } from '../../../../test/support/clock.ts'
import { createDnsServer, type DnsServer } from '../../../../test/support/dns-server.ts'
import {
  eventually,
  ownAddress,
  startTestService,
  type TestService,
} from '../../../../test/support/service.ts'
import { createSink, DEFAULT_EXTENSIONS, type Sink } from '../../../../test/support/smtp-sink.ts'
import { systemClock } from '../../../base/time/clock.ts'
import { createResolver } from '../../../protocols/dns/resolver.ts'

const NAME = 'signed.example'

interface Rig {
  dns: DnsServer
  sink: Sink
  service: TestService
  send(subject: string): Promise<void>
  /** `selector=result` of every signature of a message in the sink, sorted. */
  verified(subject: string): Promise<string[]>
}

async function startRig(
  t: TestContext,
  env: Record<string, string> = {},
  overrides: Parameters<typeof startTestService>[2] = {},
): Promise<Rig> {
  const dns = await createDnsServer()
  // Most receivers take chunks; messages sent with DATA are verified by the drills and the composition tests.
  const sink = await createSink({ extensions: [...DEFAULT_EXTENSIONS, 'CHUNKING'] })
  t.after(async () => {
    await sink.close()
    await dns.close()
  })
  dns.set(NAME, 'TXT', ['v=spf1 include:spf.service.example ~all'])
  dns.set('spf.service.example', 'TXT', ['v=spf1 ip4:192.0.2.0/24 -all'])
  const service = await startTestService(
    t,
    {
      SENDWRIGHT_DNS: `${dns.host}:${dns.port}`,
      SENDWRIGHT_SPF_INCLUDE_HOST: 'spf.service.example',
      SENDWRIGHT_DELIVERY: `smtp://127.0.0.1:${sink.port}`,
      ...env,
    },
    overrides,
  )
  const asker = new Resolver({ timeout: 2000, tries: 2 })
  asker.setServers([`${dns.host}:${dns.port}`])
  const messageOf = (subject: string) =>
    sink.messages.find(({ raw }) => raw.includes(`Subject: ${subject}\r\n`))
  return {
    dns,
    sink,
    service,
    async send(subject) {
      const { status } = await service.call('POST', `/v3/${NAME}/messages`, {
        form: { from: `a@${NAME}`, to: 'b@example.org', subject, text: 'Grüße\n\n' },
      })
      assert.equal(status, 200)
      await eventually(`"${subject}" at the server`, async () => messageOf(subject))
    },
    async verified(subject) {
      const { results } = await dkimVerify(messageOf(subject)?.raw ?? Buffer.alloc(0), {
        resolver: (name: string) => asker.resolveTxt(name),
      })
      return results
        .map(
          ({ selector, status }) =>
            `${selector}=${status?.result}${status?.comment ? ` (${status.comment})` : ''}`,
        )
        .sort()
    },
  }
}

const recordsOf = async (service: TestService) =>
  (await service.call('GET', `/v4/domains/${NAME}`)).body.sending_dns_records.filter(
    ({ name }: { name: string }) => name.includes('_domainkey'),
  ) as { name: string; value: string; is_active: boolean }[]

test('a domain with an active RSA and an active Ed25519 key sends mail with two valid signatures', async (t) => {
  const { dns, service, send, verified } = await startRig(t)
  await service.call('POST', '/v4/domains', { form: { name: NAME } })
  await service.call('POST', '/v1/dkim/keys', {
    form: { signing_domain: NAME, selector: 'ed', algorithm: 'ed25519' },
  })
  for (const { dns_record: record } of (await service.call('GET', `/v4/domains/${NAME}/keys`)).body.items)
    dns.set(record.name, 'TXT', [record.value])
  assert.equal((await service.call('PUT', `/v4/domains/${NAME}/verify`)).body.domain.state, 'active')
  await send('one signature')
  assert.deepEqual(await verified('one signature'), ['k1=pass'])
  assert.equal((await service.call('PUT', `/v4/domains/${NAME}/keys/ed/activate`)).status, 200)
  await send('two signatures')
  assert.deepEqual(await verified('two signatures'), ['ed=pass', 'k1=pass'])
  await service.call('PUT', `/v4/domains/${NAME}/keys/k1/deactivate`)
  await send('the other one')
  assert.deepEqual(await verified('the other one'), ['ed=pass'])
})

test('mail signed before, during and after a rotation verifies until its key is retired', async (t) => {
  const clock = createTestClock()
  const zoneHost = ownAddress()
  const env = {
    SENDWRIGHT_DKIM_ZONE: 'dkim.service.example',
    SENDWRIGHT_DKIM_ZONE_LISTEN: `${zoneHost}:5353`,
  }
  const { dns, service, send, verified } = await startRig(t, env, { clock })
  const zone = createResolver({ servers: [{ host: zoneHost, port: 5353 }], clock: systemClock, attempts: 1 })
  t.after(() => zone.close())
  /** Stands in for the delegation of the zone: public DNS returns our responder's answers. */
  const refresh = async () => {
    for (const { name, value } of await recordsOf(service)) {
      const { records } = await zone.query(value, 'TXT', { fresh: true })
      assert.equal(records.length, 1, value)
      dns.set(name, 'CNAME', [value])
      dns.set(value, 'TXT', records)
    }
  }
  await service.call('POST', '/v4/domains', { form: { name: NAME, use_automatic_sender_security: 'true' } })
  await refresh()
  assert.equal((await service.call('PUT', `/v4/domains/${NAME}/verify`)).body.domain.state, 'active')
  await send('before')
  await service.call('POST', `/v1/dkim_management/domains/${NAME}/rotate`)
  await refresh()
  await send('during')
  assert.deepEqual(await verified('before'), ['pdk1=pass'])
  clock.leap(3_600_000)
  await eventually('the new key to sign', async () => {
    clock.leap(10 * 60_000)
    await clock.advance(61_000)
    return (await recordsOf(service))[1]?.is_active
  })
  await send('after')
  await refresh()
  const all = async () => [await verified('before'), await verified('during'), await verified('after')]
  assert.deepEqual(await all(), [['pdk1=pass'], ['pdk1=pass'], ['pdk2=pass']])
  // By default a message waits in the queue for at most five days.
  clock.leap(6 * 86_400_000)
  await clock.advance(61_000)
  assert.equal((await service.call('POST', `/v1/dkim_management/domains/${NAME}/rotate`)).status, 400)
  await refresh()
  assert.deepEqual(await all(), [['pdk1=pass'], ['pdk1=pass'], ['pdk2=pass']])
})
