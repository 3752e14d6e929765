/**
 * The work on exports, step by step. A step reads some pages of the list, and its records become a piece of the file:
 * a blob that is a member of a gzip file of several (RFC 1952 §2.2). Piece and cursor are one commit, so that a crash
 * repeats a step. A list that its operation writes as CSV is one step.
 */
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { csvRecord } from '../../base/csv.ts'
import { BadRequest, InsufficientStorage, ServiceError, Unavailable } from '../../base/process/errors.ts'
import type { Core } from '../../core.ts'
import type { Caller } from '../../platform/http/rights/auth.ts'
import type { Role } from '../../platform/http/rights/rights.ts'
import { commitPiece, createPieceSteps } from '../../platform/jobs/piece-steps.ts'
import type { TaskParts, TaskSteps, TaskTable } from '../../platform/jobs/stepped-task.ts'
import type { BlobStore, SpooledBlob } from '../../platform/store/blobs/blobs.ts'
import type { ExportRow } from '../../platform/store/schema.ts'
import { columnsOf, type createSources, fieldOf, type Page, readPage, type Source } from './lists.ts'
import { roleNow } from './requester.ts'

interface WorkParts extends TaskParts, Pick<Core, 'blobs' | 'log'> {
  /** Ends at the floor of free space. */
  spool: Pick<BlobStore, 'spool'>
  sourceOf: ReturnType<typeof createSources>
}

/** Records of an export: about a hundred megabytes of events. */
const RECORDS_MAX = 1_000_000
/** Bytes of the file as stored. */
const SIZE_MAX_BYTES = 32 * 1024 * 1024
/** Records of a piece, after which other exports have their turn. */
const PIECE_RECORDS = 5_000
/** The largest file of an operation takes less than a minute on a slow machine. */
const LEASE_MS = 600_000
const TRIES_MAX = 3

const TABLE: TaskTable = {
  ...{ name: 'exports', key: 'id', open: "task.status IN ('requested', 'processing')", turn: 'stepped_at' },
  lease: { ms: LEASE_MS, check: 'lease_token', tries: 'tries' },
}

/** The caller that reads the list. */
export const callerOf = (accountId: string, role: Role): Caller => ({
  ...{ accountId, role },
  keyId: 'export',
  kind: 'user',
})

export function createExportSteps(parts: WorkParts): TaskSteps<ExportRow> {
  const isCallers = (error: unknown) => error instanceof ServiceError && !isShortage(error)
  const tasks: TaskSteps<ExportRow> = createPieceSteps<ExportRow>(parts, {
    ...{ table: TABLE, triesMax: TRIES_MAX, isFinal: isCallers },
    async step(task, signal) {
      const { change, blob } = await makePiece(parts, task, signal)
      const size_bytes = task.size_bytes + blob.chunk.sizeBytes
      await commitPiece({ ...parts, tasks }, task, blob, { ...change, size_bytes }, 'release')
    },
    failed: (error) => ({
      ...{ status: 'failed', size_bytes: 0, lease_token: null },
      fault: isCallers(error) ? (error as ServiceError).message : 'the list could not be read',
    }),
  })
  return tasks
}

/** A shortage of the service, which passes. */
const isShortage = (error: ServiceError) =>
  error instanceof Unavailable || error instanceof InsufficientStorage

interface Piece {
  change: Pick<ExportRow, 'status' | 'next_page' | 'records'>
  blob: SpooledBlob
}

async function makePiece(parts: WorkParts, task: ExportRow, signal: AbortSignal): Promise<Piece> {
  const source = parts.sourceOf(task.body === '' ? 'GET' : 'POST', task.next_page)
  if (source === null) throw new BadRequest('the list cannot be exported any more')
  const call = {
    caller: callerOf(task.account_id, await roleNow(parts.store, task, parts.clock.now())),
    document: task.body === '' ? undefined : (JSON.parse(task.body) as unknown),
    ...{ log: parts.log, signal },
  }
  const change: Piece['change'] = { status: 'complete', next_page: '', records: task.records }
  /** The list in CSV from the next page on; says in `change` how far it came. */
  async function* texts(): AsyncGenerator<string | Uint8Array> {
    const columns = columnsOf(source as Source)
    if (task.records === 0 && (source as Source).listing.pages !== 'file')
      yield `\uFEFF${csvRecord(columns.map((column) => column.join('.')))}`
    for (let at = source as Source; ; ) {
      signal.throwIfAborted()
      const page = await readPage(at, call)
      if (!isPage(page)) return yield* page
      yield page.items.map((item) => csvRecord(columns.map((column) => fieldOf(item, column)))).join('')
      change.records += page.items.length
      if (change.records > RECORDS_MAX)
        throw new BadRequest(`the list has more than ${RECORDS_MAX} records: ask for less`)
      if (page.next === null || page.next === at.url) return
      if (change.records - task.records >= PIECE_RECORDS) {
        Object.assign(change, { status: 'processing', next_page: page.next })
        return
      }
      const next = parts.sourceOf('GET', page.next)
      if (next === null) throw new Error(`${at.spec.id} leads to what is no list: ${page.next}`)
      at = next
    }
  }
  const blob = await spooled(parts, texts(), SIZE_MAX_BYTES - task.size_bytes)
  return { change, blob }
}

const isPage = (page: Page | AsyncIterable<Uint8Array>): page is Page => 'items' in page

/** @throws BadRequest over `bytesMax` compressed bytes */
async function spooled(
  { spool }: WorkParts,
  texts: AsyncIterable<string | Uint8Array>,
  bytesMax: number,
): Promise<SpooledBlob> {
  async function* limited(bytes: AsyncIterable<Uint8Array>) {
    let left = bytesMax
    for await (const piece of bytes) {
      left -= piece.byteLength
      if (left < 0) throw new BadRequest(`the file is larger than ${SIZE_MAX_BYTES} bytes: ask for less`)
      yield piece
    }
  }
  let blob: SpooledBlob | undefined
  await pipeline(texts, createGzip(), async (bytes: AsyncIterable<Uint8Array>) => {
    blob = await spool.spool(limited(bytes))
  })
  return blob as SpooledBlob
}
