/**
 * Checks the direction of imports between the folders of `src/` (or of the folder given as argument). Their order is the
 * block `layers` of `docs/architecture.md`, from the lowest line to the highest:
 *
 *     base
 *     protocols/smtp protocols/mime
 *     (platform/store platform/http) watching/events
 *
 * A folder may import itself and any folder of a lower line. Folders of one line stand side by side, and none may import
 * another, except for those within one pair of parentheses. Nothing outside `src/` is imported by path. Tests may import
 * what they like. Circles of files are found by the linter (noImportCycles).
 */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'

/** Files of types that every area is written against; they may import types from everywhere. */
const CONTRACTS = ['core', 'area']

interface Place {
  layer: number
  /** The parentheses that it stands in; null outside of any. */
  group: number | null
}

/** The place of each folder by its path below `src/`, and of each file there without its ending. @throws Error without a block */
function readLayers(page: string): Map<string, Place> {
  const block = /```layers\n([^`]*)```/.exec(page)?.[1]
  if (block === undefined) throw new Error('No block "layers" in docs/architecture.md')
  const places = new Map<string, Place>()
  let group = 0
  let isGrouped = false
  block.split('\n').forEach((line, layer) => {
    for (const token of line.match(/[()]|[\w/-]+/g) ?? []) {
      if (token === '(') group++
      if (token === '(' || token === ')') isGrouped = token === '('
      else places.set(token, { layer, group: isGrouped ? group : null })
    }
  })
  return places
}

const PLACES = readLayers(readFileSync(join(import.meta.dirname, '../docs/architecture.md'), 'utf8'))

/** Every static import, re-export or dynamic import with a literal. */
function importsOf(source: string): { specifier: string; isType: boolean }[] {
  const pattern =
    /(?:^|\n)\s*(?:import|export)\s(type\s)?(?:[^'"`;]*?\sfrom\s)?\s*['"]([^'"]+)['"]|import\(\s*['"]([^'"]+)['"]/g
  return [...source.matchAll(pattern)].map(([, type, first, second]) => ({
    specifier: (first ?? second) as string,
    isType: type !== undefined,
  }))
}

/** One sentence for each import in the wrong direction, and each folder without a rank, below `root`. */
export function importFaults(root: string): string[] {
  const faults: string[] = []
  const areaOf = (file: string) => folderOf(relative(root, file).replace(/\.ts$/, ''))
  for (const name of readdirSync(root, { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.ts') || name.endsWith('.test.ts')) continue
    const file = join(root, name)
    const from = areaOf(file)
    if (!PLACES.has(from)) faults.push(`src/${name}: "${from}" has no layer in docs/architecture.md`)
    for (const { specifier, isType } of importsOf(readFileSync(file, 'utf8'))) {
      if (!specifier.startsWith('.') || (isType && CONTRACTS.includes(from))) continue
      const to = areaOf(resolve(dirname(file), specifier))
      if (!allowed(from, to)) faults.push(`src/${name}: ${from} must not import ${to} (${specifier})`)
    }
  }
  return faults
}

/** The folder of the layers that a path lies in; itself where it lies in none. */
function folderOf(path: string): string {
  const parts = path.split('/')
  const lengths = parts.map((_, at) => parts.length - at)
  return lengths.map((length) => parts.slice(0, length).join('/')).find((part) => PLACES.has(part)) ?? path
}

function allowed(from: string, to: string): boolean {
  if (to === from) return true
  const [above, below] = [PLACES.get(from), PLACES.get(to)]
  if (above === undefined || below === undefined) return false
  return below.layer < above.layer || (below.group !== null && below.group === above.group)
}

if (import.meta.main) {
  const faults = importFaults(resolve(process.argv[2] ?? join(import.meta.dirname, '../src')))
  for (const fault of faults) console.error(fault)
  if (faults.length > 0) process.exitCode = 1
}
