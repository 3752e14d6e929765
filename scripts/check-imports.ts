/**
 * Checks the direction of imports between the folders of `src/` (or of the folder given as argument):
 *
 *     base  <-  protocols  <-  foundation  <-  engine  <-  resources  <-  service
 *
 * A folder may import itself and any folder of its own or a lower rank; protocol folders also stand apart
 * from each other. Nothing outside `src/` is imported by path. Tests may import what they like. Cycles are the
 * linter's work (noImportCycles).
 */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'

const RANKS: Record<string, number> = {}
const LAYERS = [
  ['base'],
  ['smtp', 'mime', 'dkim', 'dsn', 'arf', 'dns', 'mta-sts', 'acme'],
  ['config', 'store', 'http', 'outgoing'],
  ['delivery', 'inbound', 'events'],
  [
    ...['accounts', 'messages', 'domains', 'domain-keys', 'webhooks', 'templates', 'lists', 'suppressions'],
    ...[
      'routes',
      'tags',
      'metrics',
      'alerts',
      'ips',
      'dynamic-pools',
      'bounces',
      'tracking',
      'inbox',
      'queue',
      'system',
      'backup',
    ],
  ],
  ['composition', 'service', 'main', 'cli'],
]
LAYERS.forEach((folders, rank) => {
  for (const folder of folders) RANKS[folder] = rank
})
const PROTOCOLS = new Set(LAYERS[1])

/** Every specifier of a static import, a re-export or a dynamic import with a literal. */
function specifiersOf(source: string): string[] {
  const pattern =
    /(?:^|\n)\s*(?:import|export)\s(?:[^'"`;]*?\sfrom\s)?\s*['"]([^'"]+)['"]|import\(\s*['"]([^'"]+)['"]/g
  return [...source.matchAll(pattern)].map((match) => (match[1] ?? match[2]) as string)
}

/** One sentence for each import in the wrong direction, and each folder without a rank, below `root`. */
export function importFaults(root: string): string[] {
  const faults: string[] = []
  const areaOf = (file: string) => (relative(root, file).split(sep)[0] as string).replace(/\.ts$/, '')
  for (const name of readdirSync(root, { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.ts') || name.endsWith('.test.ts')) continue
    const file = join(root, name)
    const from = areaOf(file)
    if (RANKS[from] === undefined)
      faults.push(`src/${name}: folder "${from}" has no rank in scripts/check-imports.ts`)
    for (const specifier of specifiersOf(readFileSync(file, 'utf8'))) {
      if (!specifier.startsWith('.')) continue
      const to = areaOf(resolve(dirname(file), specifier))
      if (!allowed(from, to)) faults.push(`src/${name}: ${from} must not import ${to} (${specifier})`)
    }
  }
  return faults
}

function allowed(from: string, to: string): boolean {
  if (to === from) return true
  const upward = (RANKS[to] ?? Infinity) > (RANKS[from] ?? 0)
  const sideways = PROTOCOLS.has(from) && PROTOCOLS.has(to)
  return !upward && !sideways
}

if (import.meta.main) {
  const faults = importFaults(resolve(process.argv[2] ?? join(import.meta.dirname, '../src')))
  for (const fault of faults) console.error(fault)
  if (faults.length > 0) process.exitCode = 1
}
