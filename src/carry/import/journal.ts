/**
 * What a run has done, in a folder of its own, so that one that was killed continues where it was: `journal.jsonl` has a line
 * for each page that was taken, `report.jsonl` one for each entry that was not, and `records.zone` the DNS records of new
 * domains. A page that was taken but is not in the journal is taken again, which makes nothing twice.
 *
 * The folder may lie where others can write, such as `/tmp`: one of another user is refused, and no link in it is followed.
 */
import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { jsonObject } from '../../base/values.ts'
import type { Kind } from './entry.ts'

/** Sums of one kind. */
export interface Counts {
  made: number
  existing: number
  /** Made, but not as it was at its source. */
  changed: number
  refused: number
}

export type Totals = Partial<Record<Kind, Counts>>

/** A line of the report. */
export interface Remark {
  kind: Kind
  name: string
  /** File and row, or the call of the source. */
  place: string
  outcome: 'refused' | 'changed'
  reason: string
}

/** The folder is of another run, or of another user; the message says so. */
export class OtherJournal extends Error {}

export type Journal = ReturnType<typeof openJournal>

interface Line {
  section?: string
  /** Null: the section is done. */
  cursor?: string | null
  totals?: Totals
  /** Sizes of the other files, for their shortening to what belongs to taken pages. */
  reportBytes?: number
  zoneBytes?: number
  finished?: true
}

/**
 * @param run says what is read and where it goes. A folder with an unfinished journal of another run is refused.
 * @throws OtherJournal also for a folder that belongs to another user, and for a link or no plain file in place of one of its files
 */
export function openJournal(folder: string, run: string) {
  mkdirSync(folder, { recursive: true })
  refuseForeign(folder)
  const file = join(folder, 'journal.jsonl')
  const reportFile = join(folder, 'report.jsonl')
  const zoneFile = join(folder, 'records.zone')
  const cursors = new Map<string, string | null>()
  let totals: Totals = {}
  let sizes = { reportBytes: 0, zoneBytes: 0 }
  const { first, lines } = readLines(file)
  /** True if it continues an earlier run. */
  const isResumed = lines.length > 1 && !lines.some(({ finished }) => finished)
  if (isResumed) {
    if (first !== run)
      throw new OtherJournal(
        `${file} is of another import, which did not finish; name another folder with --state, or remove it`,
      )
    for (const line of lines) {
      if (line.section !== undefined && line.cursor !== undefined) cursors.set(line.section, line.cursor)
      totals = line.totals ?? totals
      sizes = { reportBytes: line.reportBytes ?? 0, zoneBytes: line.zoneBytes ?? 0 }
    }
    // The last line may be half written: a line of its own follows.
    append(file, '\n')
  } else {
    shorten(file, 0)
    append(file, `${JSON.stringify({ run })}\n`)
  }
  shorten(reportFile, sizes.reportBytes)
  shorten(zoneFile, sizes.zoneBytes)

  const write = (line: Line) => {
    sizes = { reportBytes: sizeOf(reportFile), zoneBytes: sizeOf(zoneFile) }
    append(file, `${JSON.stringify({ ...line, totals, ...sizes })}\n`)
  }
  return {
    /** Null: not begun. */
    cursorOf: (section: string): string | null => cursors.get(section) ?? null,
    isDone: (section: string) => cursors.get(section) === null,
    totals,
    isResumed,
    reportFile,
    zoneFile,
    /** A page was taken. `totals` are those of the whole run. */
    taken(section: string, cursor: string, remarks: readonly Remark[], zones: readonly string[]): void {
      if (remarks.length > 0) append(reportFile, remarks.map((one) => `${JSON.stringify(one)}\n`).join(''))
      if (zones.length > 0) append(zoneFile, zones.map((zone) => `${zone.trimEnd()}\n\n`).join(''))
      write({ section, cursor })
    },
    sectionDone: (section: string) => write({ section, cursor: null }),
    /** Everything was taken: the next run begins anew. */
    finish: () => write({ finished: true }),
  }
}

/** The folder, and a link in its place, belong to the user of this process. @throws OtherJournal */
function refuseForeign(folder: string): void {
  const own = process.geteuid?.()
  const foreign = [lstatSync(folder), statSync(folder)].find(({ uid }) => own !== undefined && uid !== own)
  if (foreign !== undefined)
    throw new OtherJournal(
      `${folder} belongs to user ${foreign.uid}, who could change what the import writes; name a folder of your own with --state`,
    )
}

/** A line that is no JSON is the end of a run that was killed. */
function readLines(file: string): { first: string | null; lines: Line[] } {
  const text = onFile(file, (handle) => readFileSync(handle, 'utf8'))
  const values = text
    .split('\n')
    .map(jsonObject)
    .filter((value) => value !== null)
  const run = values[0]?.['run']
  return { first: typeof run === 'string' ? run : null, lines: values as Line[] }
}

const sizeOf = (file: string) => onFile(file, (handle) => fstatSync(handle).size)

const append = (file: string, text: string) => onFile(file, (handle) => writeFileSync(handle, text))

const shorten = (file: string, bytes: number) =>
  onFile(file, (handle) => ftruncateSync(handle, Math.min(bytes, fstatSync(handle).size)))

/** Made where there is none. Without O_NONBLOCK a named pipe would keep the command waiting. */
const FLAGS =
  constants.O_RDWR | constants.O_CREAT | constants.O_APPEND | constants.O_NOFOLLOW | constants.O_NONBLOCK

/** @throws OtherJournal for anything but a plain file with one name */
function onFile<Result>(file: string, use: (handle: number) => Result): Result {
  let handle: number
  try {
    handle = openSync(file, FLAGS)
  } catch (error) {
    // What Linux and other systems say of a link.
    if (['ELOOP', 'EMLINK', 'EISDIR', 'ENXIO'].includes((error as NodeJS.ErrnoException).code ?? ''))
      throw notOurs(file)
    throw error
  }
  try {
    const stats = fstatSync(handle)
    if (!stats.isFile() || stats.nlink !== 1) throw notOurs(file)
    return use(handle)
  } finally {
    closeSync(handle)
  }
}

const notOurs = (file: string) =>
  new OtherJournal(
    `${file} is a link or no file, and may be somebody else's; remove it, or name another folder with --state`,
  )
