/** The rules of jobs and previews (validation.md section 3). */

import { newId } from '../../../base/ids.ts'
import { BadRequest, NotFound, present } from '../../../base/process/errors.ts'
import type { Core } from '../../../core.ts'
import { commitUnlessStale } from '../../../platform/store/commits.ts'
import type { ValidationJobRow } from '../../../platform/store/schema.ts'
import type { Statement } from '../../../platform/store/store.ts'
import type { Chunk } from '../../../protocols/message/mime-message.ts'
import type { List } from '../../../sending/lists/list.ts'
import { storeFile } from '../../../sending/suppressions/import-file.ts'
import { checkAddressFile } from './address-file.ts'
import { noCounts } from './job.ts'
import {
  canceledStatement,
  createJobRow,
  deletedStatement,
  findJob,
  type JobKind,
  RUNNING,
} from './job-store.ts'

export type Jobs = ReturnType<typeof createJobs>

interface JobsParts extends Pick<Core, 'store' | 'blobs' | 'clock'> {
  /** A job waits for its next step. */
  wake(): void
  /** Rows of a job wait for their removal. */
  wakeRemoval(): void
}

const NAME_LENGTH_MAX = 255
const TAKEN = 'list_id already exists'
const NOT_FOUND: Readonly<Record<JobKind, string>> = {
  bulk: 'validation job not found',
  preview: 'validation preview not found',
}

export function createJobs(parts: JobsParts) {
  const { store, blobs, clock } = parts

  /** `also`: of another job; `changed`: thrown if that is not what it was when it was read. */
  async function insertJob(
    row: ValidationJobRow,
    also: readonly Statement[] = [],
    changed: Error = new BadRequest(TAKEN),
  ): Promise<void> {
    const creation = await createJobRow(store, row, also)
    if (creation === 'changed') throw changed
    if (creation === 'taken') throw new BadRequest(TAKEN)
    if (creation === 'too-many-running') throw new BadRequest('Too many validation jobs in progress')
    if (creation === 'too-many') throw new BadRequest('Too many validation jobs: delete some first')
    parts.wake()
  }

  async function find(accountId: string, kind: JobKind, listId: string): Promise<ValidationJobRow> {
    return present(await findJob(store, accountId, kind, listId), NOT_FOUND[kind])
  }

  return {
    /** @throws NotFound */
    find,
    /** @throws BadRequest for a file without addresses, a name that is taken, or too many jobs */
    async createOfFile(
      accountId: string,
      kind: JobKind,
      listId: string,
      file: Chunk,
    ): Promise<ValidationJobRow> {
      checkName(listId)
      // Before the file is written; the insert decides.
      if (await findJob(store, accountId, kind, listId)) throw new BadRequest(TAKEN)
      await checkAddressFile(file)
      const blob = await storeFile(blobs, file)
      const row = { ...newRow(clock.now(), accountId, kind, listId), blob }
      try {
        await insertJob(row)
      } catch (error) {
        await blobs.remove(blob)
        throw error
      }
      return row
    },
    /** The members of a mailing list; replaces a job of the list that has ended. */
    async createOfList(list: List): Promise<ValidationJobRow> {
      const before = await findJob(store, list.accountId, 'bulk', list.address)
      if (before && isRunning(before)) throw new BadRequest(TAKEN)
      const now = clock.now()
      const replaced = before ? [deletedStatement(before.id, Math.floor(now))] : []
      const row = { ...newRow(now, list.accountId, 'bulk', list.address), mailing_list_id: list.id }
      await insertJob(row, replaced)
      if (before) parts.wakeRemoval()
      return row
    },
    /** Cancels a running job, deletes any other. @throws NotFound */
    async remove(accountId: string, kind: JobKind, listId: string): Promise<void> {
      const row = await find(accountId, kind, listId)
      const now = Math.floor(clock.now())
      // A preview leaves nothing behind that anybody would ask for.
      const steps = isRunning(row) ? [canceledStatement(row.id, now)] : []
      const isGone = !isRunning(row) || kind === 'preview'
      const unit = [...steps, ...(isGone ? [deletedStatement(row.id, now)] : [])]
      // Its last step, or another caller, was faster.
      if (!(await commitUnlessStale(store, unit))) return this.remove(accountId, kind, listId)
      parts.wakeRemoval()
    },
    /** Makes a job of all addresses of a preview's file. @throws NotFound, BadRequest */
    async promote(accountId: string, listId: string): Promise<void> {
      const preview = await find(accountId, 'preview', listId)
      if (preview.blob === null) throw new NotFound(NOT_FOUND.preview)
      const row = { ...newRow(clock.now(), accountId, 'bulk', listId), blob: preview.blob }
      const now = Math.floor(clock.now())
      // The file changes its owner with the transaction, unless its removal has begun.
      const given: Statement = {
        sql: 'UPDATE validation_jobs SET blob = NULL WHERE id = ? AND blob = ? AND dropping = 0',
        values: [preview.id, preview.blob],
        expectRows: 1,
      }
      const ended = isRunning(preview) ? [canceledStatement(preview.id, now)] : []
      const steps = [given, ...ended, deletedStatement(preview.id, now)]
      try {
        await insertJob(row, steps, new NotFound(NOT_FOUND.preview))
      } catch (error) {
        // Its first step was faster: it does not count as running any more.
        const hasEnded = isRunning(preview) && !isRunning(await find(accountId, 'preview', listId))
        if (!(error instanceof NotFound) || !hasEnded) throw error
        return this.promote(accountId, listId)
      }
      parts.wakeRemoval()
    },
  }
}

const isRunning = ({ status }: ValidationJobRow) => (RUNNING as readonly string[]).includes(status)

/** @throws BadRequest: an `@` would name a mailing list */
function checkName(listId: string): void {
  if (listId.length > NAME_LENGTH_MAX || listId.includes('@') || /\p{Cc}/u.test(listId))
    throw new BadRequest(`list_id must have 1 to ${NAME_LENGTH_MAX} characters and no @`)
}

function newRow(now: number, accountId: string, kind: JobKind, listId: string): ValidationJobRow {
  return {
    ...{ id: newId(now), account_id: accountId, kind, list_id: listId },
    ...{ mailing_list_id: null, blob: null, status: 'created', dropping: 0 },
    ...{ quantity: 0, read_up_to: '', addresses: 0, done: 0, done_up_to: -1, tries: 0 },
    counts_json: JSON.stringify(noCounts()),
    ...{ lease_token: null, lease_owner: null, lease_until: 0 },
    ...{ stepped_at: Math.floor(now), created_at: Math.floor(now), ended_at: null },
  }
}
