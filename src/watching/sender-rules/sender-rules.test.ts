import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { createDnsServer } from '../../../test/support/dns-server.ts'
import { eventually, startTestService } from '../../../test/support/service.ts'
import { readDmarc } from '../../protocols/dns/dmarc.ts'
import { judgeBimi, judgeSender, type SenderFacts } from './rules.ts'

const LOGO = 'v=BIMI1; l=https://a.example/logo.svg'
const REJECT = 'v=DMARC1; p=reject'

test('BIMI: record, logo, certificate and DMARC policy', () => {
  const cases: [records: string[], dmarc: string, passed: boolean | null, says: RegExp][] = [
    [[], REJECT, null, /no BIMI record at default\._bimi\.a\.example/],
    [['v=spf1 -all'], REJECT, null, /no BIMI record/],
    [[LOGO, LOGO], REJECT, false, /several/],
    [['v=BIMI1; l='], REJECT, false, /names no logo/],
    [['v=BIMI1; l=http://a.example/logo.svg'], REJECT, false, /names no logo/],
    [[`${LOGO}; a=file`], REJECT, false, /mark certificate/],
    [[LOGO], 'v=DMARC1; p=none', false, /quarantine or reject/],
    [[LOGO], 'v=DMARC1; p=quarantine; pct=50', false, /remove t= and pct=/],
    [[LOGO], '', false, /quarantine or reject/],
    [[LOGO], 'v=DMARC1; p=reject; sp=none', false, /sp=/],
    [[LOGO], 'v=DMARC1; p=reject; t=y', false, /remove t=/],
    [[LOGO], REJECT, true, /only with a mark certificate/],
    [[`${LOGO}; a=https://a.example/vmc.pem`], REJECT, true, /complete\.$/],
  ]
  for (const [records, dmarc, passed, says] of cases) {
    const policy = readDmarc(dmarc)?.policy ?? null
    const found = judgeBimi('a.example', records, { record: dmarc, policy })
    assert.equal(found.passed, passed, `${records} ${dmarc}`)
    assert.match(found.sentence, says)
  }
})

const facts: SenderFacts = {
  ...{
    domain: 'a.example',
    spf: true,
    dkim: true,
    dmarc: { valid: true, record: REJECT, policy: 'reject', sentence: 'Fine.' },
  },
  ...{ delivered: 10_000, complaints: 5, processed: 10_000, hardBounces: 499 },
  ...{ busiestDays: { gmail: 5_001, yahoo: 0, microsoft: 0 }, receives: true },
  ...{ oneClickOn: 'bulk mail', bimi: [] },
}

test('rules: records, rate of complaints, one click, volume', () => {
  const passed = (change: Partial<SenderFacts>) => {
    const { rules } = judgeSender({ ...facts, ...change })
    return Object.fromEntries(rules.map((finding) => [finding.rule, finding.passed]))
  }
  const all = {
    spf: true,
    dkim: true,
    dmarc: true,
    'spam-rate': true,
    'one-click-unsubscribe': true,
    'reply-address': true,
    'list-hygiene': true,
    bimi: null,
  }
  assert.deepEqual(passed({}), all)
  assert.equal(passed({ hardBounces: 500 })['list-hygiene'], false)
  assert.equal(passed({ processed: 999, hardBounces: 999 })['list-hygiene'], null)
  assert.equal(passed({ receives: false })['reply-address'], false)
  assert.equal(passed({ receives: null })['reply-address'], null)
  assert.deepEqual(passed({ spf: false, dkim: null, oneClickOn: 'none' }), {
    ...{ ...all, spf: false, dkim: null, 'one-click-unsubscribe': false },
  })
  assert.equal(passed({ complaints: 29 })['spam-rate'], true)
  assert.equal(passed({ complaints: 30 })['spam-rate'], false)
  assert.equal(passed({ delivered: 999, complaints: 999 })['spam-rate'], null)
  const [, , , rate] = judgeSender({ ...facts, complaints: 30 }).rules
  assert.deepEqual([rate?.figure, rate?.limit], ['0.0030', '0.0030'])
})

test('each provider judges its own mail, and has rules of its own', () => {
  const judged = (gmail: number, yahoo: number, microsoft: number) =>
    judgeSender({ ...facts, busiestDays: { gmail, yahoo, microsoft } })
  const bulk = ({ providers }: ReturnType<typeof judged>) =>
    providers.filter((one) => one.is_bulk_sender).map(({ provider }) => provider)
  const cases: [days: [number, number, number], bulk: string[], busiest: number][] = [
    [[5_000, 5_000, 5_000], [], 5_000],
    [[5_001, 0, 0], ['gmail'], 5_001],
    [[0, 5_001, 7_000], ['yahoo', 'microsoft'], 7_000],
    [[3_000, 3_000, 3_000], [], 3_000],
  ]
  for (const [days, expected, busiest] of cases) {
    const found = judged(...days)
    assert.deepEqual(bulk(found), expected, String(days))
    assert.equal(found.is_bulk_sender, expected.length > 0)
    assert.equal(found.busiest_day, busiest)
  }
  const rulesOf = (provider: string) =>
    judgeSender(facts)
      .rules.filter(({ required_by }) => (required_by as string[]).includes(provider))
      .map(({ rule }) => rule)
  const all = ['spf', 'dkim', 'dmarc', 'spam-rate', 'one-click-unsubscribe']
  assert.deepEqual(rulesOf('gmail'), all)
  assert.deepEqual(rulesOf('yahoo'), all)
  assert.deepEqual(rulesOf('microsoft'), [
    ...['spf', 'dkim', 'dmarc', 'one-click-unsubscribe', 'reply-address', 'list-hygiene'],
  ])
})

test('the rules of a domain over HTTP', async (t) => {
  const dns = await createDnsServer()
  t.after(() => dns.close())
  const service = await startTestService(t, { SENDWRIGHT_DNS: `${dns.host}:${dns.port}` })
  const name = 'shop.example'
  dns.set(name, 'TXT', [`v=spf1 include:${service.config.dnsTargets.spfIncludeHost} ~all`])
  dns.set(`_dmarc.${name}`, 'TXT', [REJECT])
  dns.set(`default._bimi.${name}`, 'TXT', [LOGO])
  dns.set(name, 'MX', [[0, '.']])
  await service.call('POST', '/v4/domains', { form: { name } })
  await service.call('PUT', `/v4/domains/${name}/verify`)
  await service.call('PUT', `/v3/domains/${name}/tracking/unsubscribe`, { form: { active: 'yes' } })
  const { status, body } = await service.call('GET', `/sendwright/v1/domains/${name}/sender-rules`)
  assert.equal(status, 200)
  assert.deepEqual(
    body.rules.map(({ rule, passed }: { rule: string; passed: boolean | null }) => [rule, passed]),
    [
      ['spf', true],
      ['dkim', false],
      ['dmarc', true],
      ['spam-rate', null],
      ['one-click-unsubscribe', true],
      ['reply-address', false],
      ['list-hygiene', null],
      ['bimi', true],
    ],
  )
  const to = ['ann@gmail.com', 'bob@yahoo.com', 'joe@hotmail.fr', 'liz@live.com', 'eve@example.org']
  await service.call('POST', `/v3/${name}/messages`, {
    form: { from: `a@${name}`, to, subject: 'Hi', text: 'Hi' },
  })
  await eventually('the figures', async () => {
    const { body: read } = await service.call('GET', `/sendwright/v1/domains/${name}/sender-rules`)
    const days = read.providers.map((one: { provider: string; busiest_day: number }) => [
      one.provider,
      one.busiest_day,
    ])
    const expected = [
      ['gmail', 1],
      ['yahoo', 1],
      ['microsoft', 2],
    ]
    return read.busiest_day === 2 && isDeepStrictEqual(days, expected)
  })
})
