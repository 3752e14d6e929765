/** Uploads of members: small ones synchronously, large ones as durable background tasks. */

import { newId } from '../../base/ids.ts'
import { DAY_MS } from '../../base/time/durations.ts'
import {
  createTaskSteps,
  LEASE_MS,
  type TaskParts,
  type TaskTable,
} from '../../platform/jobs/stepped-task.ts'
import type { ListUploadRow } from '../../platform/store/schema.ts'
import { insert, type Statement } from '../../platform/store/store.ts'
import type { EventRecorder } from '../../watching/events/event.ts'
import { causeOf, type EntriesPlan, type Entry, planEntries } from './bulk.ts'
import type { List } from './list.ts'
import { listUploadedEvent, type UploadFacts } from './list-events.ts'
import type { ListStore } from './store.ts'

/** One transaction: about 15 ms of SQLite's only writer, so that sending continues between steps. */
const ENTRIES_PER_STEP = 250
/** How long the result of an upload stays in the table. */
export const FINISHED_KEPT_MS = 7 * DAY_MS

const TABLE: TaskTable = {
  ...{ name: 'list_uploads', key: 'id', open: "task.state = 'running'", turn: 'updated_at' },
  inOrderOf: 'list_id',
  lease: { ms: LEASE_MS, check: 'done', tries: null },
}

const ENDED = { state: 'done', entries_json: '[]' } as const

export type UploadTasks = ReturnType<typeof createUploadTasks>

/** Task ids sort by creation time; tasks of one list run in that order. */
export const newTaskId = (nowMs: number): string => newId(nowMs)

export function createUploadTasks(parts: TaskParts & { lists: ListStore; recorder: EventRecorder }) {
  const { store, lists, clock, recorder } = parts
  const tasks = createTaskSteps<ListUploadRow>(parts, TABLE, step)

  async function step(task: ListUploadRow): Promise<void> {
    const now = clock.now()
    const entries = JSON.parse(task.entries_json) as Entry[]
    const batch = entries.slice(task.done, task.done + ENTRIES_PER_STEP)
    const facts: UploadFacts = {
      taskId: task.id,
      format: task.format,
      subscribed: task.subscribed === 1,
      isUpsert: task.is_upsert === 1,
      isConfirmed: task.is_confirmed === 1,
      calledBy: task.called_by ?? undefined,
    }
    const done = task.done + batch.length
    const ended = done >= entries.length ? ENDED : {}
    const found = await change(lists, task.list_id, batch, facts, now, recorder, (list, plan) => {
      const upserted = task.upserted_count + plan.upserted
      const failed = task.failed_count + plan.failed
      const counts = { done, upserted_count: upserted, failed_count: failed }
      const event = listUploadedEvent(list, facts, { upserted, failed }, now)
      return [
        tasks.saved(task, { ...counts, ...ended }, 'release'),
        ...(done >= entries.length ? recorder.statements([event]) : []),
      ]
    })
    if (found === undefined) await tasks.commit(task, ENDED, [], 'release')
  }

  return {
    /** Runs one step of one task; false if none is due. */
    runOne: tasks.runOne,
    /** Applies the entries in one transaction. Resolves to null if the list is gone. */
    async apply(list: List, entries: readonly Entry[], facts: UploadFacts): Promise<List | null> {
      await change(lists, list.id, entries, facts, clock.now(), recorder, (current, plan, now) => [
        ...recorder.statements([listUploadedEvent(current, facts, plan, now)]),
      ])
      return lists.byId(list.id)
    },
    /** Stores the task durably; `runOne` processes it. */
    async add(list: List, entries: readonly Entry[], facts: UploadFacts): Promise<void> {
      const now = Math.floor(clock.now())
      const row: ListUploadRow = {
        id: facts.taskId,
        account_id: list.accountId,
        list_id: list.id,
        format: facts.format,
        is_upsert: facts.isUpsert ? 1 : 0,
        is_confirmed: facts.isConfirmed ? 1 : 0,
        called_by: facts.calledBy ?? null,
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
  const keys = [...new Set(entries.flatMap((entry) => ('key' in entry ? [entry.key] : [])))]
  const cause = causeOf(facts, now)
  return lists.changeMembers(
    listId,
    keys,
    (list, present, mailedAt) => {
      const plan = planEntries(list, present, entries, facts, now, mailedAt)
      const statements = [...recorder.statements(plan.events), ...also(list, plan, now)]
      return { change: { write: plan.write, added: plan.added, also: statements, cause }, result: true }
    },
    { mails: facts.isConfirmed },
  )
}

const dropFinished = (now: number): Statement => ({
  sql: "DELETE FROM list_uploads WHERE state = 'done' AND updated_at < ?",
  values: [now - FINISHED_KEPT_MS],
})
