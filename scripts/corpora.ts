/**
 * Runs a public collection of real mail against what we decided is right for each of its files. Each collection has a
 * file `test/corpora/<name>.ts` that exports
 *
 *     export async function run(folder: string, print: (line: string) => void): Promise<boolean>
 *
 * `folder` is where the collection was unpacked: nothing is downloaded, and none of its text is kept in this repository.
 * `run` prints its figures and every unexpected difference, and returns whether there was none.
 * `npm run corpora` lists the names, `npm run corpora -- bounces FOLDER` runs one.
 */
import { existsSync, globSync } from 'node:fs'
import { basename, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

interface Corpus {
  run(folder: string, print: (line: string) => void): Promise<boolean>
}

const FOLDER = resolve(import.meta.dirname, '../test/corpora')

async function main([name, folder]: string[]): Promise<0 | 1> {
  const names = globSync('*.ts', { cwd: FOLDER })
    .filter((file) => !file.endsWith('.test.ts'))
    .map((file) => basename(file, '.ts'))
    .sort()
  if (name === undefined || folder === undefined || !names.includes(name) || !existsSync(folder)) {
    console.log(`Usage: npm run corpora -- NAME FOLDER; NAME is one of: ${names.join(', ')}`)
    return 1
  }
  const corpus = (await import(pathToFileURL(resolve(FOLDER, `${name}.ts`)).href)) as Corpus
  return (await corpus.run(resolve(folder), console.log)) ? 0 : 1
}

if (import.meta.main) process.exitCode = await main(process.argv.slice(2))
