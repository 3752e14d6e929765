/**
 * The work of a task, in steps of about a second (decision 223):
 *
 * 1. Every store that may name a person is read once, in portions (walk.ts). Of each row that does, `fateOf` says what
 *    becomes of it. Between portions it pauses for as long as others are busy (yielding.ts).
 * 2. An erasure commits the changes of some portions with the place that it has come to, so after a crash it goes on there.
 *    Files that rows named before are noted in the same commit, and removed behind it. Mail that the engine holds in
 *    memory is given back first; what is being sent is found by the next pass.
 * 3. An erasure that has changed something begins again, until a pass finds nothing: others write meanwhile. Of tables that
 *    only grow a further pass reads what is new.
 * 4. At its end the database is cleaned of deleted rows (clean.ts), and the report is written.
 *
 * An export writes a piece of its archive with the place. A dry run only counts.
 */
import { pause } from '../../base/flow/pause.ts'
import { createYielding, type Yielding } from '../../base/flow/yielding.ts'
import { formatRfc3339 } from '../../base/time/dates.ts'
import type { Core } from '../../core.ts'
import type { AcceptParts } from '../../mail/accept/accept.ts'
import type { Delivery } from '../../mail/deliver/contract.ts'
import type { AccountDirectory } from '../../people/accounts/account-directory.ts'
import { commitPiece, createPieceSteps } from '../../platform/jobs/piece-steps.ts'
import type { TaskParts, TaskSteps, TaskTable } from '../../platform/jobs/stepped-task.ts'
import type { BlobStore } from '../../platform/store/blobs/blobs.ts'
import type { PersonTaskRow } from '../../platform/store/schema.ts'
import { erasedAddress } from '../../platform/store/secrets/erased-address.ts'
import { type SqlValue, type Statement, type StatementResult, StoreFull } from '../../platform/store/store.ts'
import { type ArchiveFile, fileName, indexPage, rowsPage, shownRow, textFile, writePiece } from './archive.ts'
import { clean } from './clean.ts'
import { isMissing } from './content.ts'
import { type Fate, fateOf, READ_WHOLE, sendingOf } from './fates.ts'
import { mailsOf } from './mails.ts'
import { createPerson, type Person } from './person.ts'
import type { RemovedFiles } from './removed-files.ts'
import type { Counts, reportOf } from './report.ts'
import { removeBeyond } from './store.ts'
import { STORES, type StoreRule, WALKED } from './stores.ts'
import { keyBehind, type Row, readPortion, rowOf, type Scope, type TableShape, tableShape } from './walk.ts'

interface WorkParts extends TaskParts, Pick<Core, 'blobs' | 'sealer' | 'log'> {
  /** Ends at the floor of free space. */
  spool: Pick<BlobStore, 'spool'>
  accounts: Pick<AccountDirectory, 'childrenOf'>
  accept: AcceptParts
  delivery: Pick<Delivery, 'whileIdle'>
  removed: Pick<RemovedFiles, 'remove'>
  report(task: PersonTaskRow, left: readonly string[]): ReturnType<typeof reportOf>
}

export const ADDRESS_PURPOSE = 'person'

/** After which other tasks have their turn. */
const STEP_MS = 1_000
/** Rows changed in one commit, and their bytes: some 10 ms of SQLite's only writer. */
const ROWS_PER_COMMIT = 100
const BYTES_PER_COMMIT = 1024 * 1024
/** A piece of an archive is held in memory. */
const PIECE_BYTES = 1024 * 1024
const ARCHIVE_BYTES_MAX = 2 ** 30
/** A pass that has to wait for mail that is being sent. */
const WAIT_MS = 2_000
const PASSES_MAX = 100
/** Names of missing files that are kept with the place. */
const MISSING_MAX = 100
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
  /** Files before and after a change: those that their row does not name are removed. It may not have been changed. */
  gone: Gone[]
  /** Files of mail between others that this node does not have, up to a limit: nobody has looked into them. */
  missing: string[]
  /** Tables changed so far. */
  changed: string[]
  /** Keys of tables that only grow, where this pass begins, and where the next one will. */
  grown: Record<string, SqlValue[]>
  growing: Record<string, SqlValue[]>
  /** Pages of the database that may still be returned to the disk; null: not begun. */
  pages: number | null
  /** Files of the archive by store, its mails, and its size. */
  files: Record<string, number>
  mails: number
  bytes: number
}

export const START: Position = {
  ...{
    store: 0,
    after: null,
    pass: 1,
    isAgain: false,
    gone: [],
    missing: [],
    changed: [],
    grown: {},
    growing: {},
  },
  ...{ pages: null, files: {}, mails: 0, bytes: 0 },
}

interface Gone {
  table: string
  key: SqlValue[]
  blobs: readonly string[]
}

interface Judged {
  row: Row
  fate: Fate
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
  const yielding = createYielding(parts.clock)
  const tasks: TaskSteps<PersonTaskRow> = createPieceSteps<PersonTaskRow>(parts, {
    ...{ table: TABLE, triesMax: TRIES_MAX },
    step: (task, signal) => new Step({ ...parts, yielding }, tasks, task, signal).run(),
    isFinal: (error) => error instanceof TaskFault,
    failed: (error) => ({
      ...{ state: 'failed', fault: faultOf(error), address_sealed: null },
      finished_at: Math.floor(parts.clock.now()),
    }),
  })
  return tasks
}

class Step {
  readonly #parts: WorkParts & { yielding: Yielding }
  readonly #tasks: TaskSteps<PersonTaskRow>
  readonly #task: PersonTaskRow
  readonly #signal: AbortSignal
  readonly #person: Person
  readonly #position: Position
  readonly #counts: Counts
  /** Notes which blobs are not there. */
  readonly #blobs: BlobStore
  readonly #shapes = new Map<string, TableShape>()
  /** Rows of one table for the next commit: what changes, what is counted only, and where they begin. */
  #judged: Judged[] = []
  #unchanged: Fate['kind'][] = []
  #from: Pick<Position, 'store' | 'after'>
  /** For the next piece of the archive. */
  #pending: ArchiveFile[] = []
  #pendingRows = new Map<string, Record<string, unknown>[]>()
  #pendingBytes = 0

  constructor(
    parts: WorkParts & { yielding: Yielding },
    tasks: TaskSteps<PersonTaskRow>,
    task: PersonTaskRow,
    signal: AbortSignal,
  ) {
    this.#parts = parts
    this.#tasks = tasks
    this.#task = task
    this.#signal = signal
    if (task.address_sealed === null) throw new TaskFault('the address of the task is gone')
    const address = parts.sealer.open(ADDRESS_PURPOSE, task.address_sealed, task.id).toString()
    this.#person = createPerson(address, (key) => erasedAddress(parts.sealer, key))
    this.#position = { ...START, ...(JSON.parse(task.position_json) as Position) }
    this.#counts = JSON.parse(task.counts_json) as Counts
    this.#from = this.#place()
    this.#blobs = {
      ...parts.blobs,
      read: async (name) => {
        try {
          return await parts.blobs.read(name)
        } catch (error) {
          if (isMissing(error)) this.#noteMissing(name)
          throw error
        }
      },
    }
  }

  async run(): Promise<void> {
    const { clock, yielding } = this.#parts
    const scope = await this.#scope()
    const endsAt = clock.monotonic() + STEP_MS
    // The process may have died between the commit and the removal.
    await this.#removeGone()
    while (this.#position.store < WALKED.length && clock.monotonic() < endsAt && !this.#signal.aborted) {
      const begunAt = clock.monotonic()
      const { store } = this.#position
      await this.#portion(WALKED[store] as string, scope)
      if (this.#isCommitFull || this.#position.store > store) await this.#commitJudged()
      if (this.#pendingBytes > PIECE_BYTES) await this.#keepPiece('continue')
      await yielding.after(clock.monotonic() - begunAt, this.#signal)
    }
    await this.#commitJudged()
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
          after: this.#position.after ?? (await this.#beginning(shape, rule)),
          scope,
          pattern: READ_WHOLE.has(name) ? null : this.#person.pattern,
        })
    const fates: Judged[] = []
    const isDry = !this.#isChanging
    const parts = { ...this.#parts, blobs: this.#blobs, person: this.#person, isDry, taskId: this.#task.id }
    for (const row of portion.rows) {
      const fate = await fateOf(parts, rule, shape, row)
      if (fate) fates.push({ row, fate })
    }
    if (this.#task.kind === 'export') await this.#collect(shape, fates)
    else this.#keepJudged(fates)
    this.#position.after = portion.last
    if (portion.last === null) this.#position.store++
  }

  /** Where a pass begins to read a table that only grows: the one before has seen all in front of that. */
  async #beginning(shape: TableShape, rule: StoreRule): Promise<SqlValue[] | null> {
    if (!rule.grows || !this.#isChanging) return null
    const { grown, growing } = this.#position
    const next = await keyBehind(this.#parts.store, shape)
    if (next) growing[shape.name] = next
    return grown[shape.name] ?? null
  }

  #place = () => ({ store: this.#position.store, after: this.#position.after })

  #count(name: string, kind: Fate['kind'] | 'exported'): void {
    const counts = this.#counts[name] ?? { found: 0 }
    this.#counts[name] = { ...counts, found: counts.found + 1, [kind]: (counts[kind] ?? 0) + 1 }
  }

  #keepJudged(judged: readonly Judged[]): void {
    for (const { row, fate } of judged) {
      if (this.#isChanging && fate.statements.length > 0) this.#judged.push({ row, fate })
      // What is kept is found by each pass.
      else if (this.#position.pass === 1) this.#unchanged.push(fate.kind)
    }
  }

  get #isCommitFull(): boolean {
    const isLarge = () => this.#judged.reduce((sum, { fate }) => sum + bytesOf(fate), 0) > BYTES_PER_COMMIT
    return this.#judged.length >= ROWS_PER_COMMIT || isLarge()
  }

  /** Commits what was judged; only the last commit moves the place, so a crash repeats no count. */
  async #commitJudged(): Promise<void> {
    const to = this.#place()
    const name = WALKED[this.#from.store] as string
    const judged = this.#judged
    if (judged.length > 0) {
      this.#position.isAgain = true
      if (!this.#position.changed.includes(name)) this.#position.changed.push(name)
    }
    for (let at = 0; at < judged.length; at += ROWS_PER_COMMIT) {
      const isLast = at + ROWS_PER_COMMIT >= judged.length
      Object.assign(this.#position, isLast ? to : this.#from)
      if (isLast) this.#countUnchanged(name)
      await this.#commitFates(name, judged.slice(at, at + ROWS_PER_COMMIT))
    }
    this.#countUnchanged(name)
    this.#judged = []
    this.#from = to
  }

  #countUnchanged(name: string): void {
    for (const kind of this.#unchanged) this.#count(name, kind)
    this.#unchanged = []
  }

  async #commitFates(name: string, judged: readonly Judged[]): Promise<void> {
    const { accept, delivery, store } = this.#parts
    const { key } = await this.#shapeOf(name, STORES[name] as StoreRule)
    const waiting = judged.flatMap(({ fate }) => fate.waitsFor ?? [])
    for (const { fate } of judged) if (!fate.waitsFor) this.#count(name, fate.kind)
    this.#position.gone = judged.flatMap(({ row, fate: { gone } }) =>
      gone?.length ? [{ table: name, key: key.map((column) => row[column] as SqlValue), blobs: gone }] : [],
    )
    // What is being sent, or was changed by others, is for the next pass.
    if (waiting.length > 0) delete this.#position.growing[name]
    const commit = () => this.#save(judged.flatMap(({ fate }) => fate.statements))
    // The engine gives back what it has not begun to send.
    const results = await (waiting.length > 0 ? delivery.whileIdle(commit) : commit())
    if (isMissed(judged, results)) delete this.#position.growing[name]
    await this.#removeGone()
    if (name === 'messages') for (const { row } of judged) accept.records.forget(String(row['id']))
    for (const { column, value } of waiting) {
      const isSending = (await store.read(sendingOf(store.kind, column, [value]))).length > 0
      if (!isSending) this.#count(name, 'erased')
    }
  }

  async #removeGone(): Promise<void> {
    const { store, removed } = this.#parts
    for (const { table, key, blobs: names } of this.#position.gone) {
      const shape = await this.#shapeOf(table, STORES[table] as StoreRule)
      const [row] = await store.read(rowOf(shape, key))
      const texts = Object.values(row ?? {}).filter((value) => typeof value === 'string')
      for (const name of names) if (!texts.some((text) => text.includes(name))) await removed.remove(name)
    }
    this.#position.gone = []
  }

  #noteMissing(name: string): void {
    const { missing } = this.#position
    if (missing.length < MISSING_MAX && !missing.includes(name)) missing.push(name)
  }

  async #collect(shape: TableShape, fates: readonly Judged[]): Promise<void> {
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
    if (!isArchived || files.length === 0) return void (await this.#save([], change, after))
    const { blobs, spool, clock } = this.#parts
    const piece = await writePiece(spool, files, clock.now(), isLast)
    this.#position.bytes += piece.chunk.sizeBytes
    if (this.#position.bytes > ARCHIVE_BYTES_MAX) {
      await piece.discard()
      throw new TaskFault('the archive is larger than 1 GB')
    }
    const parts = { blobs, tasks: this.#tasks }
    await commitPiece(parts, this.#task, piece, { ...this.#state(), ...change }, after)
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
    const { pass, growing } = this.#position
    const next = { store: 0, after: null, pass: pass + 1, isAgain: false, grown: growing, growing: {} }
    Object.assign(this.#position, next)
    await this.#save([], {}, 'release')
  }

  async #finish(): Promise<void> {
    const { store, clock } = this.#parts
    let left = ''
    if (this.#isChanging) {
      const { changed, pages } = this.#position
      const cleaned = await clean(store, clock, { tables: changed, pages, forMs: STEP_MS }, this.#signal)
      this.#position.pages = cleaned.pages
      if (!cleaned.isDone) return void (await this.#save([], {}, 'release'))
      left = cleaned.left
    }
    const { missing } = this.#position
    const elsewhere = missing.length === 0 || store.kind === 'sqlite' ? '' : missingText(missing.length)
    const finished = { state: 'done', finished_at: Math.floor(clock.now()), address_sealed: null } as const
    const done = { ...this.#task, ...finished, counts_json: JSON.stringify(this.#counts) }
    const report_json = JSON.stringify(await this.#parts.report(done, [left, elsewhere]))
    await this.#keepPiece('last', { ...finished, report_json })
    await removeBeyond(this.#parts, this.#task.account_id, this.#signal)
  }

  /** Results of `rows`. */
  #save(
    rows: readonly Statement[],
    change: Partial<PersonTaskRow> = {},
    after: 'continue' | 'release' = 'continue',
  ): Promise<StatementResult[]> {
    return this.#tasks.commit(this.#task, { ...this.#state(), ...change }, rows, after)
  }

  #state = () =>
    ({
      state: 'running',
      position_json: JSON.stringify(this.#position),
      counts_json: JSON.stringify(this.#counts),
    }) as const
}

const missingText = (count: number) =>
  `Files of mail to others that could not be looked into: ${count === MISSING_MAX ? `${count} or more` : count}. Without a shared blob store each is on the disk of one node.`

/** What it writes. */
const bytesOf = ({ statements }: Fate): number =>
  statements.reduce(
    (sum, { values }) =>
      sum +
      values.reduce<number>(
        (bytes, value) =>
          bytes + (typeof value === 'string' || value instanceof Uint8Array ? value.length : 8),
        0,
      ),
    0,
  )

/** Whether others have changed a row meanwhile that names the person, and may still do. */
function isMissed(judged: readonly Judged[], results: readonly StatementResult[]): boolean {
  const left = [...results]
  const missed = judged.map(({ fate }) => {
    const own = left.splice(0, fate.statements.length)
    return !fate.isOwn && own.every(({ affected }) => affected === 0)
  })
  return missed.includes(true)
}
