/** `sendwright import`: takes what another service has, from its API or from its files, into the running service. */
import { printableLine } from '../../base/printable.ts'
import { ApiUnavailable } from '../../carry/import/api-client.ts'
import { createApiSource } from '../../carry/import/api-source.ts'
import { KINDS, type Kind, type Source, Unreadable } from '../../carry/import/entry.ts'
import { createFileSource, createFolderSource, type GivenFile } from '../../carry/import/file-source.ts'
import { InputFileError } from '../../carry/import/input-file.ts'
import {
  type Journal,
  OtherJournal,
  openJournal,
  type Remark,
  type Totals,
} from '../../carry/import/journal.ts'
import { remarkCount, runImport } from '../../carry/import/run.ts'
import { BREVO } from '../../carry/import/shapes/brevo.ts'
import { POSTAL } from '../../carry/import/shapes/postal.ts'
import { POSTMARK } from '../../carry/import/shapes/postmark.ts'
import { SENDGRID } from '../../carry/import/shapes/sendgrid.ts'
import { SES } from '../../carry/import/shapes/ses.ts'
import type { Shape } from '../../carry/import/shapes/shape.ts'
import { createTarget } from '../../carry/import/target/target.ts'
import { createProgressBar, type ProgressBar } from '../local/progress-bar.ts'
import { foreignApi, keyIn, serviceApi } from '../local/service-api.ts'
import { print as printText } from '../operate/service.ts'
import { CommandError, lists, parseWords, switches, texts, wrongArguments } from '../usage.ts'

export const usage = `sendwright import mailgun --source-key-file FILE [--source URL] [--domain NAME...] [--only KIND,...]
sendwright import ses|postmark|postal --domain NAME [--list ADDRESS] FILE...
sendwright import sendgrid|brevo --domain NAME [--list ADDRESS] [--blocklist-column NAME] CONTENT=FILE...
sendwright import folder FOLDER [--only KIND,...]

  --dry-run            count what would be made, and what cannot be; changes nothing
  --state FOLDER       what has been done, for continuing, and the report; ./sendwright-import
  --service URL        the service to import into, with --key-file FILE; default: the one on this machine
  --source URL         https://api.mailgun.net, or https://api.eu.mailgun.net
  --allow-http         send keys to other machines over http, unencrypted
  --domain NAME        only this domain; for files: the domain whose suppressions and templates they are
  --list ADDRESS       mailing list that contacts become members of
  --json               the result as JSON

CONTENT is bounces, invalid, spam, unsubscribes, groups, contacts or templates (sendgrid), contacts or blocked (brevo).
KIND is ${KINDS.join(', ')}.
A run that was interrupted continues when the same command is given again.
Exit codes: 0 all taken, 1 stopped, 2 wrong arguments, 3 done, but the report names entries that were not taken as they are.
`

const MAILGUN_URL = 'https://api.mailgun.net'
/** The key's other way in: the name that the service's own clients use. */
const MAILGUN_KEY_VARIABLE = 'MAILGUN_API_KEY'
const STATE_FOLDER = 'sendwright-import'
/** Remarks shown of a dry run, which has no report file. */
const REMARKS_SHOWN_MAX = 50

const SHAPES: Readonly<Record<string, Shape>> = {
  ses: SES,
  sendgrid: SENDGRID,
  postmark: POSTMARK,
  postal: POSTAL,
  brevo: BREVO,
}

/** Sources other than files of one service. */
const OTHER_SOURCES = ['mailgun', 'folder']

const OPTIONS = {
  ...texts('source', 'source-key-file', 'service', 'key-file', 'list', 'blocklist-column', 'only', 'state'),
  ...lists('domain'),
  ...switches('allow-http', 'dry-run', 'json'),
}

type Values = ReturnType<typeof parse>['values']

/** Takes what the command prints as its result. */
type Print = (text: string) => void

/** @throws CommandError with the exit codes of the usage text */
export async function run(args: string[], print: Print = printText): Promise<void> {
  const { values, positionals } = parse(args)
  const bar = createProgressBar()
  try {
    await take(values, positionals, bar, print)
  } catch (error) {
    bar.end()
    if (error instanceof OtherJournal) throw new CommandError(error.message, 2)
    if (error instanceof InputFileError || error instanceof Unreadable)
      throw new CommandError(error.message, 2)
    if (error instanceof ApiUnavailable)
      throw new CommandError(`${error.message}\nThe import has stopped; the same command continues it.`)
    throw error
  }
}

async function take(
  values: Values,
  [from = '', ...given]: string[],
  bar: ProgressBar,
  print: Print,
): Promise<void> {
  const onWait = (reason: string, waitMs: number) => {
    bar.note(`Waiting ${Math.ceil(waitMs / 1_000)} s: ${reason}`)
  }
  const source = await sourceOf(values, from, given, onWait)
  const client = serviceApi(values, onWait)
  const isDryRun = values['dry-run'] === true
  const journal = isDryRun
    ? null
    : openJournal(values.state ?? STATE_FOLDER, `${source.id} to ${client.origin}`)
  const remarks: Remark[] = []
  const totals = await runImport({
    source,
    target: createTarget(client, isDryRun),
    journal,
    onPage: ({ fraction, totals: now }) => bar.show(fraction, summaryLine(now)),
    onRemark(remark) {
      if (remarks.length < REMARKS_SHOWN_MAX) remarks.push(remark)
    },
  })
  bar.end()
  print(values.json ? `${json(totals, journal, isDryRun, remarks)}\n` : text(totals, journal, remarks))
  const count = remarkCount(totals)
  if (count > 0)
    throw new CommandError(`Entries that were not taken as they are: ${count}${whereIs(journal)}`, 3)
}

const whereIs = (journal: Journal | null) => (journal ? `; see ${journal.reportFile}` : '')

async function sourceOf(
  values: Values,
  from: string,
  given: readonly string[],
  onWait: (reason: string, waitMs: number) => void,
): Promise<Source> {
  const kinds = kindsOf(values.only)
  const domains = (values.domain ?? []).map((name) => name.toLowerCase())
  if (from === 'mailgun' && given.length === 0) {
    const url = values.source ?? MAILGUN_URL
    const client = foreignApi({ url, key: sourceKey(values), onWait }, values)
    return createApiSource(client, { domains, kinds })
  }
  if (from === 'folder' && given.length === 1) return createFolderSource(given[0] as string, kinds)
  const shape = Object.hasOwn(SHAPES, from) ? SHAPES[from] : undefined
  if (!shape && !OTHER_SOURCES.includes(from))
    throw wrongArguments('import', `Name one of ${[...OTHER_SOURCES, ...Object.keys(SHAPES)].join(', ')}`)
  const [domain] = domains
  if (!shape || given.length === 0 || domain === undefined || domains.length > 1)
    throw wrongArguments('import', `The arguments of "import ${from}" are not complete, or too many`)
  const context = { domain, list: values.list ?? null, blocklistColumn: values['blocklist-column'] ?? null }
  return createFileSource(
    shape,
    from,
    given.map((one) => givenFile(one, shape)),
    context,
  )
}

function sourceKey(values: Values): string {
  const file = values['source-key-file']
  if (file !== undefined) return keyIn(file)
  const key = process.env[MAILGUN_KEY_VARIABLE]
  if (!key) throw new CommandError(`Give --source-key-file, or the key in ${MAILGUN_KEY_VARIABLE}`, 2)
  return key
}

function givenFile(text: string, { contents }: Shape): GivenFile {
  if (contents.includes('')) return { content: '', path: text }
  const [content = '', ...path] = text.split('=')
  if (!contents.includes(content) || path.length === 0)
    throw new CommandError(`"${text}" should be ${contents.join('|')}=FILE`, 2)
  return { content, path: path.join('=') }
}

function kindsOf(only: string | undefined): ReadonlySet<Kind> {
  if (only === undefined) return new Set(KINDS)
  const kinds = only.split(',')
  const unknown = kinds.find((kind) => !(KINDS as readonly string[]).includes(kind))
  if (unknown !== undefined) throw new CommandError(`--only: "${unknown}" is none of ${KINDS.join(', ')}`, 2)
  return new Set(kinds as Kind[])
}

const summaryLine = (totals: Totals) =>
  Object.entries(totals)
    .map(([kind, { made, existing, changed, refused }]) => `${kind} ${made + existing + changed + refused}`)
    .join(', ')

function json(
  totals: Totals,
  journal: Journal | null,
  isDryRun: boolean,
  remarks: readonly Remark[],
): string {
  const files = journal
    ? { resumed: journal.isResumed, report: journal.reportFile, records: journal.zoneFile }
    : { remarks }
  return JSON.stringify({ dry_run: isDryRun, totals, ...files })
}

function text(totals: Totals, journal: Journal | null, remarks: readonly Remark[]): string {
  const verb = journal ? 'made' : 'would be made'
  const rows = KINDS.flatMap((kind) => {
    const counts = totals[kind]
    if (!counts) return []
    const { made, existing, changed, refused } = counts
    return [[kind, made, existing, changed, refused].map((cell) => String(cell))]
  })
  const head = ['', verb, 'existing', 'changed', 'not taken']
  const widths = head.map((cell, column) =>
    Math.max(cell.length, ...rows.map((row) => row[column]?.length ?? 0)),
  )
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, column) =>
        column === 0 ? cell.padEnd(widths[0] as number) : cell.padStart(widths[column] as number),
      )
      .join('  ')
  const shown = journal
    ? []
    : remarks.map(({ place, name, reason }) => printableLine(`${place}: ${name}: ${reason}`))
  const zone = journal && totals.domain?.made ? [`DNS records of the new domains: ${journal.zoneFile}`] : []
  return `${[line(head), ...rows.map(line), ...zone, ...shown].join('\n')}\n`
}

const parse = (args: string[]) => parseWords('import', args, OPTIONS)
