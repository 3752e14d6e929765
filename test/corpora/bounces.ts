/**
 * Real bounces of many servers and providers, one a file: the collection "set-of-emails" of the project Sisimai, and what
 * we decided about each file in `bounces.tsv`.
 *
 * 1. A file is brought to the line ends of SMTP, read, classified and judged by the functions of the service.
 * 2. The result is compared with the table, the table with the reason that the collection's authors give.
 *
 * A mail may be suppressed against their reason, or kept against it, where the table says why.
 */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { DsnRecipient } from '../../src/protocols/reports/dsn/recipient.ts'
import { type Classification, classify } from '../../src/receiving/bounces/classify.ts'
import { ownGroup, readReturned, reportedFailure } from '../../src/receiving/bounces/reports.ts'
import { loadRules, type RuleSet } from '../../src/receiving/bounces/rules.ts'
import { readReportMail } from '../../src/receiving/sessions/read-report-mail.ts'

/** Whether a server gives up (`failed`), or only reports; `feedback` is not a bounce, `none` no report at all. */
type Read = 'failed' | 'delayed' | 'delivered' | 'feedback' | 'none'

interface Row {
  file: string
  /** First 16 hexadecimal digits of the SHA-256. */
  digest: string
  /** The reason given by the collection's authors, in a word of ours (REASON_WORDS). */
  reason: string
  read: Read
  category: string
  suppressed: boolean
  /** Why we differ from the authors; '' where we do not. */
  why: string
}

interface Result extends Omit<Row, 'reason' | 'why'> {
  failure: DsnRecipient | null
  found: Classification | null
  /** The same text, refused at once, puts the address on the list. */
  suppressedAtOnce: boolean
}

const TABLE = join(import.meta.dirname, 'bounces.tsv')
const HEAD = '# file\tdigest\treason of the authors\tread as\tcategory\tsuppressed\twhy we differ'
/** Reasons for which an address may be suppressed: nobody gets mail there any more. */
const GONE = new Set(['gone', 'no-host', 'moved'])
const RECOGNISED_MIN = 0.97
const GONE_SUPPRESSED_MIN = 0.9
const SENDER = 'shop@mg.sender.example'

/** @returns whether every file is as in the table, and the table meets the goals */
export async function run(folder: string, print: (line: string) => void): Promise<boolean> {
  const rules = loadRules(null)
  const files = filesOf(folder)
  const results: Result[] = []
  for (const file of files) results.push(await judged(rules, folder, file))
  if (process.env['CORPORA_UPDATE'] === '1') update(results)
  const rows = new Map(readTable().map((row) => [row.file, row]))
  const faults = results.flatMap((result) => faultsOf(result, rows.get(result.file)))
  const missing = [...rows.keys()].filter((file) => !files.includes(file))
  faults.push(...missing.map((file) => `${file}: is in the table, but not in the folder`))
  const known = results.flatMap((result) => {
    const row = rows.get(result.file)
    return row ? [{ ...result, reason: row.reason, why: row.why }] : []
  })
  const isMet = printFigures(known, print)
  for (const fault of faults) print(fault)
  print(`${faults.length} differences`)
  return isMet && faults.length === 0
}

/** `bsd/lhost-dragonfly-01.eml`, ...: every mail below the folder "maildir". */
function filesOf(folder: string): string[] {
  const root = rootOf(folder)
  return readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.eml'))
    .map((file) => file.replaceAll('\\', '/'))
    .sort()
}

const rootOf = (folder: string) => {
  const inner = join(folder, 'maildir')
  return existsSync(inner) ? inner : folder
}

async function judged(rules: RuleSet, folder: string, file: string): Promise<Result> {
  const bytes = readFileSync(join(rootOf(folder), file))
  const digest = createHash('sha256').update(bytes).digest('hex').slice(0, 16)
  const overSmtp = Buffer.from(bytes.toString('latin1').replace(/\r\n|\r|\n/g, '\r\n'), 'latin1')
  const { feedback, recipients } = readReturned(await readReportMail(overSmtp))
  const failure = recipients === null ? null : (ownGroup(recipients, '') ?? null)
  const read = feedback ? 'feedback' : failure === null ? 'none' : readAs(failure)
  const none = { file, digest, read, failure, category: '-', suppressed: false, suppressedAtOnce: false }
  if (failure === null || read !== 'failed') return { ...none, found: null }
  const reported = reportedFailure(failure, { recipient: failure.recipient ?? '' }, SENDER)
  const found = classify(rules, reported)
  const atOnce = classify(rules, { ...reported, enhanced: failure.replyStatus, isGuessed: false })
  return {
    ...none,
    found,
    category: found.category,
    suppressed: found.suppression === 'hard',
    suppressedAtOnce: atOnce.suppression === 'hard',
  }
}

function readAs({ action }: DsnRecipient): Read {
  return action === 'failed' || action === 'delayed' ? action : 'delivered'
}

function faultsOf(result: Result, row: Row | undefined): string[] {
  const { file, failure } = result
  const said = `${failure?.status ?? '-'} ${failure?.diagnostic.slice(0, 160) ?? ''}`
  if (!row) return [`${file}: is not in the table: ${result.read} ${result.category} ${said}`]
  if (row.digest !== result.digest) return [`${file}: is another version of the file`]
  const names = ['read', 'category', 'suppressed'] as const
  const different = names.filter((name) => row[name] !== result[name])
  return different.map((name) => `${file}: ${name} is ${result[name]}, not ${row[name]}: ${said}`)
}

type Known = Result & Pick<Row, 'reason' | 'why'>

function printFigures(all: readonly Known[], print: (line: string) => void): boolean {
  const bounces = all.filter(({ reason, why }) => !NO_BOUNCES.has(reason) && why !== NOT_RETURNED)
  const recognised = bounces.filter(({ read }) => read !== 'none')
  const strangers = all.filter(({ reason, read }) => reason === 'no-report' && read !== 'none')
  print(`recognised ${recognised.length} of ${bounces.length}; ${strangers.length} of other mail`)
  printMatrix(bounces, print)
  const suppressed = bounces.filter((one) => one.suppressed)
  const against = suppressed.filter(({ reason }) => !GONE.has(reason))
  const unreasoned = against.filter(({ why }) => why === '')
  print(
    `suppressed ${suppressed.length}, of these ${against.length} for another reason of the authors, ${unreasoned.length} without a reason of ours`,
  )
  const gone = bounces.filter(({ reason, read }) => reason === 'gone' && read === 'failed')
  const late = gone.filter((one) => one.suppressed)
  const atOnce = gone.filter((one) => one.suppressedAtOnce)
  print(
    `user unknown ${gone.length}: suppressed by a report ${percent(late, gone)}, by the same reply ${percent(atOnce, gone)}`,
  )
  for (const one of gone.filter((one) => one.suppressed !== one.suppressedAtOnce)) {
    print(`  ${one.file}: by a report ${one.suppressed}, at once ${one.suppressedAtOnce}`)
  }
  return (
    recognised.length >= RECOGNISED_MIN * bounces.length &&
    strangers.length === 0 &&
    unreasoned.length === 0 &&
    Math.min(late.length, atOnce.length) >= GONE_SUPPRESSED_MIN * gone.length
  )
}

const percent = (part: readonly unknown[], whole: readonly unknown[]) =>
  `${part.length} (${((100 * part.length) / Math.max(1, whole.length)).toFixed(1)} %)`

/** Their reasons down, our categories across; counts of failures. */
function printMatrix(bounces: readonly Known[], print: (line: string) => void): void {
  const failures = bounces.filter(({ read }) => read === 'failed')
  const columns = [...new Set(failures.map(({ category }) => category))].sort()
  const reasons = [...new Set(failures.map(({ reason }) => reason))].sort()
  const width = Math.max(...reasons.map(({ length }) => length))
  print(['reason'.padEnd(width), ...columns, 'suppressed', 'all'].join('  '))
  for (const reason of reasons) {
    const own = failures.filter((one) => one.reason === reason)
    const cells = columns.map((column) => {
      const count = own.filter(({ category }) => category === column).length
      return String(count || '.').padStart(column.length)
    })
    const suppressed = String(own.filter((one) => one.suppressed).length).padStart('suppressed'.length)
    print([reason.padEnd(width), ...cells, suppressed, String(own.length).padStart(3)].join('  '))
  }
}

/** Reasons that stand for no bounce. */
const NO_BOUNCES = new Set(['feedback', 'no-report'])
const NOT_RETURNED = 'never sent to a return path'

function readTable(): Row[] {
  if (!existsSync(TABLE)) return []
  return readFileSync(TABLE, 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [file = '', digest = '', reason = '', read = '', category = '', suppressed = '', why = ''] =
        line.split('\t')
      return { file, digest, reason, read: read as Read, category, suppressed: suppressed === 'yes', why }
    })
}

/** `CORPORA_UPDATE=1`: takes over the results, to be reviewed as a diff; reasons of the authors and ours are kept. */
function update(results: readonly Result[]): void {
  const rows = new Map(readTable().map((row) => [row.file, row]))
  const lines = results.map(({ file, digest, read, category, suppressed }) => {
    const { reason = '?', why = '' } = rows.get(file) ?? {}
    return [file, digest, reason, read, category, suppressed ? 'yes' : 'no', why].join('\t').trimEnd()
  })
  writeFileSync(TABLE, `${[HEAD, ...lines].join('\n')}\n`)
}
