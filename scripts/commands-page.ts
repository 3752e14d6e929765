/** Makes docs/commands.md from the help of the program: `node scripts/commands-page.ts`. A test holds it current. */
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'

const ROOT = resolve(import.meta.dirname, '..')
const COMMAND_MAX_MS = 60_000

async function help(...args: string[]): Promise<string> {
  const run = promisify(execFile)
  const { stdout } = await run(join(ROOT, 'bin/sendwright'), ['help', ...args], { timeout: COMMAND_MAX_MS })
  return stdout.trim()
}

/** The page as it should be. Commands with the same help are described together. */
export async function commandsPage(): Promise<string> {
  const overview = await help()
  const names = [...overview.matchAll(/^ {2}([a-z-]+) {2,}\S/gm)].map(([, name = '']) => name)
  const texts = new Map<string, string[]>()
  // Each is a process of its own: two at a time.
  for (let at = 0; at < names.length; at += 2) {
    const pair = names.slice(at, at + 2)
    const answers = await Promise.all(pair.map((name) => help(name)))
    for (const [index, text] of answers.entries())
      texts.set(text, [...(texts.get(text) ?? []), pair[index] as string])
  }
  const sections = [...texts].map(([text, same]) => `## ${same.join(', ')}\n\n${fenced(text)}`)
  return `# Commands\n\n<!-- Made by scripts/commands-page.ts -->\n\n${fenced(overview)}\n\n${sections.join('\n\n')}\n`
}

const fenced = (text: string) => `\`\`\`text\n${text}\n\`\`\``

if (import.meta.main) await writeFile(join(ROOT, 'docs/commands.md'), await commandsPage())
