/**
 * Enrolment of all domains of an account in the background (dynamic-pools.md section 5 rule 6), a portion at a time. A
 * portion and the note of how far it came are one transaction, so it continues after a restart.
 */
import type { Core } from '../../core.ts'
import { createTaskSteps, type TaskTable, taskJob } from '../../platform/jobs/stepped-task.ts'
import type { DynamicPoolTaskRow } from '../../platform/store/schema.ts'
import { type Domain, domainOfRow } from '../domains/domain.ts'
import type { KnownAddresses } from '../ips/known-addresses.ts'
import { BANDS } from './bands.ts'
import type { Check, Enrolments } from './enrolments.ts'
import { poolsOf, presentPools } from './pool-rules.ts'

const TABLE: TaskTable = {
  ...{ name: 'dynamic_pool_tasks', key: 'account_id', open: 'TRUE', turn: 'updated_at', lease: null },
}
/** Domains in one transaction: some tens of milliseconds. */
const PORTION = 50

export type BulkEnrolment = ReturnType<typeof createBulkEnrolment>

interface BulkParts extends Pick<Core, 'store' | 'clock' | 'log' | 'domains'> {
  owner: string
  known: KnownAddresses
  enrolments: Enrolments
}

export function createBulkEnrolment(parts: BulkParts) {
  const { store, clock, log, known, enrolments } = parts
  const { runOne } = createTaskSteps<DynamicPoolTaskRow>(parts, TABLE, runStep)
  const job = taskJob('dynamic-pool-enrolments', runOne, 'database')

  async function runStep(task: DynamicPoolTaskRow): Promise<void> {
    const rows = await domainsAfter(task)
    const found = rows.map((row) => domainOfRow(row, clock.now())).filter(isWanted)
    const checks = new Map<Domain, Check>()
    for (const domain of found) checks.set(domain, await enrolments.check(domain))
    const position = rows.length < PORTION ? null : (rows.at(-1)?.id ?? null)
    const enrolled = await known.change(async (tx) => {
      const done: Domain[] = []
      // Removed meanwhile: then the task is gone as well.
      const hasPools = presentPools(known.book(), task.account_id).size === BANDS.length
      for (const [domain, check] of hasPools ? checks : [])
        if (await enrolments.enrolIn(tx, domain, check, task.initiated_by)) done.push(domain)
      if (position === null || !hasPools)
        await tx.deleteFrom('dynamic_pool_tasks').where('account_id', '=', task.account_id).execute()
      else
        await tx
          .updateTable('dynamic_pool_tasks')
          .set({ position })
          .where('account_id', '=', task.account_id)
          .execute()
      return done
    })
    for (const domain of enrolled) parts.domains.changed(domain)
    if (position === null)
      log.info({ account: task.account_id }, 'the enrolment of all domains in dynamic pools is complete')
  }

  function domainsAfter({
    account_id: accountId,
    with_subaccounts: withSubaccounts,
    position,
  }: DynamicPoolTaskRow) {
    return store.db
      .selectFrom('domains')
      .selectAll()
      .where((eb) => {
        const own = eb('account_id', '=', accountId)
        if (Number(withSubaccounts) !== 1) return own
        const children = eb.selectFrom('accounts').select('accounts.id').where('parent_id', '=', accountId)
        return eb.or([own, eb('account_id', 'in', children.where('status', '<>', 'closed'))])
      })
      .where('id', '>', position)
      .orderBy('id')
      .limit(PORTION)
      .execute()
  }

  return {
    job,
    /** Begins it, unless one runs. @throws BadRequest when the pools are not configured */
    async start(accountId: string, withSubaccounts: boolean, initiatedBy: string): Promise<void> {
      poolsOf(known.book(), accountId)
      await store.db
        .insertInto('dynamic_pool_tasks')
        .values({
          ...{ account_id: accountId, with_subaccounts: withSubaccounts ? 1 : 0, initiated_by: initiatedBy },
          ...{ position: '', updated_at: Math.floor(clock.now()) },
        })
        .onConflict((conflict) => conflict.doNothing())
        .execute()
      job.wake()
    },
  }
}

const isWanted = ({ state, type, dynamicPoolId }: Domain) =>
  state !== 'disabled' && type !== 'sandbox' && dynamicPoolId === null
