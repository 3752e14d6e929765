/**
 * Checks the direction of imports between the folders of `src/`:
 *
 *     protocols  <-  foundation  <-  engine  <-  resources  <-  service
 *
 * A folder may import itself and any folder of a lower rank; protocol folders also stand apart from
 * each other, except for the pairs listed here. Cycles are the linter's work (noImportCycles).
 */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'

const RANKS: Record<string, number> = {}
const LAYERS = [
  ['base'],
  ['smtp', 'mime', 'dkim', 'dsn', 'arf', 'dns', 'mta-sts'],
  ['config', 'store', 'http'],
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
    ],
  ],
  ['service', 'main', 'cli'],
]
LAYERS.forEach((folders, rank) => {
  for (const folder of folders) RANKS[folder] = rank
})
const PROTOCOLS = new Set(LAYERS[1])
const root = resolve(import.meta.dirname, '../src')

/** Every specifier of a static import, a re-export or a dynamic import with a literal. */
function specifiersOf(source: string): string[] {
  const pattern =
    /(?:^|\n)\s*(?:import|export)\s(?:[^'"`;]*?\sfrom\s)?\s*['"]([^'"]+)['"]|import\(\s*['"]([^'"]+)['"]/g
  return [...source.matchAll(pattern)].map((match) => (match[1] ?? match[2]) as string)
}

const areaOf = (file: string) => (relative(root, file).split('/')[0] as string).replace(/\.ts$/, '')
const faults: string[] = []
const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))

for (const name of files) {
  if (name.endsWith('.test.ts')) continue
  const file = join(root, name)
  const from = areaOf(file)
  if (RANKS[from] === undefined)
    faults.push(`src/${name}: folder "${from}" has no rank in scripts/check-imports.ts`)
  for (const specifier of specifiersOf(readFileSync(file, 'utf8'))) {
    if (!specifier.startsWith('.')) continue
    const to = areaOf(resolve(dirname(file), specifier))
    if (to === from) continue
    const upward = (RANKS[to] ?? 99) > (RANKS[from] ?? 0)
    const sideways = PROTOCOLS.has(from) && PROTOCOLS.has(to)
    if (upward || sideways) faults.push(`src/${name}: ${from} must not import ${to} (${specifier})`)
  }
}

for (const fault of faults) console.error(fault)
if (faults.length > 0) process.exit(1)
