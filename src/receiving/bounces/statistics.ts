/**
 * Queries of the grouped statistics over `classified_failures` (bounce-classification.md section 1): the final failures of
 * the last seven days. Each is one pass over the account's rows of that time, below a microsecond a row.
 */
import { sql } from 'kysely'
import { DAY_MS } from '../../base/time/durations.ts'
import type { Db, Statement, Store } from '../../platform/store/store.ts'
import type { Category } from './rules.ts'

/** The failures of an account alone, or those of its subaccounts too. */
export interface Scope {
  accountId: string
  includeSubaccounts: boolean
}

export const GROUPS = ['subaccount.id', 'domain.name', 'entity-id', 'rule-id'] as const
export type Group = (typeof GROUPS)[number]

const COLUMNS = {
  'subaccount.id': 'account_id',
  'domain.name': 'domain_name',
  'entity-id': 'entity',
  'rule-id': 'rule_id',
} as const

type Column = (typeof COLUMNS)[Group] | 'category'

interface GroupCount {
  /** Values of the requested groups. */
  values: Partial<Record<Group, string>>
  total: number
}

interface RuleCount {
  ruleId: string
  category: Category
  total: number
}

/** Rule 2. */
const WINDOW_MS = 7 * DAY_MS

/** The ids of the accounts of a scope, as a subquery. */
export function accountsOf(db: Db, { accountId, includeSubaccounts }: Scope) {
  const accounts = db.selectFrom('accounts').select('accounts.id')
  return includeSubaccounts
    ? accounts.where((of) =>
        of.or([of('accounts.id', '=', accountId), of('accounts.parent_id', '=', accountId)]),
      )
    : accounts.where('accounts.id', '=', accountId)
}

/** The same as text. */
export const accountsSql = ({ accountId, includeSubaccounts }: Scope): Statement => ({
  sql: `SELECT id FROM accounts WHERE id = ? ${includeSubaccounts ? 'OR parent_id = ?' : ''}`,
  values: includeSubaccounts ? [accountId, accountId] : [accountId],
})

export type Statistics = ReturnType<typeof createStatistics>

export function createStatistics({ db }: Store) {
  const finalFailures = (scope: Scope, now: number) =>
    db
      .selectFrom('classified_failures')
      .where('account_id', 'in', accountsOf(db, scope))
      .where('severity', '=', 'PERMANENT')
      .where('failed_at', '>', Math.floor(now) - WINDOW_MS)
      .where('failed_at', '<=', Math.floor(now))

  /** Their number by these columns: most first, then by the columns. */
  function counted<C extends Column>(failures: ReturnType<typeof finalFailures>, columns: readonly C[]) {
    let query = failures
      .select(columns)
      .select((of) => of.fn.countAll<number>().as('total'))
      .groupBy(columns)
      .orderBy('total', 'desc')
    for (const column of columns) query = query.orderBy(column)
    return query
  }

  return {
    /** Most first, then by the values in the order asked. `now`: Unix milliseconds, as everywhere here. */
    async grouped(scope: Scope, groups: readonly Group[], limit: number, now: number): Promise<GroupCount[]> {
      const columns = groups.map((group) => COLUMNS[group])
      const rows = await counted(finalFailures(scope, now), columns).limit(limit).execute()
      return rows.map((row) => ({
        values: Object.fromEntries(
          groups.map((group) => [group, (row as Record<string, unknown>)[COLUMNS[group]] as string]),
        ),
        total: Number(row.total),
      }))
    },

    /** Domains with their failures, and how many such domains there are. */
    async perDomain(
      scope: Scope,
      { domain, limit, skip }: { domain: string | null; limit: number; skip: number },
      now: number,
    ): Promise<{ items: { name: string; total: number }[]; total: number }> {
      let failures = finalFailures(scope, now)
      if (domain !== null) failures = failures.where('domain_name', '=', domain)
      const rows = await counted(failures, ['domain_name']).limit(limit).offset(skip).execute()
      const { count } = await failures
        .select(sql<number>`count(DISTINCT domain_name)`.as('count'))
        .executeTakeFirstOrThrow()
      const items = rows.map(({ domain_name: name, total }) => ({ name, total: Number(total) }))
      return { items, total: Number(count) }
    },

    async perEntity(scope: Scope, domain: string, now: number): Promise<{ entity: string; total: number }[]> {
      const failures = finalFailures(scope, now).where('domain_name', '=', domain)
      const rows = await counted(failures, ['entity']).execute()
      return rows.map(({ entity, total }) => ({ entity, total: Number(total) }))
    },

    async perRule(scope: Scope, domain: string, entity: string, now: number): Promise<RuleCount[]> {
      const failures = finalFailures(scope, now)
        .where('domain_name', '=', domain)
        .where('entity', '=', entity)
      const rows = await counted(failures, ['rule_id', 'category']).execute()
      return rows.map((row) => ({
        ruleId: row.rule_id,
        category: row.category as Category,
        total: Number(row.total),
      }))
    },

    /** The newest reply of each rule that the scope's failures matched, as long as events are kept. */
    async newestSamples(scope: Scope, domain: string | null = null): Promise<Map<string, string>> {
      let newest = db
        .selectFrom('classified_failures')
        .where('account_id', 'in', accountsOf(db, scope))
        .select((of) => of.fn.max('id').as('id'))
        .groupBy('rule_id')
      if (domain !== null) newest = newest.where('domain_name', '=', domain)
      const rows = await db
        .selectFrom('classified_failures')
        .where('id', 'in', newest)
        .select(['rule_id', 'sample'])
        .execute()
      return new Map(rows.map(({ rule_id, sample }) => [rule_id, sample]))
    },
  }
}
