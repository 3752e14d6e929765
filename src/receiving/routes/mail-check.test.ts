import assert from 'node:assert/strict'
import { test } from 'node:test'
import pino from 'pino'
import { systemClock } from '../../base/time/clock.ts'
import type { DnsAnswer } from '../../protocols/dns/resolver.ts'
import { type AuthorCheck, createMailCheck } from './mail-check.ts'

type Zone = Readonly<Record<string, readonly string[] | 'absent' | 'failed'>>

/** TXT records by name; other names exist without records. */
function resolverOf(zone: Zone) {
  const asked: string[] = []
  const query = async (name: string, type: string) => {
    asked.push(`${type} ${name}`)
    const found = zone[name]
    const kind =
      found === 'failed'
        ? 'servfail'
        : found === 'absent'
          ? 'nxdomain'
          : found && type === 'TXT'
            ? 'records'
            : 'nodata'
    const records = kind === 'records' ? found : []
    return { kind, records, chain: [], asked: { name, type }, ttlSeconds: 60 } as unknown as DnsAnswer
  }
  return { asked, query: query as never }
}

const SPF = ['v=spf1 ip4:192.0.2.1 -all']

async function check(from: string, returnPath: string, zone: Zone) {
  const resolver = resolverOf({ [returnPath]: SPF, ...zone })
  const field = { name: 'From', raw: `From: <a@${from}>` }
  const verdict = await createMailCheck({
    resolver,
    hostname: 'mx.example',
    clock: systemClock,
    log: pino({ enabled: false }),
  })({
    chunk: Buffer.from(`${field.raw}\r\nSubject: x\r\n\r\nx\r\n`),
    headers: [field as never],
    sender: `b@${returnPath}`,
    remoteAddress: '192.0.2.1',
    helo: 'mta.example',
    sealingKey: null,
  })
  const result = /\bdmarc=(\w+)/.exec(verdict.authenticationResults)?.[1] ?? ''
  return { result, author: verdict.author, asked: resolver.asked }
}

test('DMARC of received mail goes by RFC 9989: tree walk, np, t, psd', async () => {
  const strange = 'stranger.test'
  const cases: [
    what: string,
    from: string,
    returnPath: string,
    zone: Zone,
    result: string,
    author: Partial<AuthorCheck>,
  ][] = [
    [
      'siblings of one organization are aligned',
      ...(['a.corp.test', 'b.corp.test', { '_dmarc.corp.test': ['v=DMARC1; p=reject'] }] as const),
      ...(['pass', { isProven: true, policy: 'reject' }] as const),
    ],
    [
      'psd=n makes one of them its own',
      ...(['a.corp.test', 'b.corp.test'] as const),
      { '_dmarc.corp.test': ['v=DMARC1; p=reject'], '_dmarc.b.corp.test': ['v=DMARC1; p=none; psd=n'] },
      ...(['fail', { isProven: false, policy: 'reject' }] as const),
    ],
    [
      'below psd=y each is its own, and the policy of the suffix applies',
      ...([
        'a.bank.test',
        'b.bank.test',
        { '_dmarc.bank.test': ['v=DMARC1; p=none; sp=reject; psd=y'] },
      ] as const),
      ...(['fail', { isProven: false, policy: 'reject' }] as const),
    ],
    [
      'np for a name that does not exist',
      ...(['no.corp.test', strange] as const),
      { '_dmarc.corp.test': ['v=DMARC1; p=none; np=reject'], 'no.corp.test': 'absent' },
      ...(['fail', { policy: 'reject' }] as const),
    ],
    [
      'sp for one that does',
      ...([
        'yes.corp.test',
        strange,
        { '_dmarc.corp.test': ['v=DMARC1; p=none; sp=quarantine; np=reject'] },
      ] as const),
      ...(['fail', { policy: 'quarantine' }] as const),
    ],
    [
      'a policy under test',
      ...(['corp.test', strange, { '_dmarc.corp.test': ['v=DMARC1; p=reject; t=y'] }] as const),
      ...(['fail', { policy: 'quarantine' }] as const),
    ],
    [
      'pct is gone',
      ...(['corp.test', strange, { '_dmarc.corp.test': ['v=DMARC1; p=reject; pct=0'] }] as const),
      ...(['fail', { policy: 'reject' }] as const),
    ],
    [
      'without an answer nothing is said',
      ...(['a.corp.test', strange, { '_dmarc.corp.test': 'failed' }] as const),
      ...(['temperror', { isUnsure: true, policy: null }] as const),
    ],
  ]
  for (const [what, from, returnPath, zone, result, author] of cases) {
    const found = await check(from, returnPath, zone)
    assert.equal(found.result, result, what)
    assert.deepEqual({ ...found.author, ...author }, found.author, what)
  }
})

test('a From with many labels costs eight queries for DMARC', async () => {
  const from = `${'x.'.repeat(60)}corp.test`
  const { result, asked } = await check(from, 'stranger.test', { '_dmarc.corp.test': ['v=DMARC1; p=reject'] })
  assert.equal(result, 'fail')
  assert.equal(asked.filter((query) => query.startsWith('TXT _dmarc.')).length, 8)
})
