/**
 * Looks for regular expressions whose time grows faster than the text, with the checker `recheck`, which is not among the
 * dependencies because it takes 60 MB: `npm install --no-save recheck` first. A pattern that only ever reads short or
 * trusted text is listed below with what bounds it; the list holds no pattern that is gone.
 */
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseAst } from 'rolldown/parseAst'
import type { DrillReport } from '../../scripts/drill.ts'

export const title = 'no regular expression of the sources takes long for a text of a stranger'

const SOURCES = join(import.meta.dirname, '../../src')
const CHECK_MAX_MS = 10_000

/** What bounds the texts of patterns that are not linear, by file and pattern. */
const BOUNDED: Readonly<Record<string, string>> = {
  'config.ts /^\\/+|\\/+$/g': 'the operator writes it',
  "config.ts /^([\\w!#$%&'*+.^`|~-]{1,100})\\s*=\\s*([\\x20-\\x7e]{1,4096})$/": 'the operator writes it',
  'receiving/bounces/classify.ts /bounce\\+[\\w=+-]{1,64}@[\\w.-]{1,255}/g':
    '1,024 characters of a reply; 45 of an IP address',
  'receiving/bounces/classify.ts /[.:]+$/': '1,024 characters of a reply; 45 of an IP address',
  'cli/data/migrate.ts /^postgres(?:ql)?:\\/\\/(?:[^/?#]*:[^/?#]*@|[^#]*[?&]password=)/i':
    'the operator writes it',
  'protocols/reports/dsn/phrases.ts /\\(delay\\)|(?:delivery|message|mail)[^:]{0,40} delayed|delayed mail|^warning: |notification: warning|still (?:being )?retried/iu':
    '20,000 characters of a report; repetitions are bounded',
  'protocols/reports/dsn/report.ts /\\(([^)]{1,500})\\)/':
    'fields of a report, measured by hostile-returns.test.ts',
  'protocols/reports/dsn/report.ts /[^\\s<>();,:"]+@[^\\s<>();,:"]+/':
    'fields of a report, measured by hostile-returns.test.ts',
  'protocols/reports/dsn/text-report.ts /[^\\s<>()[\\]{},;:"\'|=：（）＜＞，、。]{1,64}@[\\w.-]{1,255}[\\w]/u':
    'lines of 20,000 characters; repetitions are bounded',
  'watching/events/search/filter.ts /\\s*(?:([()])|(>=|<=|>|<|=)?\\s*(\\d{1,15})(?![^\\s()<>=])|(AND|OR|NOT)(?![^\\s()]))\\s*/y':
    '1,500 characters of a query',
  'platform/http/operation.ts /\\{([^}]+)\\}/g': 'paths of our own',
  'protocols/mime/quoted/device-line.ts /[<([]\\s*https?:.*$/i': 'lines of 120 characters',
  'protocols/mime/quoted/device-line.ts /\\s*(?:[.,;:!。]|\\s[-–—/|]\\s)\\s*(?=\\s|$)(.*)/su':
    'lines of 120 characters',
  'protocols/mime/downgrade.ts /^(content-transfer-encoding:[ \\t]*)(?:8bit|binary)\\b/gim':
    'a repetition begins at the start of a line only',
  'protocols/mime/quoted/quotation-words.ts /\\s*\\n\\s*/g': 'lines of 300 characters; the words are ours',
  'protocols/mime/quoted/quotation-words.ts /^(?:[-–—_]{2,}\\s*)?(?:on|am|le|el|il|in data|em|a|à|op|den|på|fra|w dniu|dnia|dne|dňa|vào|lúc|pada|la data de|dana|la|pe|în|στις|в|у|kl|sent from|בתאריך|ב|في|quoting|zitat von|citando|citazione di|citat(?:ion)? de|selon)(?:\\s|$)/iu':
    'lines of 300 characters; the words are ours',
  'protocols/mime/quoted/quotation-words.ts /^(?:quoting|zitat von|citando|citazione di|citation de|citeren|cytowanie) .*@.*[:：]$/iu':
    'lines of 300 characters; the words are ours',
  'protocols/mime/quoted/quotations.ts /[<(][^<>()\\s]+@[^<>()\\s]+[>)]/': 'lines of 300 characters',
  'protocols/mime/quoted/quotations.ts /@[^\\s@<>]+[>)\\]]*\\s?[:：]$/': 'lines of 300 characters',
  'protocols/mime/quoted/quotations.ts /(?<=[\\s.!?])-*\\s?(?:On|Am|Le|El|Il|Em|Op|Den|På)\\s(?=\\p{L}{2,12}[.,]?\\s[^.!?]*\\d|\\d)|---\\s?On\\s(?=\\p{L}{2,12}[.,]?\\s|\\d)/gu':
    'lines of 300 characters',
  'protocols/mime/quoted/quotations.ts /[(<]https?:[^)>]*$/i': 'lines of 300 characters',
  'protocols/mime/verifiable.ts /[ \\t\\r\\n]{200}/': 'a repetition of one class',
  'protocols/mime/quoted/stripped-html.ts /border-top(?:-style)?\\s{0,9}:[^;]{0,99}\\b(?:solid|dotted|dashed|double)\\b/i':
    'repetitions are bounded',
  'carry/import/api-client.ts /\\/+$/': 'the operator writes it',
  'watching/webhooks/redaction.ts /[^\\s<>"\'()[\\],;:]{1,64}@[^\\s<>"\'()[\\],;:]{1,255}/g':
    'repetitions are bounded',
}

interface Checker {
  checkSync(
    source: string,
    flags: string,
    options: { timeout: number },
  ): {
    status: 'safe' | 'vulnerable' | 'unknown'
    complexity?: { summary: string }
    attack?: { pattern: string }
  }
}

export async function run(report: DrillReport): Promise<void> {
  const name = 'recheck' // not resolved by the compiler
  const { checkSync } = (await import(name).catch(() => {
    throw new Error('The checker is missing: npm install --no-save recheck')
  })) as Checker
  const left = new Set(Object.keys(BOUNDED))
  const faults: string[] = []
  let count = 0
  for (const { file, source, flags } of patternsIn(SOURCES)) {
    count++
    const { status, complexity, attack } = checkSync(source, flags, { timeout: CHECK_MAX_MS })
    if (status === 'safe') continue
    const key = `${file} /${source}/${flags}`
    if (left.delete(key) || BOUNDED[key] !== undefined) continue
    faults.push(`${key}: ${complexity?.summary ?? status}, such as ${attack?.pattern.slice(0, 100) ?? '?'}`)
  }
  report.figure('patterns', count)
  report.figure('bounded otherwise', Object.keys(BOUNDED).length)
  assert.deepEqual(faults, [])
  assert.deepEqual([...left], [], 'these patterns are gone, or linear now')
}

function* patternsIn(folder: string): Generator<{ file: string; source: string; flags: string }> {
  for (const file of globSync('**/*.ts', { cwd: folder }).sort()) {
    if (file.endsWith('.test.ts')) continue
    const tree = parseAst(readFileSync(join(folder, file), 'utf8'), { lang: 'ts' })
    for (const { pattern, flags } of regexpsIn(tree)) yield { file, source: pattern, flags }
  }
}

function* regexpsIn(node: unknown): Generator<{ pattern: string; flags: string }> {
  if (typeof node !== 'object' || node === null) return
  const { type, regex } = node as { type?: string; regex?: { pattern: string; flags: string } }
  if (type === 'Literal' && regex) yield regex
  for (const child of Object.values(node)) yield* regexpsIn(child)
}
