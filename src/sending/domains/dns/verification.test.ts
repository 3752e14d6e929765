/**
 * DNS answers and the resulting state of a domain: each case is set in a real name server, the domain is verified
 * over HTTP from both starting states (verified before, or not), and state, record and sentence are compared.
 */
import assert from 'node:assert/strict'
import { after, before, type TestContext, test } from 'node:test'
import { createTestClock } from '../../../../test/support/clock.ts'
import { createDnsServer, type DnsServer } from '../../../../test/support/dns-server.ts'
import { startTestService, type TestService } from '../../../../test/support/service.ts'

const NAME = 'state.example'
const KEY = `k1._domainkey.${NAME}`
const LINKS = `email.${NAME}`
const RETURN_PATH = `bounce.${NAME}`
const SPF = 'v=spf1 include:spf.service.example ~all'

const clock = createTestClock()
const cleanUps: (() => Promise<void> | void)[] = []
let dns: DnsServer
let service: TestService
/** Value of the DKIM record. */
let key = ''

before(async () => {
  dns = await createDnsServer()
  const whole = { after: (run: () => Promise<void>) => cleanUps.unshift(run) } as unknown as TestContext
  const env = {
    SENDWRIGHT_DNS: `${dns.host}:${dns.port}`,
    SENDWRIGHT_SPF_INCLUDE_HOST: 'spf.service.example',
    SENDWRIGHT_MX_HOSTS: 'mxa.service.example',
    SENDWRIGHT_TRACKING_CNAME_TARGET: 'track.service.example',
  }
  service = await startTestService(whole, env, { clock })
  const { body } = await service.call('POST', '/v4/domains', {
    form: { name: NAME, dkim_key_size: '1024' },
  })
  await service.call('PUT', `/v4/domains/${NAME}`, { form: { mailfrom_host: RETURN_PATH } })
  key = body.sending_dns_records[0].value
})
after(async () => {
  for (const cleanUp of cleanUps) await cleanUp()
  await dns.close()
})

function publishAll() {
  for (const name of [NAME, KEY, LINKS, RETURN_PATH, 'hop.example', 'key.example']) dns.remove(name)
  dns.set('spf.service.example', 'TXT', ['v=spf1 ip4:192.0.2.0/24 -all'])
  dns.set('track.service.example', 'A', ['192.0.2.7'])
  for (const name of [NAME, RETURN_PATH]) {
    dns.set(name, 'TXT', [SPF])
    dns.set(name, 'MX', [[10, 'mxa.service.example']])
  }
  dns.set(KEY, 'TXT', [key])
  dns.set(LINKS, 'CNAME', ['track.service.example'])
}

function publishNothing() {
  for (const name of [NAME, KEY, LINKS, RETURN_PATH]) dns.remove(name)
}

interface Explained {
  record: { purpose: string }
  valid: string
  sentence: string
}

/** Verifies while time advances, so that servers which never answer time out at once. */
async function verify() {
  let isOver = false
  const call = service.call('PUT', `/v4/domains/${NAME}/verify`).finally(() => {
    isOver = true
  })
  while (!isOver) {
    await clock.advance(200)
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  const { body, status } = await call
  assert.equal(status, 200)
  const { body: explained } = await service.call('GET', `/sendwright/v1/domains/${NAME}/dns`)
  return { state: body.domain.state as string, records: explained.records as Explained[], body }
}

type Purpose = 'spf' | 'dkim' | 'tracking' | 'mx' | 'return-path-spf' | 'return-path-mx'
interface Case {
  what: string
  spoil: () => void
  purpose: Purpose
  /** If the domain was active before, and if it was not. */
  states: ['active' | 'unverified', 'active' | 'unverified']
  /** Whether the record stays valid, if it was valid before, and if it was not. */
  valid: [boolean, boolean]
  sentence: RegExp
}

const DECIDES: Pick<Case, 'states' | 'valid'> = {
  states: ['unverified', 'unverified'],
  valid: [false, false],
}
const ADVICE: Pick<Case, 'states' | 'valid'> = { states: ['active', 'active'], valid: [false, false] }
const RIGHT: Pick<Case, 'states' | 'valid'> = { states: ['active', 'active'], valid: [true, true] }
const SAYS_NOTHING: Pick<Case, 'states' | 'valid'> = {
  states: ['active', 'unverified'],
  valid: [true, false],
}
const replace = (name: string, set: () => void) => () => {
  dns.remove(name)
  set()
}

const CASES: Case[] = [
  {
    what: 'no SPF record',
    spoil: () => dns.set(NAME, 'TXT', []),
    purpose: 'spf',
    ...DECIDES,
    sentence: /has no SPF record\. Add there this TXT record: v=spf1 include:spf\.service\.example ~all$/,
  },
  {
    what: 'SPF of somebody else',
    spoil: () => dns.set(NAME, 'TXT', ['v=spf1 a -all']),
    purpose: 'spf',
    ...DECIDES,
    sentence: /Change it to: v=spf1 a include:spf\.service\.example -all$/,
  },
  {
    what: 'two SPF records, one of them right',
    spoil: () => dns.set(NAME, 'TXT', ['v=spf1 a -all', SPF]),
    purpose: 'spf',
    ...DECIDES,
    sentence: /Two SPF records were found.*into one: v=spf1 a include:spf\.service\.example ~all$/,
  },
  {
    what: 'a name that does not exist',
    spoil: publishNothing,
    purpose: 'spf',
    ...DECIDES,
    sentence: /state\.example does not exist/,
  },
  {
    what: 'no key',
    spoil: () => dns.remove(KEY),
    purpose: 'dkim',
    ...DECIDES,
    sentence: /k1\._domainkey\.state\.example does not exist/,
  },
  {
    what: 'another key',
    spoil: () => dns.set(KEY, 'TXT', ['k=rsa; p=MIIBother']),
    purpose: 'dkim',
    ...DECIDES,
    sentence: /another key\. Publish this TXT record: k=rsa; p=MI/,
  },
  {
    what: 'a key that was revoked',
    spoil: () => dns.set(KEY, 'TXT', ['k=rsa; p=']),
    purpose: 'dkim',
    ...DECIDES,
    sentence: /it was revoked/,
  },
  {
    what: 'the key behind an alias',
    spoil: replace(KEY, () => {
      dns.set(KEY, 'CNAME', ['key.example'])
      dns.set('key.example', 'TXT', [key])
    }),
    purpose: 'dkim',
    ...RIGHT,
    sentence: /carries the right key/,
  },
  {
    what: 'a key that comes only over TCP',
    spoil: () => dns.misbehave(KEY, 'truncate'),
    purpose: 'dkim',
    ...RIGHT,
    sentence: /carries the right key/,
  },
  {
    what: 'an alias of something else for links',
    spoil: () => dns.set(LINKS, 'CNAME', ['other.example']),
    purpose: 'tracking',
    ...ADVICE,
    sentence: /alias of other\.example\. Point it to track\.service\.example/,
  },
  {
    what: 'a chain of aliases for links',
    spoil: replace(LINKS, () => {
      dns.set(LINKS, 'CNAME', ['hop.example'])
      dns.set('hop.example', 'CNAME', ['track.service.example'])
    }),
    purpose: 'tracking',
    ...RIGHT,
    sentence: /is an alias of track\.service\.example/,
  },
  {
    what: 'no name for links',
    spoil: () => dns.remove(LINKS),
    purpose: 'tracking',
    ...ADVICE,
    sentence: /email\.state\.example does not exist/,
  },
  {
    what: 'mail goes elsewhere',
    spoil: () => dns.set(NAME, 'MX', [[5, 'mx.other.example']]),
    purpose: 'mx',
    ...ADVICE,
    sentence: /goes to 5 mx\.other\.example\. To receive it here, add/,
  },
  {
    what: 'null MX',
    spoil: () => dns.set(NAME, 'MX', [[0, '.']]),
    purpose: 'mx',
    ...ADVICE,
    sentence: /takes no mail\. Replace it by: 10 mxa\.service\.example/,
  },
  {
    what: 'return path without SPF',
    spoil: () => dns.set(RETURN_PATH, 'TXT', []),
    purpose: 'return-path-spf',
    ...ADVICE,
    sentence: /bounce\.state\.example has no SPF record/,
  },
  {
    what: 'return path without MX',
    spoil: () => dns.set(RETURN_PATH, 'MX', []),
    purpose: 'return-path-mx',
    ...ADVICE,
    sentence: /bounce\.state\.example has no MX record/,
  },
  ...(
    [
      ['servfail', /SERVFAIL.*This says nothing about the record/],
      ['refused', /REFUSED.*This says nothing/],
      ['drop', /did not answer in time.*This says nothing/],
      ['truncate-always', /gave no answer.*This says nothing/],
      ['close-tcp', /gave no answer.*This says nothing/],
    ] as const
  ).flatMap(([how, sentence]): Case[] => [
    { what: `SPF: ${how}`, spoil: () => dns.misbehave(NAME, how), purpose: 'spf', ...SAYS_NOTHING, sentence },
    {
      what: `DKIM: ${how}`,
      spoil: () => dns.misbehave(KEY, how),
      purpose: 'dkim',
      ...SAYS_NOTHING,
      sentence,
    },
  ]),
]

test('all records correct: active, every record valid, every sentence says so', async () => {
  publishAll()
  const { state, records, body } = await verify()
  assert.equal(state, 'active')
  assert.deepEqual(
    records.map((one) => [one.record.purpose, one.valid]),
    [
      ['dkim', 'valid'],
      ['spf', 'valid'],
      ['tracking', 'valid'],
      ['mx', 'valid'],
      ['return-path-spf', 'valid'],
      ['return-path-mx', 'valid'],
    ],
  )
  for (const { sentence } of records) assert.match(sentence, /was asked for|is an alias of|is among/)
  for (const record of [...body.sending_dns_records, ...body.receiving_dns_records])
    assert.equal(record.valid, 'valid', record.name)
})

for (const { what, spoil, purpose, states, valid, sentence } of CASES) {
  for (const [at, from] of (['active', 'unverified'] as const).entries()) {
    test(`${what}: from ${from}`, async () => {
      if (from === 'active') publishAll()
      else publishNothing()
      assert.equal((await verify()).state, from)
      publishAll()
      spoil()
      const { state, records } = await verify()
      const one = records.find(({ record }) => record.purpose === purpose)
      assert.match(one?.sentence ?? '', sentence)
      assert.deepEqual([state, one?.valid], [states[at], valid[at] ? 'valid' : 'unknown'])
    })
  }
}
