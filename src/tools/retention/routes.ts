import { BadRequest } from '../../base/process/errors.ts'
import { media, type Of } from '../../base/shape.ts'
import type { Core } from '../../core.ts'
import { type Actor, auditStatement } from '../../people/accounts/audit-log.ts'
import type { Config } from '../../platform/config/config.ts'
import { textReply } from '../../platform/http/answer/reply.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import { given, wordParam } from '../../platform/http/request/inputs.ts'
import type { Caller } from '../../platform/http/rights/auth.ts'
import { KEPT_KINDS, type KeptKind, keptBounds } from '../../platform/store/kept-days.ts'
import type { Statement } from '../../platform/store/store.ts'
import type { Domain } from '../../sending/domains/domain.ts'
import { ownDomain } from '../../sending/domains/names/directory.ts'
import { type Effective, effectiveDays, setDaysOf } from './effective.ts'
import { policyText } from './policy-text.ts'
import { RETENTIONS, type RetentionView } from './shapes.ts'

type RetentionRouteParts = Pick<Core, 'config' | 'store' | 'domains' | 'clock'>

const OF_ACCOUNT = '/sendwright/v1/retention'
const OF_DOMAIN = '/sendwright/v1/domains/{name}/retention'
/** Administrators decide for domains too what is promised to recipients. */
const api = operationsOf({ tag: 'Retention', auth: { area: 'account' } })
const READ_DOMAIN = { area: 'domains', access: 'read' } as const
const POLICY = { 200: media('text/plain', 'A passage for a privacy policy, in English') } as const

/** In place of days: what the account, or the service, says. */
const PRESET = 'default'
type Change = number | typeof PRESET

export function retentionRoutes(parts: RetentionRouteParts): Operation[] {
  const { config, store, domains, clock } = parts
  const params = changeParams(config)

  async function effectiveOf(caller: Caller, domain: Domain | null): Promise<Effective[]> {
    const rows = await store.db
      .selectFrom('retention_settings')
      .select(['domain_id', 'kind', 'days'])
      .where('account_id', '=', caller.accountId)
      .where('domain_id', 'in', ['', ...(domain ? [domain.id] : [])])
      .execute()
    const setBy = (id: string) => setDaysOf(rows.filter(({ domain_id }) => domain_id === id))
    return effectiveDays(config, {
      account: setBy(''),
      domain: domain && { set: setBy(domain.id), messageTtlSeconds: domain.messageTtlSeconds },
    })
  }

  const viewOf = async (caller: Caller, domain: Domain | null): Promise<Of<typeof RETENTIONS>> => ({
    items: (await effectiveOf(caller, domain)).map(itemOf),
  })

  const change = (
    actor: Actor & { caller: Caller },
    domain: Domain | null,
    days: Partial<Record<KeptKind, Change>>,
  ) => store.commit(changeStatements(actor, domain, days, clock.now()))

  return [
    api.get(OF_ACCOUNT, {
      id: 'readRetention',
      summary: 'What is kept, and for how long',
      answers: { 200: RETENTIONS },
      handler: ({ caller }) => viewOf(caller, null),
    }),
    api.put(OF_ACCOUNT, {
      id: 'setRetention',
      summary: 'Set for how long an account keeps data; absent kinds stay unchanged',
      params,
      audit: { by: 'operation' },
      answers: { 200: RETENTIONS },
      async handler({ input, caller, remoteAddress, requestId }) {
        await change({ caller, remoteAddress, requestId }, null, given(input()))
        return viewOf(caller, null)
      },
    }),
    api.get(`${OF_ACCOUNT}/policy`, {
      id: 'readRetentionPolicy',
      summary: 'The same as a passage for a privacy policy',
      answers: POLICY,
      handler: async ({ caller }) => textReply(policyText(await effectiveOf(caller, null), null)),
    }),
    api.get(OF_DOMAIN, {
      id: 'readDomainRetention',
      summary: 'What is kept of a domain, and for how long',
      auth: READ_DOMAIN,
      answers: { 200: RETENTIONS },
      handler: async ({ path, caller }) => viewOf(caller, await ownDomain(domains, caller, path.name)),
    }),
    api.put(OF_DOMAIN, {
      id: 'setDomainRetention',
      summary: 'Set for how long data of a domain is kept; absent kinds stay unchanged',
      params,
      audit: { by: 'operation' },
      answers: { 200: RETENTIONS },
      async handler({ input, path, caller, remoteAddress, requestId }) {
        const days = given(input())
        const domain = await ownDomain(domains, caller, path.name)
        await change({ caller, remoteAddress, requestId }, domain, days)
        return viewOf(caller, domain)
      },
    }),
    api.get(`${OF_DOMAIN}/policy`, {
      id: 'readDomainRetentionPolicy',
      summary: 'The same of a domain as a passage for a privacy policy',
      auth: READ_DOMAIN,
      answers: POLICY,
      async handler({ path, caller }) {
        const domain = await ownDomain(domains, caller, path.name)
        return textReply(policyText(await effectiveOf(caller, domain), domain.name))
      },
    }),
  ]
}

const WHAT = {
  messages: 'Days that messages are kept after their last recipient is finished; 0: not at all',
  events: 'Days that events are kept',
  dialogues: 'Days that dialogues of attempts are kept',
} as const satisfies Record<KeptKind, string>

function changeParams(config: Config) {
  const bounds = keptBounds(config)
  const param = (kind: KeptKind) =>
    wordParam(
      `${WHAT[kind]}; \`${PRESET}\`: as the account, or the service, says`,
      (text, name): Change => (text === PRESET ? PRESET : daysOf(text, name, bounds[kind])),
    )
  return { messages: param('messages'), events: param('events'), dialogues: param('dialogues') }
}

/** @throws BadRequest with the bounds, which are the operator's */
function daysOf(text: string, name: string, { min, max }: { min: number; max: number }): number {
  const days = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN
  if (days >= min && days <= max) return days
  throw new BadRequest(`Invalid format for parameter ${name}: from ${min} to ${max} days, or ${PRESET}`)
}

function itemOf({
  kind,
  title,
  personal,
  tables,
  keptDays,
  since,
  source,
  setting,
  range,
}: Effective): RetentionView {
  return {
    ...{ kind, title, personal, tables: [...tables], days: keptDays, since, source, setting },
    own_days: range?.own ?? null,
    min_days: range?.min ?? null,
    max_days: range?.max ?? null,
  }
}

function changeStatements(
  actor: Actor & { caller: Caller },
  domain: Domain | null,
  days: Partial<Record<KeptKind, Change>>,
  now: number,
): Statement[] {
  const place = [actor.caller.accountId, domain?.id ?? '']
  const changed = KEPT_KINDS.filter((kind) => days[kind] !== undefined)
  return [
    ...changed.map((kind): Statement => {
      const value = days[kind]
      if (typeof value !== 'number')
        return {
          sql: 'DELETE FROM retention_settings WHERE account_id = ? AND domain_id = ? AND kind = ?',
          values: [...place, kind],
        }
      return {
        sql: `INSERT INTO retention_settings (account_id, domain_id, kind, days) VALUES (?, ?, ?, ?)
          ON CONFLICT (account_id, domain_id, kind) DO UPDATE SET days = excluded.days`,
        values: [...place, kind, value],
      }
    }),
    auditStatement(actor, { action: 'retention.set', subject: domain?.name ?? '', detail: days }, now),
  ]
}
