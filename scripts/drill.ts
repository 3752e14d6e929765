/**
 * Drills: checks under load or over hours, too heavy for the tests. Each is a file `test/drills/<name>.ts`,
 * or `<name>-<words>.ts`, that exports a `title` and a `run`:
 *
 *     export const title = 'R1: no accepted message is lost when the process is killed'
 *     export async function run(report: DrillReport): Promise<void>
 *
 * `run` reports its figures and throws when a requirement is not met. `npm run drill` lists the drills,
 * `npm run drill -- R1` runs one; only a drill that passed ends with exit code 0.
 */
import { globSync } from 'node:fs'
import { basename, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { inspect } from 'node:util'

export interface DrillReport {
  /** A result, printed at the end in a table: `figure('accepted', 120_000, 'messages')`. */
  figure(name: string, value: number | string, unit?: string): void
  /** A line of progress, printed at once. */
  note(text: string): void
}

interface Drill {
  title: string
  run(report: DrillReport): Promise<void>
}

type Figure = { name: string; value: string; unit: string }

/** Lists the drills in `folder`, or runs the one called `name`. Returns the exit code. */
export async function drill(
  folder: string,
  name: string | undefined,
  print: (text: string) => void,
): Promise<0 | 1> {
  const files = globSync('*.ts', { cwd: folder })
    .filter((file) => !file.endsWith('.test.ts'))
    .sort((a, b) => a.localeCompare(b, 'en', { numeric: true }))
  if (name === undefined) {
    if (files.length === 0) print('There are no drills yet')
    for (const file of files) print(`${nameOf(file).padEnd(8)} ${(await load(folder, file)).title}`)
    return 0
  }
  const chosen = files.filter((file) => isCalled(file, name))
  if (chosen.length !== 1) {
    const known = files.map(nameOf).join(', ') || 'none'
    print(`Cannot run drill "${name}": ${chosen.length} of that name; there are ${known}`)
    return 1
  }
  return runDrill(await load(folder, chosen[0] as string), print)
}

async function runDrill({ title, run }: Drill, print: (text: string) => void): Promise<0 | 1> {
  const figures: Figure[] = []
  const begun = performance.now()
  print(title)
  let failure: { cause: unknown } | undefined
  try {
    await run({
      figure: (name, value, unit = '') => {
        figures.push({ name, value: typeof value === 'number' ? formatNumber(value) : value, unit })
      },
      note: print,
    })
  } catch (cause) {
    failure = { cause }
  }
  const took = { name: 'took', value: formatNumber((performance.now() - begun) / 1_000), unit: 's' }
  for (const row of aligned([...figures, took])) print(row)
  if (failure) print(inspect(failure.cause))
  print(failure ? 'failed' : 'passed')
  return failure ? 1 : 0
}

/** `R1-kill-nine.ts` is called R1. */
function nameOf(file: string): string {
  return basename(file, '.ts').split('-')[0] as string
}

function isCalled(file: string, name: string): boolean {
  return [nameOf(file), basename(file, '.ts')].some((own) => own.toLowerCase() === name.toLowerCase())
}

async function load(folder: string, file: string): Promise<Drill> {
  const drill = (await import(pathToFileURL(resolve(folder, file)).href)) as Partial<Drill>
  if (typeof drill.title !== 'string' || typeof drill.run !== 'function')
    throw new Error(`Cannot use drill "${file}": it must export "title" and "run"`)
  return drill as Drill
}

/** Names aligned left, values right, units after them. */
function aligned(figures: Figure[]): string[] {
  const nameWidth = Math.max(...figures.map(({ name }) => name.length))
  const valueWidth = Math.max(...figures.map(({ value }) => value.length))
  return figures.map(({ name, value, unit }) =>
    `  ${name.padEnd(nameWidth)}  ${value.padStart(valueWidth)} ${unit}`.trimEnd(),
  )
}

/** At most three digits after the point; thousands apart. */
function formatNumber(value: number): string {
  return value.toLocaleString('en', { maximumFractionDigits: 3 })
}

if (import.meta.main) {
  const folder = resolve(import.meta.dirname, '../test/drills')
  // A failed drill may leave sockets and timers open: do not wait for them.
  process.exit(await drill(folder, process.argv[2], console.log))
}
