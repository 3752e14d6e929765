/** When bounces of a domain suppress, and for how long (own-operations.md section 6). */

import { descriptionOf, type Of } from '../../base/shape.ts'
import { DAY_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import { type Actor, auditStatement } from '../../people/accounts/audit-log.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import { given, integerParam } from '../../platform/http/request/inputs.ts'
import type { Statement, Store } from '../../platform/store/store.ts'
import type { Domain } from '../domains/domain.ts'
import { ownDomain } from '../domains/names/directory.ts'
import { SUPPRESSION_POLICY } from './shapes.ts'

type SuppressionPolicy = Of<typeof SUPPRESSION_POLICY>

/** Without a policy: the first hard bounce suppresses permanently, soft ones never. */
const DEFAULT_POLICY: SuppressionPolicy = {
  hard_bounces_to_suppress: 1,
  soft_bounces_to_suppress: 0,
  window_days: 30,
  lifetime_days: 0,
}

/** Higher thresholds are not useful; each counted bounce is a row. */
const BOUNCES_MAX = 100
export const WINDOW_DAYS_MAX = 365
const LIFETIME_DAYS_MAX = 3650

const numberParam = (name: keyof SuppressionPolicy, min: number, max: number) =>
  integerParam(`${descriptionOf(SUPPRESSION_POLICY.fields[name])}; absent: unchanged`, { min, max })
const PARAMS = {
  hard_bounces_to_suppress: numberParam('hard_bounces_to_suppress', 0, BOUNCES_MAX),
  soft_bounces_to_suppress: numberParam('soft_bounces_to_suppress', 0, BOUNCES_MAX),
  window_days: numberParam('window_days', 1, WINDOW_DAYS_MAX),
  lifetime_days: numberParam('lifetime_days', 0, LIFETIME_DAYS_MAX),
}
const NAMES = Object.keys(DEFAULT_POLICY) as (keyof SuppressionPolicy)[]

const PATH = '/sendwright/v1/domains/{name}/suppression-policy'
const api = operationsOf({ tag: 'Suppressions', auth: { area: 'domains' }, rateLimit: 'domains' })

type PolicyRouteParts = Pick<Core, 'store' | 'domains' | 'clock'>

export function policyRoutes({ store, domains, clock }: PolicyRouteParts): Operation[] {
  return [
    api.get(PATH, {
      id: 'readSuppressionPolicy',
      summary: 'When bounces of a domain suppress',
      answers: { 200: SUPPRESSION_POLICY },
      handler: async ({ path, caller }) => readPolicy(store, await ownDomain(domains, caller, path.name)),
    }),
    api.put(PATH, {
      id: 'setSuppressionPolicy',
      summary: 'Set when bounces of a domain suppress; absent fields stay unchanged',
      params: PARAMS,
      audit: { by: 'operation' },
      answers: { 200: SUPPRESSION_POLICY },
      async handler({ input, path, caller, remoteAddress, requestId }) {
        const domain = await ownDomain(domains, caller, path.name)
        const policy = { ...(await readPolicy(store, domain)), ...given(input()) }
        await store.commit(
          policyStatements({ caller, remoteAddress, requestId }, domain, policy, clock.now()),
        )
        return policy
      },
    }),
  ]
}

async function readPolicy(store: Store, domain: Domain): Promise<SuppressionPolicy> {
  const row = await store.db
    .selectFrom('suppression_policies')
    .select(NAMES)
    .where('domain_id', '=', domain.id)
    .executeTakeFirst()
  return row ?? DEFAULT_POLICY
}

/** Stores the policy. The new lifetime also applies to records added automatically before. */
export function policyStatements(
  actor: Actor,
  domain: Domain,
  policy: SuppressionPolicy,
  now: number,
): Statement[] {
  const columns = ['domain_id', ...NAMES]
  const lifetime = policy.lifetime_days > 0 ? 'created_at + CAST(? AS BIGINT)' : 'NULL'
  return [
    {
      sql: `INSERT INTO suppression_policies (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})
        ON CONFLICT (domain_id) DO UPDATE SET ${NAMES.map((name) => `${name} = excluded.${name}`).join(', ')}`,
      values: [domain.id, ...NAMES.map((name) => policy[name])],
    },
    {
      sql: `UPDATE suppressions SET expires_at = ${lifetime}
        WHERE domain_id = ? AND kind = 'bounces' AND event_id IS NOT NULL`,
      values: policy.lifetime_days > 0 ? [policy.lifetime_days * DAY_MS, domain.id] : [domain.id],
    },
    auditStatement(actor, { action: 'suppression-policy.set', subject: domain.name, detail: policy }, now),
  ]
}
