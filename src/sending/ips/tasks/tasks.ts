/**
 * Changes of many domains, made in the background a portion at a time (ips-pools.md section 3 rule 9). A step and the note
 * of how far it came are one transaction, so a task continues after a restart, and a step that is repeated changes nothing.
 */
import { newId } from '../../../base/ids.ts'
import type { Clock } from '../../../base/time/clock.ts'
import type { Core } from '../../../core.ts'
import { createTaskSteps, taskJob } from '../../../platform/jobs/stepped-task.ts'
import type { IpTaskRow } from '../../../platform/store/schema.ts'
import type { Domain } from '../../domains/domain.ts'
import type { KnownAddresses } from '../known-addresses.ts'
import { type StepParts, steps, type Task } from './task-steps.ts'

const TABLE = { name: 'ip_tasks', key: 'id', open: 'TRUE', turn: 'updated_at', lease: null } as const

export type IpTasks = ReturnType<typeof createIpTasks>

interface TaskParts extends StepParts, Pick<Core, 'store' | 'clock' | 'log' | 'domains'> {
  owner: string
  known: KnownAddresses
}

/** The reference id of work that is done at once. */
export const newReference = (clock: Clock): string => newId(clock.now())

export function createIpTasks(parts: TaskParts) {
  const { store, clock, log, known, domains } = parts
  const { runOne } = createTaskSteps<IpTaskRow>(parts, TABLE, runStep)
  const job = taskJob('ip-tasks', runOne, 'database')

  async function runStep(row: IpTaskRow): Promise<void> {
    const task = { kind: row.kind, ...(JSON.parse(row.params_json) as object) } as Task
    const changed: Domain[] = []
    const skipped: string[] = []
    const isDone = await known.change(async (tx) => {
      const context = { tx, accountId: row.account_id, position: row.position, changed, skipped }
      const position = await steps(parts, task, context)
      if (position === null) await tx.deleteFrom('ip_tasks').where('id', '=', row.id).execute()
      else await tx.updateTable('ip_tasks').set({ position }).where('id', '=', row.id).execute()
      return position === null
    })
    for (const domain of changed) domains.changed(domain)
    const about = { reference_id: row.id, task: task.kind }
    for (const domain of skipped)
      log.warn({ ...about, domain }, 'a domain keeps its IPs: it would have none left')
    if (isDone) log.info(about, 'a change of the IPs of domains is complete')
  }

  return {
    job,
    /** Begins it; resolves its reference id. */
    async add(accountId: string, { kind, ...params }: Task): Promise<string> {
      const id = newReference(clock)
      const now = Math.floor(clock.now())
      await store.db
        .insertInto('ip_tasks')
        .values({
          ...{ id, account_id: accountId, kind, params_json: JSON.stringify(params), position: '' },
          ...{ created_at: now, updated_at: now },
        })
        .execute()
      job.wake()
      return id
    },
  }
}
