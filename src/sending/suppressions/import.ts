/**
 * CSV imports, processed in the background after the upload.
 *
 * 1. `submit` checks the header, puts the file into the blob store and a row into `suppression_imports`; then the
 *    call returns.
 * 2. One worker per process claims imports under a lease and adds up to 1,000 rows at a time. Each step commits the
 *    records together with the number of rows done.
 * 3. After a stop or a crash the import is claimed again and continues after the last step.
 *
 * An unreadable row is skipped and counted; the counts are logged at the end.
 */
import type { Logger } from 'pino'
import { CsvSyntaxError } from '../../base/csv.ts'
import { newId } from '../../base/ids.ts'
import type { Clock } from '../../base/time/clock.ts'
import { type Actor, auditStatement } from '../../people/accounts/audit-log.ts'
import { createJob, type Job } from '../../platform/jobs/job.ts'
import type { BlobStore } from '../../platform/store/blobs/blobs.ts'
import type { SuppressionImportRow, SuppressionKind } from '../../platform/store/schema.ts'
import { insert, StaleWrite, type Store } from '../../platform/store/store.ts'
import type { Chunk } from '../../protocols/message/mime-message.ts'
import type { Domain } from '../domains/domain.ts'
import { checkHeader, storeFile, UNPACKED_BYTES_MAX, UnpackFailure } from './import-file.ts'
import { claimImport, endImport, importRows, type Task } from './import-steps.ts'
import { traitsOf } from './kinds.ts'

export interface Imports {
  /** Resolves once the file is on disk and its import is queued. @throws BadRequest `while reading csv header` */
  submit(actor: Actor, domain: Domain, kind: SuppressionKind, file: Chunk): Promise<void>
  /** Drops the pending imports of a domain; a step in progress rolls back. */
  forgetDomain(domainId: string): Promise<void>
  job: Job
}

export interface ImportParts {
  store: Store
  blobs: BlobStore
  clock: Clock
  log: Logger
  /** Names this process in leases. */
  owner?: string
  /** Default 250 MiB. */
  unpackedBytesMax?: number
}

/** How often to look for imports that another process left unfinished. */
const LOOK_EVERY_MS = 60_000
/** Attempts without one completed step, after which an import is dropped. */
const ATTEMPTS_MAX = 5

export function createImports(parts: ImportParts): Imports {
  const { store, blobs, clock, log, unpackedBytesMax = UNPACKED_BYTES_MAX } = parts
  const owner = parts.owner ?? newId()
  const steps = { store, blobs, clock, unpackedBytesMax }
  const claim = () => claimImport(steps, owner)
  const job = createJob({
    name: 'suppression-imports',
    everyMs: LOOK_EVERY_MS,
    // Each process claims imports of its own.
    scope: 'claims',
    async work(signal) {
      for (let task = await claim(); task && !signal.aborted; task = await claim()) await run(task, signal)
    },
  })

  async function run(task: Task, signal: AbortSignal): Promise<void> {
    const about = { import: task.id, domain: task.domain_id, list: task.kind }
    try {
      const finished = await importRows(steps, task, signal)
      if (!finished) return
      await endImport(steps, task)
      log.info({ ...about, rows: task.rows_done, bad: task.rows_bad }, 'import finished')
    } catch (error) {
      if (error instanceof StaleWrite) return
      const hopeless = error instanceof CsvSyntaxError || error instanceof UnpackFailure
      log.error({ err: error, ...about, rows: task.rows_done, bad: task.rows_bad }, 'import failed')
      if (hopeless || task.attempts >= ATTEMPTS_MAX)
        await endImport(steps, task).catch((fault) => log.error({ err: fault }))
    }
  }

  return {
    async submit(actor, domain, kind, file) {
      await storeImport(parts, actor, domain, kind, file)
      job.wake()
    },
    async forgetDomain(domainId) {
      const rows = await store.db
        .deleteFrom('suppression_imports')
        .where('domain_id', '=', domainId)
        .returning('blob')
        .execute()
      for (const { blob } of rows) await blobs.remove(blob)
    },
    job,
  }
}

/** Checks the header and stores file, import and audit row. */
async function storeImport(
  { store, blobs, clock }: ImportParts,
  actor: Actor,
  domain: Domain,
  kind: SuppressionKind,
  file: Chunk,
): Promise<void> {
  await checkHeader(traitsOf(kind), file)
  const blob = await storeFile(blobs, file)
  const now = clock.now()
  const id = newId(now)
  const row: SuppressionImportRow = {
    id,
    account_id: domain.accountId,
    domain_id: domain.id,
    kind,
    blob,
    rows_done: 0,
    rows_bad: 0,
    attempts: 0,
    lease_token: null,
    lease_owner: null,
    lease_until: 0,
    created_at: Math.floor(now),
  }
  const change = { action: `${kind}.import`, subject: domain.name, detail: { import: id }, status: 202 }
  try {
    await store.commit([insert('suppression_imports', row), auditStatement(actor, change, now)])
  } catch (error) {
    await blobs.remove(blob)
    throw error
  }
}
