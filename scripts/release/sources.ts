/**
 * The program as JavaScript: Node runs TypeScript as it stands, but not below a `node_modules` folder, where a package
 * lies. Types are blanked out and every name of a source file gets the ending `.js`; lines and columns stay, so a stack
 * trace fits the sources.
 */
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { dirname, join } from 'node:path'

/** In quotes: a relative import, or the name of a program that a thread or process runs. */
const SOURCE_NAME = /(['"])((?:\.{1,2}\/)?[\w./-]+)\.ts\1/g

/** One source file as JavaScript. @throws SyntaxError for TypeScript that is more than types */
export function toJavaScript(source: string): string {
  return stripTypeScriptTypes(source).replace(SOURCE_NAME, '$1$2.js$1')
}

/** Writes all of folder `from` to `to`: sources as JavaScript, other files as they are, tests left out. */
export function buildSources(from: string, to: string): void {
  for (const entry of readdirSync(from, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || /\.(test|vectors)\.ts$|\.d\.ts$/.test(entry.name)) continue
    const source = join(entry.parentPath, entry.name)
    const target = join(to, source.slice(from.length)).replace(/\.ts$/, '.js')
    mkdirSync(dirname(target), { recursive: true })
    if (entry.name.endsWith('.ts')) writeFileSync(target, toJavaScript(readFileSync(source, 'utf8')))
    else cpSync(source, target)
  }
}
