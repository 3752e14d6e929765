import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createDnsServer } from '../../../test/support/dns-server.ts'
import { eventually, startTestService } from '../../../test/support/service.ts'
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
    [[LOGO], 'v=DMARC1; p=quarantine; pct=50', false, /remove pct/],
    [[LOGO], '', false, /quarantine or reject/],
    [[LOGO], REJECT, true, /only with a mark certificate/],
    [[`${LOGO}; a=https://a.example/vmc.pem`], REJECT, true, /complete\.$/],
  ]
  for (const [records, dmarc, passed, says] of cases) {
    const found = judgeBimi('a.example', records, dmarc)
    assert.equal(found.passed, passed, `${records} ${dmarc}`)
    assert.match(found.sentence, says)
  }
})

test('rules: records, rate of complaints, one click, volume', () => {
  const facts: SenderFacts = {
    ...{
      domain: 'a.example',
      spf: true,
      dkim: true,
      dmarc: { valid: true, record: REJECT, sentence: 'Fine.' },
    },
    ...{ delivered: 10_000, complaints: 5, busiestDay: 5_001, oneClickOn: 'bulk mail', bimi: [] },
  }
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
    bimi: null,
  }
  assert.deepEqual(passed({}), all)
  assert.equal(judgeSender(facts).is_bulk_sender, true)
  assert.equal(judgeSender({ ...facts, busiestDay: 5_000 }).is_bulk_sender, false)
  assert.deepEqual(passed({ spf: false, dkim: null, oneClickOn: 'none' }), {
    ...{ ...all, spf: false, dkim: null, 'one-click-unsubscribe': false },
  })
  assert.equal(passed({ complaints: 29 })['spam-rate'], true)
  assert.equal(passed({ complaints: 30 })['spam-rate'], false)
  assert.equal(passed({ delivered: 999, complaints: 999 })['spam-rate'], null)
  const [, , , rate] = judgeSender({ ...facts, complaints: 30 }).rules
  assert.deepEqual([rate?.figure, rate?.limit], ['0.0030', '0.0030'])
})

test('the rules of a domain over HTTP', async (t) => {
  const dns = await createDnsServer()
  t.after(() => dns.close())
  const service = await startTestService(t, { SENDWRIGHT_DNS: `${dns.host}:${dns.port}` })
  const name = 'shop.example'
  dns.set(name, 'TXT', [`v=spf1 include:${service.config.dnsTargets.spfIncludeHost} ~all`])
  dns.set(`_dmarc.${name}`, 'TXT', [REJECT])
  dns.set(`default._bimi.${name}`, 'TXT', [LOGO])
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
      ['bimi', true],
    ],
  )
  const to = ['ann@gmail.com', 'bob@yahoo.com', 'eve@example.org']
  await service.call('POST', `/v3/${name}/messages`, {
    form: { from: `a@${name}`, to, subject: 'Hi', text: 'Hi' },
  })
  await eventually('the figures', async () => {
    const { body: read } = await service.call('GET', `/sendwright/v1/domains/${name}/sender-rules`)
    return read.busiest_day === 2
  })
})
