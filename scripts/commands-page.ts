/** Makes docs/commands.md from the help of the program: `node scripts/commands-page.ts`. A test holds it current. */
import { writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { COMMANDS } from '../src/cli/commands.ts'
import { overview } from '../src/cli/usage.ts'

const ROOT = resolve(import.meta.dirname, '..')

/** The page as it should be. Commands with the same help are described together. */
export async function commandsPage(): Promise<string> {
  const listed = overview(COMMANDS).trim()
  const texts = new Map<string, string[]>()
  for (const [, name = ''] of listed.matchAll(/^ {2}([a-z-]+) {2,}\S/gm)) {
    const help = (await COMMANDS[name]?.load())?.usage.trim()
    if (help !== undefined) texts.set(help, [...(texts.get(help) ?? []), name])
  }
  const sections = [...texts].map(([text, same]) => `## ${same.join(', ')}\n\n${fenced(text)}`)
  return `# Commands\n\n<!-- Made by scripts/commands-page.ts -->\n\n${fenced(listed)}\n\n${sections.join('\n\n')}\n`
}

const fenced = (text: string) => `\`\`\`text\n${text}\n\`\`\``

if (import.meta.main) await writeFile(join(ROOT, 'docs/commands.md'), await commandsPage())
