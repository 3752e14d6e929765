/**
 * Replies whose quotations are known: the tests of the projects talon and email-reply-parser, read by replies.py. What we decided is
 * right for each of them is in replies.json: digests of what was given and of what is kept, and why it differs from what
 * the project expects. `literal` counts those that the project expects as we do, character by character (with the
 * signature or without it, as the project has it); of HTML, blanks do not count.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { htmlToText } from '../../src/protocols/mime/quoted/html-text.ts'
import { stripReply } from '../../src/protocols/mime/quoted/stripped.ts'
import { stripReplyHtml } from '../../src/protocols/mime/quoted/stripped-html.ts'

interface Reply {
  name: string
  kind: 'text' | 'html'
  given: string
  /** Null: the project says nothing of the whole text. */
  expected: string | null
}

interface Decided {
  given: string
  kept: string
  /** Why the project expects something else. */
  differs?: string
}

export async function run(folder: string, print: (line: string) => void): Promise<boolean> {
  const script = join(import.meta.dirname, 'replies.py')
  const lines = execFileSync('python3', [script, folder], { encoding: 'utf8' }).trim().split('\n')
  const decided = JSON.parse(readFileSync(join(import.meta.dirname, 'replies.json'), 'utf8')) as Record<
    string,
    Decided
  >
  const literal: Record<string, [equal: number, all: number]> = {}
  let faults = 0
  for (const reply of lines.map((line): Reply => JSON.parse(line))) {
    const kept = keptOf(reply)
    const found = { given: digest(reply.given), kept: digest(kept.join('\0')) }
    const row = decided[reply.name]
    const isLiteral = reply.expected !== null && isExpected(reply, kept)
    if (reply.expected !== null) {
      const [equal, all] = literal[groupOf(reply)] ?? [0, 0]
      literal[groupOf(reply)] = [equal + Number(isLiteral), all + 1]
    }
    const isExplained = isLiteral || reply.expected === null || row?.differs !== undefined
    if (row?.given === found.given && row.kept === found.kept && isExplained) continue
    faults++
    print(`${reply.name} ${JSON.stringify(found)}\n  given    ${JSON.stringify(reply.given.slice(0, 1_000))}`)
    print(`  expected ${JSON.stringify(reply.expected)}\n  kept     ${JSON.stringify(kept)}`)
  }
  for (const [group, [equal, all]] of Object.entries(literal)) print(`${group}: ${equal} of ${all} literal`)
  const explained = Object.values(decided).filter(({ differs }) => differs !== undefined).length
  print(
    `${lines.length} replies, ${faults} not as decided; ${explained} differ from the projects for a reason`,
  )
  return faults === 0
}

/** What is kept, and the signature; of HTML its text without blanks. */
function keptOf({ kind, given }: Reply): string[] {
  if (kind === 'html') return [withoutBlanks(htmlToText(stripReplyHtml(given) ?? given))]
  const { text, signature } = stripReply(given)
  return [text, signature]
}

function isExpected({ kind, expected }: Reply, [text = '', signature = '']: string[]): boolean {
  if (kind === 'html') return withoutBlanks(htmlToText(expected ?? '')) === text
  return [text, `${text}\n${signature}`, `${text}\n\n${signature}`].includes(expected ?? '')
}

const withoutBlanks = (text: string) => text.replaceAll(/\s/g, '')
const digest = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 16)

function groupOf({ name, kind }: Reply): string {
  const [project] = name.split(' ')
  return name.endsWith('.html') ? `${project}, replies in HTML` : `${project}, ${kind}`
}
