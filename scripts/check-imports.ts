/**
 * Checks the direction of imports between the folders of `src/` (or of the folder given as argument):
 *
 *     base  <-  protocols  <-  foundation  <-  engine  <-  resources, in layers  <-  service
 *
 * A folder may import itself and any folder of a lower layer; those of the foundation and of the engine also
 * each other. So there is no circle among protocols or resources. Nothing outside `src/` is imported by path. Tests
 * may import what they like. Circles of files are found by the linter (noImportCycles).
 */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'

const RANKS: Record<string, number> = {}
/** Files of types that every area is written against; they may import types from everywhere. */
const CONTRACTS = ['core', 'area']
/** From the lowest. Folders of one layer stand side by side: unless `TOGETHER` has it, none may import another. */
const LAYERS = [
  ['base'],
  ['smtp', 'mime', 'dkim', 'dsn', 'arf', 'dmarc', 'tls-rpt', 'dns', 'mta-sts', 'acme', 'traces'],
  ['config', 'store', 'nodes', 'http', 'http-posts', 'jobs'],
  ['delivery', 'inbound', 'events', ...CONTRACTS],
  ['domains', 'inbox'],
  ['accounts', 'certificates', 'lists', 'metrics', 'templates', 'webhooks'],
  ['tags'],
  ['suppressions', 'message-limits', 'rate-limits', 'ips'],
  ['messages'],
  ['tracking'],
  ['bounces', 'queue-api', 'logs', 'routes'],
  ['alerts', 'domain-reports', 'dynamic-pools'],
  ['system', 'backup', 'prometheus', 'validation', 'placement', 'tls-reports', 'sender-rules'],
  ['preflight', 'transfer'],
  ['moving'],
  ['open-core', 'areas', 'listeners', 'service', 'main', 'cli'],
]
/** Layers whose folders may import each other. */
const TOGETHER = new Set([2, 3, LAYERS.length - 1])
LAYERS.forEach((folders, rank) => {
  for (const folder of folders) RANKS[folder] = rank
})

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
  const areaOf = (file: string) => (relative(root, file).split(sep)[0] as string).replace(/\.ts$/, '')
  for (const name of readdirSync(root, { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.ts') || name.endsWith('.test.ts')) continue
    const file = join(root, name)
    const from = areaOf(file)
    if (RANKS[from] === undefined)
      faults.push(`src/${name}: folder "${from}" has no rank in scripts/check-imports.ts`)
    for (const { specifier, isType } of importsOf(readFileSync(file, 'utf8'))) {
      if (!specifier.startsWith('.') || (isType && CONTRACTS.includes(from))) continue
      const to = areaOf(resolve(dirname(file), specifier))
      if (!allowed(from, to)) faults.push(`src/${name}: ${from} must not import ${to} (${specifier})`)
    }
  }
  return faults
}

function allowed(from: string, to: string): boolean {
  if (to === from) return true
  const [above, below] = [RANKS[from] ?? 0, RANKS[to] ?? Number.POSITIVE_INFINITY]
  return below < above || (below === above && TOGETHER.has(above))
}

if (import.meta.main) {
  const faults = importFaults(resolve(process.argv[2] ?? join(import.meta.dirname, '../src')))
  for (const fault of faults) console.error(fault)
  if (faults.length > 0) process.exitCode = 1
}
