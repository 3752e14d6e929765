/** The rows of alerts. */
import { randomUUID } from 'node:crypto'
import { BadRequest, NotFound } from '../../base/process/errors.ts'
import { ifStale } from '../../platform/store/commits.ts'
import { countOf } from '../../platform/store/count.ts'
import type { AlertRow } from '../../platform/store/schema.ts'
import type { Statement, Store } from '../../platform/store/store.ts'
import { type Alert, type AlertDefinition, type AlertMetric, alertOfRow, familyOf } from './alert.ts'

/** Section 4. */
const ALERTS_PER_ACCOUNT_MAX = 100
/** Alerts of an account and of its subaccounts that one answer lists. */
const LIST_MAX = 1_000

export type AlertStore<M extends string = AlertMetric> = ReturnType<typeof createAlertStore<M>>

/** Names and tables of the two kinds of thresholds. */
const KINDS = {
  alerts: { what: 'alert', table: 'alerts' },
  // The same columns, so that the queries are typed by the first.
  limits: { what: 'limit', table: 'usage_limits' as 'alerts' },
} as const

export function createAlertStore<M extends string = AlertMetric>(
  store: Store,
  kind: keyof typeof KINDS = 'alerts',
) {
  const { db } = store
  const { what, table } = KINDS[kind]
  const notFound = () => new NotFound(`${what} not found`)
  const nameTaken = () => new BadRequest(`${what} with this name already exists`)
  const family = (accountId: string) =>
    db.selectFrom(table).where('account_id', 'in', familyOf(db, accountId))

  return {
    /** Alerts of the account, then of its subaccounts, oldest first; at most LIST_MAX. */
    async list(accountId: string): Promise<{ alerts: Alert<M>[]; total: number }> {
      const count = await countOf(family(accountId))
      const rows = await family(accountId)
        .selectAll()
        .orderBy((eb) => eb.case().when('account_id', '=', accountId).then(0).else(1).end())
        .orderBy('account_id')
        .orderBy('created_at')
        .orderBy('id')
        .limit(LIST_MAX)
        .execute()
      return { alerts: rows.map((row) => alertOfRow<M>(row)), total: count }
    },

    /** The account's own, else that of its subaccounts. @throws NotFound, BadRequest when several subaccounts have one */
    async find(accountId: string, name: string): Promise<Alert<M>> {
      // PostgreSQL takes no NUL in a parameter, and no alert has one in its name.
      if (name.includes('\0')) throw notFound()
      const rows = await family(accountId).selectAll().where('name', '=', name).limit(LIST_MAX).execute()
      const own = rows.find((row) => row.account_id === accountId)
      const [row = own, second] = own ? [own] : rows
      if (!row) throw notFound()
      if (second)
        throw new BadRequest(
          `several subaccounts have ${what === 'alert' ? 'an alert' : 'a limit'} with this name`,
        )
      return alertOfRow<M>(row)
    },

    /** @throws BadRequest for a name that is taken, or over the limit */
    async create(accountId: string, definition: AlertDefinition<M>, now: number): Promise<Alert<M>> {
      const { count, same } = await db
        .selectFrom(table)
        .select((of) => [
          of.fn.countAll<number>().as('count'),
          of.fn.countAll<number>().filterWhere('name', '=', definition.name).as('same'),
        ])
        .where('account_id', '=', accountId)
        .executeTakeFirstOrThrow()
      if (Number(same) > 0) throw nameTaken()
      if (Number(count) >= ALERTS_PER_ACCOUNT_MAX) throw new BadRequest(`maximum number of ${what}s reached`)
      const row: AlertRow = {
        id: randomUUID(),
        account_id: accountId,
        ...columnsOf(definition),
        created_at: now,
        updated_at: now,
        last_checked_at: null,
      }
      const insert = db
        .insertInto(table)
        .values(row)
        .onConflict((conflict) => conflict.doNothing())
      await store.commit([store.statement(insert, 1)]).catch(ifStale(nameTaken))
      return alertOfRow<M>(row)
    },

    /** @throws BadRequest for a name that is taken, NotFound */
    async replace(alert: Alert<M>, definition: AlertDefinition<M>, now: number): Promise<void> {
      if (definition.name !== alert.name) await checkFree(alert, definition.name)
      const update = db
        .updateTable(table)
        .set({ ...columnsOf(definition), updated_at: Math.max(now, alert.updatedAt + 1) })
        .where('id', '=', alert.id)
        .where((eb) =>
          eb.not(
            eb.exists(
              eb
                .selectFrom(`${table} as others`)
                .select('others.id')
                .where('others.account_id', '=', alert.accountId)
                .where('others.name', '=', definition.name)
                .where('others.id', '<>', alert.id),
            ),
          ),
        )
      await store.commit([store.statement(update, 1)]).catch(ifStale(notFound))
    },

    /** With its hits and their notices. @throws NotFound */
    async remove(alert: Alert<M>): Promise<void> {
      const sql = `DELETE FROM ${table} WHERE id = ?`
      await store
        .commit([{ sql, values: [alert.id], expectRows: 1 }, ...removeHits(alert.id)])
        .catch(ifStale(notFound))
    },

    /** In order of account and name after `after` (null: from the first), for the checks. */
    async page(after: Alert<M> | null, limit: number): Promise<Alert<M>[]> {
      let query = db.selectFrom(table).selectAll().orderBy('account_id').orderBy('name').limit(limit)
      if (after)
        query = query.where(({ eb, refTuple, tuple }) =>
          eb(refTuple('account_id', 'name'), '>', tuple(after.accountId, after.name)),
        )
      return (await query.execute()).map((row) => alertOfRow<M>(row))
    },
  }

  async function checkFree({ accountId }: Alert<M>, name: string): Promise<void> {
    const query = db.selectFrom(table).select('id').where('account_id', '=', accountId)
    if (await query.where('name', '=', name).executeTakeFirst()) throw nameTaken()
  }
}

const columnsOf = <M extends string>(definition: AlertDefinition<M>) => ({
  name: definition.name,
  description: definition.description,
  account_group: definition.accountGroup,
  metric: definition.metric,
  comparator: definition.comparator,
  limit_text: definition.limit,
  dimension: definition.dimension,
  channels_json: JSON.stringify(definition.channels),
  filters_json: JSON.stringify(definition.filters),
  period: definition.period,
})

/** Removes the hits of an alert and what was not yet sent about them. */
function removeHits(source: string): Statement[] {
  return [
    {
      sql: 'DELETE FROM alert_notices WHERE hit_id IN (SELECT id FROM alert_hits WHERE source = ?)',
      values: [source],
    },
    { sql: 'DELETE FROM alert_hits WHERE source = ?', values: [source] },
  ]
}

/** Removes everything that an account has here. */
export const accountStatements = (accountId: string): Statement[] =>
  [
    ...['alert_notices', 'alert_settings', 'alert_slack', 'alert_hits', 'alerts'],
    ...['usage_limits', 'usage_hours'],
  ].map((table) => ({
    sql: `DELETE FROM ${table} WHERE account_id = ?`,
    values: [accountId],
  }))
