/**
 * Checks the documents for readers: README.md and the guides in `docs/`.
 *
 * 1. README.md has at most 150 lines.
 * 2. A cell of a table has at most 200 characters, without its links' addresses. Records and generated pages are exempt.
 * 3. A sentence has at most 40 words.
 * 4. Phrases that stumble (`PHRASES`) do not occur.
 * 5. Links between documents lead to files and to headings, also those of docs/api and of the documents for developers.
 */
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { anchorOf } from '../web/guides.ts'

const README_LINES_MAX = 150
const CELL_MAX = 200
/** The long ones of a good technical text have 30 to 35. */
const SENTENCE_WORDS_MAX = 40

const LINKED = ['*.md', 'docs/**/*.md']
const GUIDES = ['README.md', 'docs/*.md']
/** For developers, or generated: `docs/commands.md` and `docs/rights.md` by scripts, the results by those who run the tests. */
const NOT_GUIDES = ['architecture', 'commands', 'reliability', 'rights'].map((name) => `docs/${name}.md`)

/** What reads like a translation, and what to write instead. */
const PHRASES: readonly (readonly [phrase: RegExp, instead: string])[] = [
  [/\bwhich see\b/i, 'a link'],
  [/\b(?:it|call|query|operation|command|one) answers (?:with )?(?:`|the|all|what)/i, 'returns'],
  [/\b(?:mends?|mended)\b/i, 'fixes'],
  [/\btakes back\b/i, 'reverts'],
  [/\b(?:says|learn) what became of\b/i, 'what happened to'],
  [/(?:^|[.:] )Who [^?.]*\./, 'if you ..., or people who ...'],
]

/** One sentence for each fault below `root`, with its place. */
export function documentFaults(root: string): string[] {
  const files = globSync(LINKED, { cwd: root }).sort()
  const texts = new Map(files.map((file) => [file, readFileSync(join(root, file), 'utf8')]))
  const guides = globSync(GUIDES, { cwd: root }).filter((file) => !NOT_GUIDES.includes(file))
  const lineCount = (texts.get('README.md') ?? '').split('\n').length - 1
  return [
    ...(lineCount > README_LINES_MAX
      ? [`README.md: has ${lineCount} lines, at most ${README_LINES_MAX} are read`]
      : []),
    ...guides.sort().flatMap((file) => styleFaults(file, texts.get(file) as string)),
    ...files.flatMap((file) => linkFaults(root, file, texts)),
  ]
}

/** Blank lines in place of fenced blocks and comments, so that lines keep their numbers. */
const withoutCode = (markdown: string): string =>
  markdown.replaceAll(/^ *(`{3,})[\s\S]*?^ *\1$|<!--[\s\S]*?-->/gm, (block) => block.replaceAll(/[^\n]/g, ''))

export function styleFaults(file: string, markdown: string): string[] {
  return paragraphsOf(withoutCode(markdown)).flatMap(({ line, text, isCell }) => {
    const shown = text.replaceAll(/\]\([^)]*\)/g, ']')
    const words = longestSentence(shown)
    return [
      ...(isCell && shown.length > CELL_MAX ? [`a cell has ${shown.length} characters`] : []),
      ...(words > SENTENCE_WORDS_MAX ? [`a sentence has ${words} words`] : []),
      ...PHRASES.flatMap(([phrase, instead]) => {
        const [found] = phrase.exec(shown.replaceAll(/`[^`]*`/g, '`')) ?? []
        return found === undefined ? [] : [`"${found.trim()}": write ${instead}`]
      }),
    ].map((fault) => `${file}:${line}: ${fault}`)
  })
}

interface Paragraph {
  line: number
  text: string
  isCell: boolean
}

/** Paragraphs, items of lists and cells of tables. */
function paragraphsOf(markdown: string): Paragraph[] {
  const found: Paragraph[] = []
  let open: Paragraph | null = null
  for (const [at, line] of markdown.split('\n').entries()) {
    if (/^\s*\|/.test(line)) {
      open = null
      const cells = line.split(/(?<!\\)\|/).slice(1, -1)
      found.push(...cells.map((cell) => ({ line: at + 1, text: cell.trim(), isCell: true })))
    } else if (/^\s*$|^#/.test(line)) open = null
    else if (open === null || /^\s*(?:[-*]|\d+\.) /.test(line)) {
      open = { line: at + 1, text: line.trim(), isCell: false }
      found.push(open)
    } else open.text += ` ${line.trim()}`
  }
  return found
}

/** In words; code counts as one. A colon or semicolon does not end a sentence. */
const longestSentence = (text: string): number =>
  Math.max(
    ...text
      .replaceAll(/`[^`]*`/g, 'code')
      .split(/[.?!](?=\s|$)/)
      .map((sentence) => sentence.split(/\s+/).filter((word) => /\w/.test(word)).length),
  )

function linkFaults(root: string, file: string, texts: ReadonlyMap<string, string>): string[] {
  const text = withoutCode(texts.get(file) as string)
  return [...text.matchAll(/\]\(([^)\s]+)\)/g)].flatMap(({ 1: href = '', index }) => {
    if (/^(?:https?:|mailto:)/.test(href)) return []
    const [path = '', anchor] = href.split('#')
    const target = path === '' ? file : relative(root, resolve(root, dirname(file), path))
    const place = `${file}:${text.slice(0, index).split('\n').length}`
    if (!existsSync(join(root, target))) return [`${place}: ${href} leads to no file`]
    const markdown = texts.get(target)
    if (anchor === undefined || markdown === undefined) return []
    return anchorsIn(markdown).has(anchor) ? [] : [`${place}: ${href} leads to no heading`]
  })
}

const anchorsIn = (markdown: string): Set<string> =>
  new Set([...withoutCode(markdown).matchAll(/^#{1,6} (.+)$/gm)].map(([, title = '']) => anchorOf(title)))

if (import.meta.main) {
  const faults = documentFaults(resolve(process.argv[2] ?? join(import.meta.dirname, '..')))
  for (const fault of faults) console.error(fault)
  if (faults.length > 0) process.exitCode = 1
}
