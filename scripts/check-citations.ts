/**
 * Checks what comments cite: pages of `docs/api` with their sections, rules and operations, other documents, and
 * decisions. How to cite and what a page looks like: docs/api/README.md.
 *
 * 1. `auth-limits.md section 2 rule 4`, `webhooks.md W1 to W9`: the page must have these numbers. A document that is no
 *    page must be a file, in a folder above the comment or by its path.
 * 2. `rule 15` alone: a page that the file names, or its folder's own, must have it. `W6` alone: any page.
 * 3. `decision 43` needs a file `docs/decisions/0043-*.md`, `docs/decisions: flat memory` one with that name.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'

const FOLDERS = ['src', 'test', 'bench', 'web/src', 'scripts']
/** Its strings look like comments with faults. */
const OWN_TEST = 'scripts/check-citations.test.ts'

/** Folders of `src` whose page has another name. */
const PAGE_OF_FOLDER: Readonly<Record<string, string>> = {
  bounces: 'bounce-classification',
  lists: 'mailing-lists',
  mail: 'messages',
  metrics: 'tags-stats',
  people: 'accounts',
  sessions: 'smtp-submission',
}

/** `1`, `1 and 3`, `1 to 8, 11`, `D1-D6 and D12`; read by `expand`. */
const listOf = (item: string) => `${item}(?:(?:,? and |, |-| to )${item})*`
const NUMBERS = listOf('\\d+')
const CODES = listOf('[A-Z]\\d{1,2}\\b')
const CITATION = new RegExp(
  `([\\w./-]*\\/)?\\b([\\w-]+)\\.md\\b(?:,? sections? (${NUMBERS}))?(?:,? \\(?(${CODES}))?(?:,? rules? (${NUMBERS}))?`,
  'g',
)
const RULES_ALONE = new RegExp(`\\b[Rr]ules? (${NUMBERS})`, 'g')
const CODE_ALONE = /(?<![\w/%+-])[DEKLMTW]\d{1,2}(?![\w.-])/g
const DECISIONS = new RegExp(`\\bdecisions? (${NUMBERS})|docs/decisions: ([\\w ,'-]+)`, 'g')
const COMMENT = {
  sql: /(?:^[ \t]*--.*\n?)+/gm,
  code: /\/\*[\s\S]*?\*\/|(?:(?:^|[ \t])\/\/[ \t].*(?:\n|$))+/gm,
}
const MARKS = /^[ \t]*(?:\/\*\*?|\*\/|\*|\/\/|--)[ \t]?|\*\/$/gm

interface Page {
  /** By section; 0: before the first. */
  rules: Map<number, Set<number>>
  operations: Set<string>
}

function readPage(text: string): Page {
  const page: Page = { rules: new Map(), operations: new Set() }
  let rules = new Set<number>()
  page.rules.set(0, rules)
  for (const line of text.split('\n')) {
    const [, section, item, row, operation] =
      /^(?:## (\d+)\. |(\d+)\. |\| (\d+) \||\| ([A-Z]\d+) \|)/.exec(line) ?? []
    if (section) {
      rules = new Set()
      page.rules.set(Number(section), rules)
    }
    if (item ?? row) rules.add(Number(item ?? row))
    if (operation) page.operations.add(operation)
  }
  return page
}

/** `D1-D3 and D5` as D1, D2, D3, D5. */
function expand(list = ''): string[] {
  return list.split(/,? and |, /).flatMap((part) => {
    const [from = '', to = from] = part.split(/-| to /)
    const letter = from.replace(/\d+/, '')
    const [first, last] = [from, to].map((end) => Number(end.replace(letter, ''))) as [number, number]
    return Array.from({ length: last - first + 1 }, (_, at) => `${letter}${first + at}`)
  })
}

/** One sentence for each citation below `root` that does not exist. */
export function citationFaults(root: string): string[] {
  const pages = new Map<string, Page>()
  for (const file of filesBelow(join(root, 'docs/api'))) {
    pages.set(
      relative(join(root, 'docs/api'), file).replace(/\.md$/, ''),
      readPage(readFileSync(file, 'utf8')),
    )
  }
  const decisions = filesBelow(join(root, 'docs/decisions')).map((file) => relative(root, file))

  function ofPage(page: Page, name: string, [sections, codes, rules]: (string | undefined)[]): string[] {
    const among = sections ? expand(sections).map(Number) : [...page.rules.keys()]
    const hasRule = (rule: string) => among.some((section) => page.rules.get(section)?.has(Number(rule)))
    return [
      ...among.filter((section) => !page.rules.has(section)).map((section) => `section ${section}`),
      ...(codes ? expand(codes) : []).filter((code) => !page.operations.has(code)),
      ...(rules ? expand(rules) : []).filter((rule) => !hasRule(rule)).map((rule) => `rule ${rule}`),
    ].map((missing) => `${name}.md has no ${missing}`)
  }

  function ofCitation([whole, path = '', name = '', ...numbers]: string[], folder: string): string[] {
    const page = path === '' || path.endsWith('docs/api/') ? pages.get(name) : undefined
    if (page) return ofPage(page, name, numbers)
    return isFileAbove(root, folder, `${path}${name}.md`) ? [] : [`there is no ${whole}`]
  }

  function alone(text: string, own: readonly string[]): string[] {
    const known = own.flatMap((name) => [...(pages.get(name)?.rules.values() ?? [])])
    const rules = [...text.matchAll(RULES_ALONE)].flatMap(([, list]) => expand(list))
    const codes = [...text.matchAll(CODE_ALONE)].map(([code]) => code)
    const isCode = (code: string) => [...pages.values()].some(({ operations }) => operations.has(code))
    return [
      ...(known.length === 0 ? [] : rules)
        .filter((rule) => !known.some((section) => section.has(Number(rule))))
        .map((rule) => `no page of this file has a rule ${rule}`),
      ...codes.filter((code) => !isCode(code)).map((code) => `no page has ${code}`),
    ]
  }

  function ofDecisions(text: string): string[] {
    const wanted = [...text.matchAll(DECISIONS)].flatMap(([, numbers, title]) =>
      numbers
        ? expand(numbers).map((number) => `/${number.padStart(4, '0')}-`)
        : [
            (title as string)
              .trim()
              .toLowerCase()
              .replaceAll(/[^a-z0-9]+/g, '-'),
          ],
    )
    return wanted
      .filter((part) => !decisions.some((file) => file.includes(part)))
      .map((part) => `no decision ${part.replace(/^\/0*|-$/g, '')}`)
  }

  return FOLDERS.flatMap((folder) => filesBelow(join(root, folder))).flatMap((file) => {
    if (file === join(root, OWN_TEST)) return []
    const source = readFileSync(file, 'utf8')
    const pattern = file.endsWith('.sql') ? COMMENT.sql : /\.(?:tsx?|mjs)$/.test(file) ? COMMENT.code : null
    const comments = pattern === null ? [] : [...source.matchAll(pattern)]
    const texts = comments.map(([comment]) => comment.replaceAll(MARKS, '').replaceAll(/\s+/g, ' '))
    const folders = relative(join(root, 'src'), dirname(file)).split('/')
    const named = texts.flatMap((text) => [...text.matchAll(CITATION)].map(([, , name]) => name as string))
    const own = [...folders.map((folder) => PAGE_OF_FOLDER[folder] ?? folder), ...named]
    return texts.flatMap((text, at) => {
      const line = source.slice(0, comments[at]?.index).split('\n').length
      return [
        ...[...text.matchAll(CITATION)].flatMap((match) => ofCitation(match, dirname(file))),
        ...alone(text.replaceAll(CITATION, ''), own),
        ...ofDecisions(text),
      ].map((fault) => `${relative(root, file)}:${line}: ${fault}`)
    })
  })
}

/** Whether a document of that name is in this folder or one above it. */
function isFileAbove(root: string, folder: string, name: string): boolean {
  return existsSync(join(folder, name)) || (folder !== root && isFileAbove(root, dirname(folder), name))
}

const filesBelow = (folder: string): string[] =>
  !existsSync(folder)
    ? []
    : readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name))

if (import.meta.main) {
  const faults = citationFaults(resolve(process.argv[2] ?? join(import.meta.dirname, '..')))
  for (const fault of faults) console.error(fault)
  if (faults.length > 0) process.exitCode = 1
}
