/**
 * Copies a whole installation from one database to another, and compares both (decision 116).
 *
 * 1. Nobody uses the source, both have this program's schema, and the target is empty or holds the beginning of this copy.
 * 2. The target gets its tables and a mark. Rows are copied in batches in the order of keys, each in one transaction with
 *    the mark, so a copy that was cut off continues after the last batch.
 * 3. The target makes what follows from the rows: indexes of events, numbers of new rows.
 * 4. Both are read again and compared. Only if they are equal the mark is removed, and a service may use the copy.
 *
 * The source is only read.
 */
import { type BlobPlace, type BlobResult, compareBlobs, copyBlobs } from './blobs.ts'
import { planOf, type TablePlan } from './catalog.ts'
import { type Comparison, compareTable, compareTags, expectedRow, type TableResult } from './compare.ts'
import { createSourceReader } from './event-order.ts'
import { identify, type Mark, newestSchema, removeMark, stateOf, writeMark } from './mark.ts'
import { batches, condition, countRows } from './reading.ts'
import type { Side, Source, Target, Writer } from './side.ts'
import { MigrationError, packed, unpacked } from './values.ts'

export interface Migration {
  source: Source
  target: Target
  /** `to` null: files stay where they are, and the copy uses them there. */
  blobs: { from: BlobPlace; to: BlobPlace | null }
  /** Runs when both are equal, before a service may use the copy. */
  beforeUse?(): Promise<void>
  /** Runs when the copy is admitted, before the first row. */
  beforeCopy?(): Promise<void>
  /** Writes with the end of the copy, in one transaction. */
  withEnd?(writer: Writer): Promise<void>
}

/** `compare` goes over the rows a second time. */
export interface Progress {
  step: 'copy' | 'files' | 'finish' | 'compare' | 'compare-files'
  /** The table, or what is being done. */
  what: string
  done: number
  /** 0: unknown. */
  total: number
}

export type OnProgress = (progress: Progress) => void

export interface MigrationResult {
  ok: boolean
  schema: number
  /** Rows that this call copied; fewer than there are after an interruption. */
  copiedRows: number
  copySeconds: number
  compareSeconds: number
  tables: TableResult[]
  /** Tags of events, which the target makes from the rows. */
  tags: TableResult
  files: BlobResult
  /** One sentence each. */
  differences: string[]
  notes: string[]
}

export interface Preview {
  schema: number
  state: 'empty' | 'begun'
  tables: { name: string; rows: number }[]
  files: BlobResult
}

/** Copies and compares. @throws MigrationError, StoreUnavailable, StoreFull, UnknownSchema */
export async function copyAll(request: Migration, onProgress: OnProgress): Promise<MigrationResult> {
  const { source, target, blobs } = request
  const { mark } = await admit(request)
  await target.prepare()
  await request.beforeCopy?.()
  const plan = await planFor(request)
  const startedAt = performance.now()
  const copiedRows = await copyTables(request, plan, mark, onProgress)
  const copySeconds = (performance.now() - startedAt) / 1000
  if (blobs.to)
    await copyBlobs(source, blobs.from, blobs.to, ({ files }) =>
      onProgress({ step: 'files', what: 'files', done: files, total: 0 }),
    )
  await target.finish(plan, (what) => onProgress({ step: 'finish', what, done: 0, total: 0 }))
  const compared = await compare(request, plan, onProgress)
  if (compared.ok) {
    await request.beforeUse?.()
    await target.write(async (writer) => {
      await removeMark(writer)
      await request.withEnd?.(writer)
    })
  }
  return { ...compared, copiedRows, copySeconds }
}

/** Compares what is there. @throws MigrationError if somebody uses one of them, StoreUnavailable */
export async function compareAll(request: Migration, onProgress: OnProgress): Promise<MigrationResult> {
  const { source, target } = request
  await identify(source)
  await refuseUsed(source, target)
  const state = await stateOf(target)
  if (state.kind === 'empty')
    throw new MigrationError(`There is nothing to compare: ${target.name} is empty.`)
  const result = await compare(request, await planFor(request), onProgress)
  if (state.kind === 'filled') return result
  const differences = [
    ...result.differences,
    `The copy in ${target.name} did not end: run the command without --check.`,
  ]
  return { ...result, ok: false, differences }
}

/** What a copy would do; writes nothing. @throws as `copyAll` */
export async function preview(request: Migration): Promise<Preview> {
  const { source, blobs } = request
  const { mark } = await admit(request)
  const catalog = await source.catalog()
  const plan = planOf(catalog ?? new Map(), catalog ?? new Map())
  const tables: Preview['tables'] = []
  for (const table of plan) tables.push({ name: table.name, rows: await countRows(source, table) })
  const { result } = await compareBlobs(source, blobs.from, null, () => {})
  return { schema: newestSchema(), state: mark.done.length > 0 ? 'begun' : 'empty', tables, files: result }
}

/** Whether the copy may be made, and how far it is. */
async function admit({ source, target }: Migration): Promise<{ mark: Mark }> {
  const identity = await identify(source)
  await refuseUsed(source, target)
  const state = await stateOf(target)
  if (state.kind === 'filled')
    throw new MigrationError(
      `Cannot copy to ${target.name}: it is not empty, table ${state.table} has rows. Give the copy an empty database or folder.`,
    )
  if (state.kind === 'empty')
    return { mark: { source: identity, schema: newestSchema(), done: [], table: null, place: null } }
  if (state.mark.source !== identity || state.mark.schema !== newestSchema())
    throw new MigrationError(
      `Cannot continue the copy in ${target.name}: it was begun ${state.mark.source === identity ? `with schema version ${state.mark.schema}` : 'from another installation'}. Empty it first.`,
    )
  return { mark: state.mark }
}

async function refuseUsed(...sides: Side[]): Promise<void> {
  for (const side of sides) {
    const reason = await side.usedBy()
    if (reason !== null) throw new MigrationError(reason)
  }
}

async function planFor({ source, target }: Migration): Promise<TablePlan[]> {
  const [from, to] = [await source.catalog(), await target.catalog()]
  return planOf(from ?? new Map(), to ?? new Map())
}

/** Resolves to the number of copied rows. */
async function copyTables(
  { source, target }: Migration,
  plan: readonly TablePlan[],
  begun: Mark,
  onProgress: OnProgress,
): Promise<number> {
  const mark = { ...begun, done: [...begun.done] }
  if (mark.done.length === 0 && mark.table === null)
    await target.write(async (writer) => {
      // Migrations have left rows in some.
      for (const table of plan.toReversed())
        await writer.run(`DELETE FROM ${table.name} WHERE ${condition(table)}`)
      await writeMark(writer, mark)
    })
  const { total, of } = await countAll(source, plan)
  let done = 0
  let copied = 0
  for (const table of plan) {
    if (mark.done.includes(table.name)) {
      done += of.get(table.name) ?? 0
      continue
    }
    const isResumed = mark.table === table.name && mark.place !== null
    if (isResumed) done += await countRows(target, table)
    const place = isResumed ? unpacked(mark.place ?? []) : null
    for await (const batch of batches(await createSourceReader(source, table), place)) {
      const rows = batch.rows.map((row) => expectedRow(table, row, target.kind))
      mark.table = batch.place ? table.name : null
      mark.place = batch.place ? packed(batch.place) : null
      if (!batch.place) mark.done.push(table.name)
      await target.write(async (writer) => {
        if (rows.length > 0) await writer.insert(table, rows)
        await writeMark(writer, mark)
      })
      done += rows.length
      copied += rows.length
      onProgress({ step: 'copy', what: table.name, done, total })
    }
  }
  return copied
}

async function countAll(side: Side, plan: readonly TablePlan[]) {
  const of = new Map<string, number>()
  for (const table of plan) of.set(table.name, await countRows(side, table))
  return { of, total: [...of.values()].reduce((sum, rows) => sum + rows, 0) }
}

async function compare(
  { source, target, blobs }: Migration,
  plan: readonly TablePlan[],
  onProgress: OnProgress,
): Promise<MigrationResult> {
  const startedAt = performance.now()
  const { total } = await countAll(source, plan)
  let done = 0
  const comparisons: Comparison[] = []
  for (const table of plan)
    comparisons.push(
      await compareTable(source, target, table, (rows) => {
        done += rows
        onProgress({ step: 'compare', what: table.name, done, total })
      }),
    )
  onProgress({ step: 'compare', what: 'tags of events', done, total })
  const tags = await compareTags(source, target)
  const files = await compareBlobs(source, blobs.from, blobs.to, (result) =>
    onProgress({ step: 'compare-files', what: 'files', done: result.files, total: 0 }),
  )
  const differences = [...comparisons, tags, files].flatMap((one) => one.differences)
  for (const side of [source, target]) {
    const reason = await side.usedBy()
    if (reason !== null) differences.push(`Meanwhile ${reason}`)
  }
  return {
    ok: differences.length === 0,
    schema: newestSchema(),
    copiedRows: 0,
    copySeconds: 0,
    compareSeconds: (performance.now() - startedAt) / 1000,
    tables: comparisons.map(({ result }) => result),
    tags: tags.result,
    files: files.result,
    differences,
    notes: comparisons.flatMap(({ notes }) => notes),
  }
}
