/** The delivery of TLS reports to a domain whose TLS fails: that is what they are about (RFC 8460 §3 and §5.3). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createInternet } from '../../../test/support/internet.ts'
import { prepareDataFolder } from '../../../test/support/migrated.ts'
import { eventually, startTestService } from '../../../test/support/service.ts'
import { temporaryFolder } from '../../../test/support/stores.ts'
import { openSqlite } from '../../platform/store/sqlite/sqlite.ts'
import { insert } from '../../platform/store/store.ts'

const DAY_MS = 86_400_000
const DAY = new Date(Date.now() - 2 * DAY_MS).toISOString().slice(0, 10)
const DOMAIN = 'failing.example'

test('a domain whose MTA-STS policy stops other mail gets its report, which is not counted', async (t) => {
  const internet = await createInternet(t)
  const sink = await internet.site([DOMAIN])
  internet.dns.set(`_mta-sts.${DOMAIN}`, 'TXT', ['v=STSv1; id=1'])
  internet.dns.set(`_smtp._tls.${DOMAIN}`, 'TXT', [`v=TLSRPTv1; rua=mailto:tls@${DOMAIN}`])
  const folder = await temporaryFolder(t)
  await prepareDataFolder(folder)
  const before = await openSqlite(folder)
  const policy = `version: STSv1\nmode: enforce\nmx: *.${DOMAIN}\nmax_age: 604800\n`
  await before.commit([
    insert('mta_sts_policies', {
      ...{ domain: DOMAIN, policy_id: '1', policy_text: policy, expires_at: Date.now() + DAY_MS },
    }),
    insert('tls_results', {
      ...{ day: DAY, recipient_domain: DOMAIN, policy_domain: DOMAIN, policy_type: 'sts' },
      ...{ mx_host: `mx.${DOMAIN}`, result_type: 'success', sending_ip: '', sessions: 1 },
    }),
  ])
  await before.close()
  const service = await startTestService(t, {
    ...internet.env,
    SENDWRIGHT_DATA: folder,
    SENDWRIGHT_TLS_REPORTS: 'on',
  })
  const [report] = await sink.waitFor(1)
  assert.deepEqual(report?.envelope.to, [`tls@${DOMAIN}`])
  await service.send({ to: `alice@${DOMAIN}` })
  await eventually(
    'the failure of other mail',
    async () => (await service.events('?event=failed')).length > 0,
  )
  await service.service.stop()
  assert.equal(sink.messages.length, 1)
  const after = await openSqlite(folder)
  const counts = await after.db
    .selectFrom('tls_results')
    .select(['result_type', 'sessions'])
    .where('day', '>', DAY)
    .execute()
  await after.close()
  assert.deepEqual(
    counts,
    [{ result_type: 'starttls-not-supported', sessions: 1 }],
    'of the other mail alone',
  )
})
