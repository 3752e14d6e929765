/**
 * The work on jobs, step by step (validation.md section 3):
 *
 * 1. A step claims the job whose last step is longest ago, under a lease; the claim counts as a try.
 * 2. A created job: the addresses of its file, or of its mailing list, become rows, 1,000 in a transaction. A preview takes a
 *    random sample of them.
 * 3. A job in process: the next addresses are validated, and their results, the progress and the usage are one transaction.
 *    A step is a hundredth of the job, so that progress is true to 1 %, and 100 addresses at most.
 *
 * After a crash the step is repeated. One that has been tried twice without an end is done without asking anybody: so no
 * address is looked up more than twice, however often processes die, and one that kills the process does not stay.
 */
import { CsvSyntaxError } from '../../../base/csv.ts'
import { UnpackFailure } from '../../../base/flow/unpacked.ts'
import type { Core } from '../../../core.ts'
import {
  createTaskSteps,
  type TaskParts,
  type TaskSteps,
  type TaskTable,
} from '../../../platform/jobs/stepped-task.ts'
import type { ValidationJobRow } from '../../../platform/store/schema.ts'
import { insertMany, type Statement } from '../../../platform/store/store.ts'
import { usageStatements } from '../../../watching/metrics/usage.ts'
import type { Counts } from '../shapes.ts'
import { usageOf } from '../usage.ts'
import type { Validator } from '../validator.ts'
import { addressesIn } from './address-file.ts'
import { countsWith } from './job.ts'
import { hashOf, knownHashes, nextAddresses, resultStatements } from './job-store.ts'

interface StepParts extends TaskParts, Pick<Core, 'blobs' | 'log' | 'random'> {
  validator: Validator
  /** Statements of the notices about a finished job. */
  finished(job: ValidationJobRow): Promise<Statement[]>
  /** They are committed. */
  finishedCommitted(): void
}

/** Rows in a transaction while a file is read. */
const ROWS_PER_COMMIT = 1_000
/** Rows of a job. The largest lists have fewer, and the disk holds each twice with its result. */
const ROWS_MAX = 1_000_000
const STEP_MAX = 100
/** Section 3 rule 10. */
const SAMPLE_MAX = 500
/** A step with nothing but dead name servers takes a minute and a half. */
const LEASE_MS = 300_000
/** Section 3 rule 5. */
const LOOKUPS_MAX = 2
/** Reading a file is given up after so many tries without progress. */
const READ_TRIES_MAX = 5

/** The file or list cannot be validated; trying again does not help. */
class HopelessJob extends Error {}

/** What a step works with. */
interface Step extends StepParts {
  tasks: TaskSteps<ValidationJobRow>
}

const TABLE: TaskTable = {
  ...{ name: 'validation_jobs', key: 'id', open: "task.status IN ('created', 'processing')" },
  turn: 'stepped_at',
  lease: { ms: LEASE_MS, check: 'lease_token', tries: 'tries' },
}

export function createJobSteps(parts: StepParts): TaskSteps<ValidationJobRow> {
  const tasks = createTaskSteps<ValidationJobRow>(
    parts,
    TABLE,
    (job, signal) =>
      job.status === 'processing' ? validateNext(step, job, signal) : readAddresses(step, job, signal),
    async (job, error) => {
      const isHopeless =
        error instanceof HopelessJob || error instanceof CsvSyntaxError || error instanceof UnpackFailure
      if (!isHopeless && (job.status === 'processing' || job.tries < READ_TRIES_MAX)) return false
      parts.log.warn({ err: error, job: job.id, list: job.list_id }, 'a validation job failed')
      const ended_at = Math.floor(parts.clock.now())
      const failed = { status: 'failed', dropping: 1, ended_at, lease_token: null } as const
      await tasks.commit(job, failed, [], 'release')
      return true
    },
  )
  const step: Step = { ...parts, tasks }
  return tasks
}

async function readAddresses(parts: Step, job: ValidationJobRow, signal: AbortSignal): Promise<void> {
  if (job.kind === 'preview') return readSample(parts, job)
  const source =
    job.mailing_list_id === null ? fileRows(parts, job) : memberRows(parts, job.mailing_list_id, job)
  let rows: SourceRow[] = []
  for await (const row of source) {
    rows.push(row)
    if (rows.length < ROWS_PER_COMMIT) continue
    await storeRows(parts, job, rows, false)
    rows = []
    if (signal.aborted) return
  }
  await storeRows(parts, job, rows, true)
}

interface SourceRow {
  /** '' is no address. */
  address: string
  /** Where to continue after it; '' in a file, where the number of rows says it. */
  place: string
}

async function* fileRows({ blobs }: StepParts, job: ValidationJobRow): AsyncGenerator<SourceRow> {
  const file = await blobs.read(job.blob as string)
  let skip = job.quantity
  for await (const address of addressesIn(file.open())) {
    if (skip > 0) skip--
    else yield { address, place: '' }
  }
}

/** Unsubscribed members too: they stay on the list. */
async function* memberRows(
  { store }: StepParts,
  listId: string,
  job: ValidationJobRow,
): AsyncGenerator<SourceRow> {
  for (let after = job.read_up_to; ; ) {
    const members = await store.db
      .selectFrom('list_members')
      .select(['address', 'address_key'])
      .where('list_id', '=', listId)
      .where('address_key', '>', after)
      .orderBy('address_key')
      .limit(ROWS_PER_COMMIT)
      .execute()
    for (const { address, address_key } of members) yield { address, place: address_key }
    const last = members.at(-1)
    if (!last || members.length < ROWS_PER_COMMIT) return
    after = last.address_key
  }
}

/** Adds those addresses that the job has not yet. With the last ones the job is in process. */
async function storeRows(
  parts: Step,
  job: ValidationJobRow,
  rows: readonly SourceRow[],
  isLast: boolean,
): Promise<void> {
  if (job.quantity + rows.length > ROWS_MAX) throw new HopelessJob(`more than ${ROWS_MAX} rows`)
  const hashes = rows.map(({ address }) => (address === '' ? '' : hashOf(address)))
  const known = await knownHashes(parts.store, job.id, [...new Set(hashes)])
  const added = rows.flatMap(({ address }, at) => {
    const hash = hashes[at] as string
    if (hash === '' || known.has(hash)) return []
    known.add(hash)
    return [{ job_id: job.id, no: job.quantity + at, hash, address, result_json: null }]
  })
  const change = {
    quantity: job.quantity + rows.length,
    addresses: job.addresses + added.length,
    read_up_to: rows.at(-1)?.place ?? job.read_up_to,
    ...(isLast && { status: 'processing', blob: null }),
  }
  const file = job.blob
  const after = isLast ? 'release' : 'continue'
  await parts.tasks.commit(job, change, insertMany('validation_addresses', added), after)
  if (isLast && file !== null) await parts.blobs.remove(file)
}

/** Reservoir sampling: each row has the same chance to be among the 500, whatever their number. */
async function readSample(parts: Step, job: ValidationJobRow): Promise<void> {
  const { tasks, blobs, random } = parts
  const file = await blobs.read(job.blob as string)
  const sample: { no: number; address: string }[] = []
  let quantity = 0
  for await (const address of addressesIn(file.open())) {
    const no = quantity++
    if (quantity > ROWS_MAX) throw new HopelessJob(`more than ${ROWS_MAX} rows`)
    const place = no < SAMPLE_MAX ? no : Math.floor(random() * quantity)
    if (place < SAMPLE_MAX) sample[place] = { no, address }
  }
  const byHash = new Map<string, { no: number; address: string }>()
  for (const row of sample.sort((a, b) => a.no - b.no)) {
    const hash = hashOf(row.address)
    if (row.address !== '' && !byHash.has(hash)) byHash.set(hash, row)
  }
  const added = [...byHash].map(([hash, { no, address }]) => ({
    job_id: job.id,
    no,
    hash,
    address,
    result_json: null,
  }))
  // The file stays: the preview may be promoted.
  const change = { quantity, addresses: added.length, status: 'processing' as const }
  await tasks.commit(job, change, insertMany('validation_addresses', added), 'release')
}

async function validateNext(parts: Step, job: ValidationJobRow, signal: AbortSignal): Promise<void> {
  const { store, clock, validator } = parts
  const size = Math.min(STEP_MAX, Math.max(1, Math.floor(job.addresses / 100)))
  const rows = await nextAddresses(store, job.id, job.done_up_to, size)
  const results = await validator.validate(
    job.account_id,
    rows.map(({ address }) => address),
    { providerLookup: true, network: job.tries <= LOOKUPS_MAX, asksServers: job.kind === 'bulk', signal },
  )
  const last = rows[results.length - 1]
  // Stopped before the first one is done. The try counts.
  if (rows.length > 0 && !last) return
  const now = Math.floor(clock.now())
  const counts = countsWith(JSON.parse(job.counts_json) as Counts, results)
  const done = job.done + results.length
  const isOver = results.length === rows.length && (rows.length < size || done >= job.addresses)
  const change = {
    done,
    ...(last && { done_up_to: Number(last.no) }),
    counts_json: JSON.stringify(counts),
    ...(isOver && { status: 'uploaded', ended_at: now }),
  }
  const way = job.mailing_list_id === null ? 'bulk' : 'list'
  const written = [
    ...resultStatements(rows, results),
    ...usageStatements(job.account_id, now, usageOf(results, [way])),
    ...(isOver ? await parts.finished({ ...job, ...change }) : []),
  ]
  await parts.tasks.commit(job, change, written, 'release')
  if (isOver) parts.finishedCommitted()
}
