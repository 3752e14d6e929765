/**
 * The work of a task, in steps of about a second (decision 223):
 *
 * 1. Every store that may name a person is read once, in portions (walk.ts). Of each row that does, `fateOf` says what
 *    becomes of it.
 * 2. An erasure commits the changes of a portion with the place that it has come to, so after a crash it goes on there.
 *    Files that rows named before are noted in the same commit, and removed behind it. Mail that the engine holds in
 *    memory is given back first; what is being sent is found by the next pass.
 * 3. An erasure that has changed something begins again, until a pass finds nothing: others write meanwhile.
 * 4. At its end the database is cleaned of deleted rows (clean.ts), and the report is written.
 *
 * An export writes a piece of its archive with the place. A dry run only counts.
 */
import type { Logger } from 'pino'
import { pause } from '../../base/flow/pause.ts'
import { formatRfc3339 } from '../../base/time/dates.ts'
import type { AcceptParts } from '../../mail/accept/accept.ts'
import type { Delivery } from '../../mail/deliver/contract.ts'
import type { AccountDirectory } from '../../people/accounts/account-directory.ts'
import {
  createTaskSteps,
  type TaskParts,
  type TaskSteps,
  type TaskTable,
} from '../../platform/jobs/stepped-task.ts'
import type { BlobStore } from '../../platform/store/blobs/blobs.ts'
import type { PersonTaskRow } from '../../platform/store/schema.ts'
import { erasedAddress } from '../../platform/store/secrets/erased-address.ts'
import type { Sealer } from '../../platform/store/secrets/sealing.ts'
import { type SqlValue, type Statement, StoreFull } from '../../platform/store/store.ts'
import { type ArchiveFile, fileName, indexPage, rowsPage, shownRow, textFile, writePiece } from './archive.ts'
import { clean } from './clean.ts'
import { type Fate, fateOf, READ_WHOLE, sendingOf } from './fates.ts'
import { mailsOf } from './mails.ts'
import { createPerson, type Person } from './person.ts'
import type { Counts, reportOf } from './report.ts'
import { archiveOf, removeBeyond } from './store.ts'
import { STORES, type StoreRule, WALKED } from './stores.ts'
import { type Row, readPortion, type Scope, type TableShape, tableShape } from './walk.ts'

interface WorkParts extends TaskParts {
  blobs: BlobStore
  /** Ends at the floor of free space. */
  spool: Pick<BlobStore, 'spool'>
  sealer: Sealer
  log: Logger
  accounts: Pick<AccountDirectory, 'childrenOf'>
  accept: AcceptParts
  delivery: Pick<Delivery, 'whileIdle'>
  report(task: PersonTaskRow, left: string): ReturnType<typeof reportOf>
}

export const ADDRESS_PURPOSE = 'person'

/** After which other tasks have their turn. */
const STEP_MS = 1_000
/** Others write and read for at least half of the time. */
const PAUSE_MS = 5
/** Rows changed in one commit: some 10 ms of SQLite's only writer. */
const ROWS_PER_COMMIT = 100
/** A piece of an archive is held in memory. */
const PIECE_BYTES = 1024 * 1024
const ARCHIVE_BYTES_MAX = 2 ** 30
/** A pass that has to wait for mail that is being sent. */
const WAIT_MS = 2_000
const PASSES_MAX = 100
const LEASE_MS = 120_000
const TRIES_MAX = 5

const TABLE: TaskTable = {
  ...{ name: 'person_tasks', key: 'id', open: "task.state IN ('queued', 'running')", turn: 'stepped_at' },
  lease: { ms: LEASE_MS, check: 'lease_token', tries: 'tries' },
}

/** How far a task is. */
export interface Position {
  /** Place in `WALKED`. */
  store: number
  /** Key of the last row looked at; null: none of the store. */
  after: SqlValue[] | null
  pass: number
  /** This pass has changed something, or found mail that is being sent. */
  isAgain: boolean
  /** Files that no row names any more, to be removed. */
  gone: string[]
  /** Tables changed so far. */
  changed: string[]
  /** Pages of the database that may still be returned to the disk; null: not begun. */
  pages: number | null
  /** Files of the archive by store, its mails, and its size. */
  files: Record<string, number>
  mails: number
  bytes: number
}

export const START: Position = {
  ...{ store: 0, after: null, pass: 1, isAgain: false, gone: [], changed: [], pages: null },
  ...{ files: {}, mails: 0, bytes: 0 },
}

/** Ends a task for a reason that whoever started it may read. */
class TaskFault extends Error {}

/** Messages of the database and of files name statements and paths, so they are for the log alone. */
function faultOf(error: unknown): string {
  if (error instanceof TaskFault) return error.message
  if (error instanceof StoreFull) return 'the disk of the service is full'
  const code = String((error as NodeJS.ErrnoException)?.code ?? (error as Error)?.name)
  return `the database or the files could not be read or written ${TRIES_MAX} times (${code.slice(0, 64)}); the log of the service says more`
}

export function createPersonSteps(parts: WorkParts): TaskSteps<PersonTaskRow> {
  const { blobs, log, clock } = parts
  const tasks = createTaskSteps<PersonTaskRow>(
    parts,
    TABLE,
    async (task, signal) => {
      if (task.tries > TRIES_MAX)
        throw new TaskFault(
          `a step was begun ${TRIES_MAX} times, and the service ended each time before it did`,
        )
      await new Step(parts, tasks, task, signal).run()
    },
    async (task, error) => {
      const isStopped = error instanceof Error && error.name === 'AbortError'
      if (isStopped || task.tries < TRIES_MAX) return false
      log.warn({ err: error, task: task.id }, `a person could not be ${task.kind}ed`)
      const failed = {
        state: 'failed',
        ...{ fault: faultOf(error), address_sealed: null, blobs_json: '[]' },
        finished_at: Math.floor(clock.now()),
      } as const
      const pieces = archiveOf(task)
      await tasks.commit(task, failed, [], 'release')
      for (const name of pieces) await blobs.remove(name)
      return true
    },
  )
  return tasks
}

class Step {
  readonly #parts: WorkParts
  readonly #tasks: TaskSteps<PersonTaskRow>
  readonly #task: PersonTaskRow
  readonly #signal: AbortSignal
  readonly #person: Person
  readonly #position: Position
  readonly #counts: Counts
  readonly #shapes = new Map<string, TableShape>()
  /** For the next piece of the archive. */
  #pending: ArchiveFile[] = []
  #pendingRows = new Map<string, Record<string, unknown>[]>()
  #pendingBytes = 0

  constructor(parts: WorkParts, tasks: TaskSteps<PersonTaskRow>, task: PersonTaskRow, signal: AbortSignal) {
    this.#parts = parts
    this.#tasks = tasks
    this.#task = task
    this.#signal = signal
    if (task.address_sealed === null) throw new TaskFault('the address of the task is gone')
    const address = parts.sealer.open(ADDRESS_PURPOSE, task.address_sealed, task.id).toString()
    this.#person = createPerson(address, (key) => erasedAddress(parts.sealer, key))
    this.#position = { ...START, ...(JSON.parse(task.position_json) as Position) }
    this.#counts = JSON.parse(task.counts_json) as Counts
  }

  async run(): Promise<void> {
    const { clock } = this.#parts
    const scope = await this.#scope()
    const endsAt = clock.monotonic() + STEP_MS
    // The process may have died between the commit and the removal.
    await this.#removeGone()
    while (this.#position.store < WALKED.length && clock.monotonic() < endsAt && !this.#signal.aborted) {
      const begunAt = clock.monotonic()
      await this.#portion(WALKED[this.#position.store] as string, scope)
      if (this.#pendingBytes > PIECE_BYTES) await this.#keepPiece('continue')
      await pause(clock, Math.max(PAUSE_MS, clock.monotonic() - begunAt), this.#signal)
    }
    if (this.#signal.aborted || this.#position.store < WALKED.length) return this.#keepPiece('release')
    if (this.#isChanging && this.#position.isAgain) return this.#nextPass()
    await this.#finish()
  }

  get #isChanging(): boolean {
    return this.#task.kind === 'erase' && this.#task.dry_run === 0
  }

  async #scope(): Promise<Scope> {
    const { account_id: id, everywhere } = this.#task
    return everywhere === 1 ? null : [id, ...(await this.#parts.accounts.childrenOf(id))]
  }

  async #shapeOf(name: string, rule: StoreRule): Promise<TableShape> {
    const shape = this.#shapes.get(name) ?? (await tableShape(this.#parts.store, name, rule))
    this.#shapes.set(name, shape)
    return shape
  }

  async #portion(name: string, scope: Scope): Promise<void> {
    const rule = STORES[name] as StoreRule
    const { store } = this.#parts
    const isForeign = scope !== null && rule.scope === null
    const shape = await this.#shapeOf(name, rule)
    const portion = isForeign
      ? { rows: [], last: null }
      : await readPortion(store, shape, rule, {
          after: this.#position.after,
          scope,
          pattern: READ_WHOLE.has(name) ? null : this.#person.pattern,
        })
    const fates: { row: Row; fate: Fate }[] = []
    const parts = { ...this.#parts, person: this.#person, isDry: !this.#isChanging, taskId: this.#task.id }
    for (const row of portion.rows) {
      const fate = await fateOf(parts, rule, shape, row)
      if (fate) fates.push({ row, fate })
    }
    if (this.#task.kind === 'export') await this.#collect(shape, fates)
    else await this.#change(name, fates)
    this.#position.after = portion.last
    if (portion.last === null) this.#position.store++
  }

  #count(name: string, kind: Fate['kind'] | 'exported'): void {
    const counts = this.#counts[name] ?? { found: 0 }
    this.#counts[name] = { ...counts, found: counts.found + 1, [kind]: (counts[kind] ?? 0) + 1 }
  }

  async #change(name: string, fates: readonly { row: Row; fate: Fate }[]): Promise<void> {
    const isChanged = ({ statements }: Fate) => this.#isChanging && statements.length > 0
    const changed = fates.filter(({ fate }) => isChanged(fate))
    // What is kept is found by each pass.
    if (this.#position.pass === 1)
      for (const { fate } of fates) if (!isChanged(fate)) this.#count(name, fate.kind)
    if (changed.length === 0) return
    this.#position.isAgain = true
    if (!this.#position.changed.includes(name)) this.#position.changed.push(name)
    for (let at = 0; at < changed.length; at += ROWS_PER_COMMIT)
      await this.#commitFates(name, changed.slice(at, at + ROWS_PER_COMMIT))
  }

  async #commitFates(name: string, fates: readonly { row: Row; fate: Fate }[]): Promise<void> {
    const { accept, delivery, store } = this.#parts
    const waiting = fates.flatMap(({ fate }) => fate.waitsFor ?? [])
    for (const { fate } of fates) if (!fate.waitsFor) this.#count(name, fate.kind)
    this.#position.gone = fates.flatMap(({ fate }) => fate.gone ?? [])
    const commit = () => this.#save(fates.flatMap(({ fate }) => fate.statements))
    // The engine gives back what it has not begun to send.
    await (waiting.length > 0 ? delivery.whileIdle(commit) : commit())
    await this.#removeGone()
    if (name === 'messages') for (const { row } of fates) accept.records.forget(String(row['id']))
    for (const { column, value } of waiting) {
      const isSending = (await store.read(sendingOf(store.kind, column, [value]))).length > 0
      if (!isSending) this.#count(name, 'erased')
    }
  }

  async #removeGone(): Promise<void> {
    for (const blob of this.#position.gone) await this.#parts.blobs.remove(blob)
    this.#position.gone = []
  }

  async #collect(shape: TableShape, fates: readonly { row: Row; fate: Fate }[]): Promise<void> {
    for (const { row, fate } of fates) {
      this.#count(shape.name, 'exported')
      if (this.#task.dry_run === 1) continue
      const mails = await mailsOf({ ...this.#parts, person: this.#person }, shape.name, row)
      const isBetweenOthers = shape.name === 'messages' && mails.length === 0 && !fate.isOwn
      const shown = isBetweenOthers
        ? { id: row['id'], domain_name: row['domain_name'], created_at: row['created_at'] }
        : shownRow(row, this.#person.isIn)
      const rows = this.#pendingRows.get(shape.name) ?? []
      this.#pendingRows.set(shape.name, rows)
      rows.push(shown)
      this.#pending.push(...mails)
      this.#position.mails += mails.length
      this.#pendingBytes +=
        JSON.stringify(shown).length + mails.reduce((sum, mail) => sum + mail.sizeBytes, 0)
    }
  }

  /** Writes what was collected, with the place that it reaches to. */
  async #keepPiece(
    then: 'continue' | 'release' | 'last',
    change: Partial<PersonTaskRow> = {},
  ): Promise<void> {
    const isLast = then === 'last'
    const after = isLast ? 'release' : then
    const files = [...this.#pending]
    for (const [name, rows] of this.#pendingRows) {
      const no = (this.#position.files[name] ?? 0) + 1
      this.#position.files[name] = no
      files.push(textFile(fileName(name, no, 'json'), `${JSON.stringify(rows, null, 1)}\n`))
      files.push(textFile(fileName(name, no, 'html'), rowsPage(`${name}, page ${no}`, rows)))
    }
    this.#pending = []
    this.#pendingRows = new Map()
    this.#pendingBytes = 0
    if (isLast) files.push(textFile('index.html', this.#index()))
    const isArchived = this.#task.kind === 'export' && this.#task.dry_run === 0
    if (!isArchived || files.length === 0) return this.#save([], change, after)
    const { blobs, spool, clock } = this.#parts
    const { chunk } = await writePiece(spool, files, clock.now(), isLast)
    const blob = await blobs.keep(chunk)
    this.#position.bytes += chunk.sizeBytes
    try {
      if (this.#position.bytes > ARCHIVE_BYTES_MAX) throw new TaskFault('the archive is larger than 1 GB')
      const blobs_json = JSON.stringify([...archiveOf(this.#task), blob])
      await this.#save([], { ...change, blobs_json }, after)
    } catch (error) {
      await blobs.remove(blob)
      throw error
    }
  }

  #index(): string {
    const entries = Object.entries(this.#counts).map(([store, { found }]) => ({
      ...{ store, found, about: STORES[store]?.why ?? '' },
      files: this.#position.files[store] ?? 0,
    }))
    const made = formatRfc3339(new Date(this.#parts.clock.now()))
    return indexPage(this.#person.key, made, entries, this.#position.mails)
  }

  async #nextPass(): Promise<void> {
    const { clock } = this.#parts
    if (this.#position.pass === PASSES_MAX)
      throw new TaskFault(`mail to the person is still being sent after ${PASSES_MAX} passes`)
    if (this.#position.pass > 1) await pause(clock, WAIT_MS, this.#signal)
    Object.assign(this.#position, { store: 0, after: null, pass: this.#position.pass + 1, isAgain: false })
    await this.#save([], {}, 'release')
  }

  async #finish(): Promise<void> {
    const { store, clock } = this.#parts
    let left = ''
    if (this.#isChanging) {
      const { changed, pages } = this.#position
      const cleaned = await clean(store, clock, { tables: changed, pages, forMs: STEP_MS }, this.#signal)
      this.#position.pages = cleaned.pages
      if (!cleaned.isDone) return this.#save([], {}, 'release')
      left = cleaned.left
    }
    const finished = { state: 'done', finished_at: Math.floor(clock.now()), address_sealed: null } as const
    const done = { ...this.#task, ...finished, counts_json: JSON.stringify(this.#counts) }
    const report_json = JSON.stringify(await this.#parts.report(done, left))
    await this.#keepPiece('last', { ...finished, report_json })
    await removeBeyond(this.#parts, this.#task.account_id, this.#signal)
  }

  #save(
    rows: readonly Statement[],
    change: Partial<PersonTaskRow> = {},
    after: 'continue' | 'release' = 'continue',
  ): Promise<void> {
    const where = {
      state: 'running',
      position_json: JSON.stringify(this.#position),
      counts_json: JSON.stringify(this.#counts),
    } as const
    return this.#tasks.commit(this.#task, { ...where, ...change }, rows, after)
  }
}
