import assert from 'node:assert/strict'
import { pino } from 'pino'
import { createDnsServer } from '../../../test/support/dns-server.ts'
import { eachStore } from '../../../test/support/stores.ts'
import { systemClock } from '../../base/time/clock.ts'
import { postStatements } from '../../platform/posts/post-rows.ts'
import { insert } from '../../platform/store/store.ts'
import { createResolver } from '../../protocols/dns/resolver.ts'
import { createReportProgress, removeOldReports } from '../../receiving/report-sending/daily-reports.ts'
import { type ReportParts, sendReports } from './reports.ts'

const DAY = '2026-05-30'
const NOW = Date.parse('2026-06-01T12:00:00Z')
const DOMAINS = 20

eachStore('two processes at once hand each report over once', async (store, t) => {
  const dns = await createDnsServer()
  const resolver = createResolver({ servers: [dns], clock: systemClock })
  t.after(async () => {
    resolver.close()
    await dns.close()
  })
  const clock = { ...systemClock, now: () => NOW }
  const mails: string[] = []
  const parts: ReportParts = {
    ...{
      store,
      resolver,
      clock,
      log: pino({ level: 'silent' }),
      firstAccountId: 'first',
      hostname: 'mail.example',
      progress: createReportProgress(),
    },
    async sendMime({ to, write }, statements) {
      await store.commit(statements)
      mails.push(`${to} ${write('no-reply@mail.example', to).length > 500}`)
    },
    posts: { statements: (posts) => postStatements(posts, NOW) },
  }
  for (let n = 0; n < DOMAINS; n++) {
    const domain = `d${n}.example`
    const asked = `v=TLSRPTv1; rua=mailto:tls@${domain},https://${domain}/reports,mailto:no address`
    dns.set(`_smtp._tls.${domain}`, 'TXT', [asked])
    await store.commit([
      insert('tls_results', {
        ...{
          day: DAY,
          recipient_domain: domain,
          policy_domain: domain,
          policy_type: 'sts',
          mx_host: `mx.${domain}`,
        },
        ...{ result_type: 'success', sending_ip: '', sessions: 5 },
      }),
    ])
  }
  const { signal } = new AbortController()
  const other = { ...parts, progress: createReportProgress() }
  await Promise.all([sendReports(parts, signal), sendReports(other, signal)])
  await sendReports(parts, signal)
  const expected = Array.from({ length: DOMAINS }, (_, n) => `tls@d${n}.example true`)
  assert.deepEqual(mails.sort(), expected.sort())
  const posts = await store.db.selectFrom('outgoing_posts').select('url').execute()
  assert.deepEqual(
    posts.map(({ url }) => url).sort(),
    Array.from({ length: DOMAINS }, (_, n) => `https://d${n}.example/reports`).sort(),
  )
  await removeOldReports(store, 'tls_reports', NOW + 100 * 86_400_000)
  assert.equal((await store.db.selectFrom('tls_reports').select('id').execute()).length, 0)
})

eachStore('a domain whose record cannot be looked up is asked again an hour later', async (store, t) => {
  const dns = await createDnsServer()
  const resolver = createResolver({ servers: [dns], clock: systemClock, timeoutMs: 10_000 })
  t.after(async () => {
    resolver.close()
    await dns.close()
  })
  dns.misbehave('_smtp._tls.a.example', 'servfail')
  let now = NOW
  const parts: ReportParts = {
    ...{ store, resolver, clock: { ...systemClock, now: () => now }, log: pino({ level: 'silent' }) },
    ...{ progress: createReportProgress(), firstAccountId: 'first', hostname: 'mail.example' },
    sendMime: async () => assert.fail('nobody asks'),
    posts: { statements: () => [] },
  }
  await store.commit([
    insert('tls_results', {
      ...{
        day: DAY,
        recipient_domain: 'a.example',
        policy_domain: 'a.example',
        policy_type: 'sts',
        mx_host: 'mx',
      },
      ...{ result_type: 'success', sending_ip: '', sessions: 1 },
    }),
  ])
  await sendReports(parts, new AbortController().signal)
  const rows = () => store.db.selectFrom('tls_reports').select('uri').execute()
  assert.deepEqual(await rows(), [])
  dns.misbehave('_smtp._tls.a.example', null)
  dns.set('_smtp._tls.a.example', 'TXT', ['v=TLSRPTv1; rua=ftp://nobody'])
  // The failure is remembered for some seconds.
  const later = createResolver({ servers: [dns], clock: systemClock })
  t.after(() => later.close())
  now += 3_599_000
  await sendReports({ ...parts, resolver: later }, new AbortController().signal)
  assert.deepEqual(await rows(), [], 'not yet')
  now += 1_000
  await sendReports({ ...parts, resolver: later }, new AbortController().signal)
  assert.deepEqual(await rows(), [{ uri: '' }])
})

eachStore('domains that cannot be reported do not hold up those after them', async (store, t) => {
  const dns = await createDnsServer()
  const resolver = createResolver({ servers: [dns], clock: systemClock })
  t.after(async () => {
    resolver.close()
    await dns.close()
  })
  let asked = 0
  // More than a page that is read, in order before the others.
  const silent = Array.from({ length: 1_050 }, (_, n) => `a${n}.example`)
  const mails: string[] = []
  const parts: ReportParts = {
    ...{ store, clock: { ...systemClock, now: () => NOW }, log: pino({ level: 'silent' }) },
    ...{ progress: createReportProgress(), firstAccountId: 'first', hostname: 'mail.example' },
    resolver: {
      async query(name, type) {
        asked++
        const answer = await resolver.query(name, type)
        return name.startsWith('_smtp._tls.a') ? { ...answer, kind: 'servfail', records: [] } : answer
      },
    },
    async sendMime({ to }, statements) {
      if (to === 'tls@broken.example') throw new Error('no mail to this one')
      await store.commit(statements)
      mails.push(to)
    },
    posts: { statements: () => [] },
  }
  for (const domain of ['broken.example', 'honest.example'])
    dns.set(`_smtp._tls.${domain}`, 'TXT', [`v=TLSRPTv1; rua=mailto:tls@${domain}`])
  await store.commit(
    [...silent, 'broken.example', 'honest.example'].map((domain) =>
      insert('tls_results', {
        ...{ day: DAY, recipient_domain: domain, policy_domain: domain, policy_type: 'sts', mx_host: 'mx' },
        ...{ result_type: 'success', sending_ip: '', sessions: 1 },
      }),
    ),
  )
  const { signal } = new AbortController()
  const pass = async () => {
    for (let steps = 1; ; steps++) {
      assert.ok(steps <= 20, 'a pass ends')
      if (!(await sendReports(parts, signal))) return
    }
  }
  await pass()
  assert.deepEqual(mails, ['tls@honest.example'])
  assert.equal(asked, silent.length + 2, 'each is asked once')
  await pass()
  assert.deepEqual([mails.length, asked], [1, silent.length + 2], 'within the hour none is asked again')
})
