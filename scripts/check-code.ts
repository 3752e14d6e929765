/**
 * Checks what makes code quick to find and to read, in `src/` and `web/src/` without tests (or below the folders given as
 * arguments). `BARS` has the limits.
 *
 * - Folders, files and functions have a size that a reader can hold. Lines of a function are those with code: blank lines
 *   and comments do not count; functions inside do.
 * - No docstring begins with "Of" or "Those": its subject would be in another line.
 *
 * Generated files have no limit, nor have folders of migrations, which only grow.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { ts } from '@ts-morph/common'

export const BARS = { filesInFolder: 20, linesInFile: 600, linesInFunction: 120 }

const ROOT = join(import.meta.dirname, '..')
const FOLDERS = ['src', 'web/src']
/** Written by scripts/store-tables.ts and scripts/api-types.ts. */
const GENERATED = ['schema.ts', 'api-types.ts']
const CODE = /\.(?:tsx?|css|json)$/
const SUBJECTLESS = /\/\*\*\s+(?:\* )?(?:Of|Those)\b/g

/** One sentence for each bar that is missed below `folder`. */
export function codeFaults(folder: string): string[] {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => CODE.test(name) && !/\.test\.tsx?$/.test(name))
    .sort()
  const faults = [...Map.groupBy(names, (name) => dirname(name))]
    .filter(([, files]) => files.length > BARS.filesInFolder)
    .map(([name, files]) => `${name}: ${files.length} files, at most ${BARS.filesInFolder}`)
  for (const name of names) {
    if (!/\.tsx?$/.test(name) || GENERATED.includes(basename(name))) continue
    faults.push(...fileFaults(name, readFileSync(join(folder, name), 'utf8')))
  }
  return faults
}

function fileFaults(name: string, text: string): string[] {
  const lines = text.trimEnd().split('\n')
  const faults =
    lines.length > BARS.linesInFile ? [`${name}: ${lines.length} lines, at most ${BARS.linesInFile}`] : []
  for (const { index } of text.matchAll(SUBJECTLESS))
    faults.push(`${name}:${lineAt(text, index)}: the docstring has no subject`)
  // Most files are shorter than one long function.
  if (lines.length <= BARS.linesInFunction) return faults
  const source = ts.createSourceFile(name, text, ts.ScriptTarget.Latest, false)
  const visit = (node: ts.Node): void => {
    if (ts.isFunctionLike(node) && 'body' in node && node.body !== undefined) {
      const first = source.getLineAndCharacterOfPosition(node.getStart(source)).line
      const last = source.getLineAndCharacterOfPosition(node.end).line
      const count = lines.slice(first, last + 1).filter(isCode).length
      if (count > BARS.linesInFunction)
        faults.push(`${name}:${first + 1}: a function of ${count} lines, at most ${BARS.linesInFunction}`)
    }
    ts.forEachChild(node, visit)
  }
  visit(source)
  return faults
}

/** False for a line that is blank or has a comment alone. */
const isCode = (line: string) => !/^\s*(?:$|\/\/|\/\*|\*(?:\/|\s|$))/.test(line)

const lineAt = (text: string, index: number) => text.slice(0, index).split('\n').length

if (import.meta.main) {
  const folders = process.argv.length > 2 ? process.argv.slice(2) : FOLDERS.map((name) => join(ROOT, name))
  const faults = folders.flatMap((folder) =>
    codeFaults(folder).map((fault) => join(relative(ROOT, folder), fault)),
  )
  for (const fault of faults) console.error(fault)
  if (faults.length > 0) process.exitCode = 1
}
