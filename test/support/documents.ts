/** Fenced blocks of the documents, and the commands in them. */
import { globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const ROOT = resolve(import.meta.dirname, '../..')
const DOCUMENTS = ['*.md', 'docs/**/*.md', 'deploy/**/*.md', 'test/*/README.md']

export interface FencedBlock {
  /** `file:line` of the fence, relative to the project. */
  place: string
  /** After the fence; empty: none is named. */
  language: string
  text: string
  /** The reason in `<!-- not run: reason -->` on the line before the fence. */
  notRun: string | null
}

/** All fenced blocks, by file and line. @throws Error for a fence that is not closed */
export function fencedBlocks(): FencedBlock[] {
  return globSync(DOCUMENTS, { cwd: ROOT })
    .sort()
    .flatMap((file) => blocksIn(file, readFileSync(join(ROOT, file), 'utf8')))
}

export function blocksIn(file: string, markdown: string): FencedBlock[] {
  const blocks: FencedBlock[] = []
  const lines = markdown.split('\n')
  for (let start = 0; start < lines.length; start++) {
    const [, fence = '', language = ''] = /^\s*(`{3,})\s*(\S*)\s*$/.exec(lines[start] ?? '') ?? []
    if (fence === '') continue
    const end = lines.findIndex((line, index) => index > start && line.trim() === fence)
    if (end < 0) throw new Error(`${file}:${start + 1}: the fence is not closed`)
    const [, notRun = null] = /^\s*<!-- not run: (\S.*) -->\s*$/.exec(lines[start - 1] ?? '') ?? []
    const text = lines.slice(start + 1, end).join('\n')
    blocks.push({ place: `${file}:${start + 1}`, language, text, notRun })
    start = end
  }
  return blocks
}

/**
 * The commands of a shell block, each as one text: a line continues after a backslash and within single quotes, comments
 * are left out.
 */
export function commandsIn(text: string): string[] {
  const commands: string[] = []
  let begun = ''
  for (const line of text.split(/(?<!\\)\n/)) {
    if (begun === '' && line.trim().startsWith('#')) continue
    begun = begun === '' ? line : `${begun}\n${line}`
    if (begun.split("'").length % 2 === 0) continue
    commands.push(begun.trim())
    begun = ''
  }
  return [...commands, begun.trim()].filter((command) => command !== '')
}
