/** Uploads of members: small ones synchronously, large ones as durable background tasks. */

import { newId } from '../../base/ids.ts'
import type { Clock } from '../../base/time/clock.ts'
import type { ListUploadRow } from '../../platform/store/schema.ts'
import { insert, type Statement, type Store } from '../../platform/store/store.ts'
import type { EventRecorder } from '../../watching/events/event-recorder.ts'
import { type EntriesPlan, type Entry, planEntries } from './bulk.ts'
import type { List } from './list.ts'
import { listUploadedEvent, type UploadFacts } from './list-events.ts'
import { claimTask } from './list-tasks.ts'
import type { ListStore } from './store.ts'

/** One transaction: about 15 ms of SQLite's only writer, so that sending continues between steps. */
const ENTRIES_PER_STEP = 250
/** How long the result of an upload stays in the table. */
const FINISHED_KEPT_MS = 7 * 86_400_000

export interface UploadTasks {
  /** Applies the entries in one transaction. Resolves to null if the list is gone. */
  apply(list: List, entries: readonly Entry[], facts: UploadFacts): Promise<List | null>
  /** Stores the task durably; `runOne` processes it. */
  add(list: List, entries: readonly Entry[], facts: UploadFacts): Promise<void>
  /** Runs one step of one task; false if none is due. */
  runOne(): Promise<boolean>
}

/** Task ids sort by creation time; tasks of one list run in that order. */
export const newTaskId = (nowMs: number): string => newId(nowMs)

export function createUploadTasks(parts: {
  store: Store
  lists: ListStore
  clock: Clock
  recorder: EventRecorder
  /** Identifies this process. */
  owner: string
}): UploadTasks {
  const { store, lists, clock, recorder, owner } = parts
  return {
    async apply(list, entries, facts) {
      await change(lists, list.id, entries, facts, clock.now(), recorder, (current, plan, now) => [
        ...recorder.statements([listUploadedEvent(current, facts, plan, now)]),
      ])
      return lists.byId(list.id)
    },
    async add(list, entries, facts) {
      const now = Math.floor(clock.now())
      const row: ListUploadRow = {
        id: facts.taskId,
        account_id: list.accountId,
        list_id: list.id,
        format: facts.format,
        is_upsert: facts.isUpsert ? 1 : 0,
        subscribed: facts.subscribed ? 1 : 0,
        entries_json: JSON.stringify(entries),
        done: 0,
        upserted_count: 0,
        failed_count: 0,
        state: 'running',
        lease_owner: null,
        lease_until: 0,
        created_at: now,
        updated_at: now,
      }
      await store.commit([insert('list_uploads', row), dropFinished(now)])
    },
    async runOne() {
      const task = await claimTask<ListUploadRow>(
        store,
        { name: 'list_uploads', inOrder: true },
        owner,
        clock.now(),
      )
      if (!task) return false
      await step(parts, task, clock.now())
      return true
    },
  }
}

/** Member rows, their events and `also` in one transaction. Undefined: the list is gone. */
function change(
  lists: ListStore,
  listId: string,
  entries: readonly Entry[],
  facts: UploadFacts,
  now: number,
  recorder: EventRecorder,
  also: (list: List, plan: EntriesPlan, now: number) => Statement[],
): Promise<true | undefined> {
  const keys = new Set(entries.flatMap((entry) => ('key' in entry ? [entry.key] : [])))
  return lists.changeMembers(listId, [...keys], (list, present) => {
    const plan = planEntries(list, present, entries, facts, now)
    const statements = [...recorder.statements(plan.events), ...also(list, plan, now)]
    return { change: { write: plan.write, added: plan.added, also: statements }, result: true }
  })
}

/** The row checks the position where the step began: of two that run the same step, one rolls back as a whole. */
async function step(
  { store, lists, recorder }: { store: Store; lists: ListStore; recorder: EventRecorder },
  task: ListUploadRow,
  now: number,
): Promise<void> {
  const entries = JSON.parse(task.entries_json) as Entry[]
  const batch = entries.slice(task.done, task.done + ENTRIES_PER_STEP)
  const facts: UploadFacts = {
    taskId: task.id,
    format: task.format,
    subscribed: task.subscribed === 1,
    isUpsert: task.is_upsert === 1,
  }
  const done = task.done + batch.length
  const found = await change(lists, task.list_id, batch, facts, now, recorder, (list, plan) => {
    const upserted = task.upserted_count + plan.upserted
    const failed = task.failed_count + plan.failed
    const isLast = done >= entries.length
    const advance = advanceTask(task, { done, upserted, failed, isLast }, now)
    const end = isLast ? recorder.statements([listUploadedEvent(list, facts, { upserted, failed }, now)]) : []
    return [advance, ...end]
  })
  if (found === undefined) {
    const { upserted_count: upserted, failed_count: failed } = task
    await store.commit([advanceTask(task, { done: task.done, upserted, failed, isLast: true }, now)])
  }
}

function advanceTask(
  task: ListUploadRow,
  to: { done: number; upserted: number; failed: number; isLast: boolean },
  now: number,
): Statement {
  return {
    sql: `UPDATE list_uploads SET done = ?, upserted_count = ?, failed_count = ?, state = ?,
      ${to.isLast ? "entries_json = '[]'," : ''} lease_until = 0, updated_at = ?
      WHERE id = ? AND done = ? AND state = 'running'`,
    values: [
      to.done,
      to.upserted,
      to.failed,
      to.isLast ? 'done' : 'running',
      Math.floor(now),
      task.id,
      task.done,
    ],
    expectRows: 1,
  }
}

const dropFinished = (now: number): Statement => ({
  sql: "DELETE FROM list_uploads WHERE state = 'done' AND updated_at < ?",
  values: [now - FINISHED_KEPT_MS],
})
