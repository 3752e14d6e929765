/** `npm run bench`: runs scenarios one after the other, prints and stores their results. */
import { describeEnvironment } from './support/environment.ts'
import { type Options, readOptions, USAGE } from './support/options.ts'
import { type Section, type StoredSection, sectionText, store, table } from './support/results.ts'
import { closeRigs, within } from './support/rig.ts'

type Scenario = { run(options: Options): Promise<Section> }

/** In the order of results.md. */
const SCENARIOS: Record<string, () => Promise<Scenario>> = {
  accept: () => import('./scenarios/accept.ts'),
  e2e: () => import('./scenarios/e2e.ts'),
  tracking: () => import('./scenarios/tracking.ts'),
  accounts: () => import('./scenarios/accounts.ts'),
  batch: () => import('./scenarios/batch.ts'),
  latency: () => import('./scenarios/latency.ts'),
  backlog: () => import('./scenarios/backlog.ts'),
  events: () => import('./scenarios/events.ts'),
  metrics: () => import('./scenarios/metrics.ts'),
  pages: () => import('./scenarios/pages.ts'),
  memory: () => import('./scenarios/memory.ts'),
  peers: () => import('./scenarios/peers.ts'),
  reception: () => import('./scenarios/reception.ts'),
  profile: () => import('./scenarios/profile.ts'),
  history: () => import('./scenarios/history.ts'),
  compare: () => import('./scenarios/compare.ts'),
}
/** Needs another checkout, so it is not among all. */
const BY_NAME = 'compare'

/** Ends a scenario that hangs although all its waits are bounded. */
const SCENARIO_LIMIT_MS = 3 * 3_600_000

/** Runs the named scenarios, or all. Returns the exit code: 0 when all ran, whether their bars held or not. */
async function main(args: readonly string[]): Promise<number> {
  const { names, options, help } = readOptions(args)
  const known = Object.keys(SCENARIOS)
  if (help) {
    console.log(USAGE.replace('%SCENARIOS%', known.join(', ')))
    return 0
  }
  const unknown = names.filter((name) => !known.includes(name))
  if (unknown.length > 0)
    throw new Error(`There is no scenario "${unknown[0]}"; there are ${known.join(', ')}`)
  let failed = 0
  for (const name of names.length > 0 ? names : known.filter((one) => one !== BY_NAME)) {
    try {
      await runScenario(
        name,
        args.filter((arg) => !known.includes(arg)),
        options,
      )
    } catch (error) {
      failed++
      console.error(`${name} failed:`, error)
      await closeRigs() // of a scenario that exceeded its limit
    }
  }
  if (failed > 0) console.error(`${failed} scenario(s) failed`)
  return failed === 0 ? 0 : 1
}

async function runScenario(name: string, flags: readonly string[], options: Options): Promise<void> {
  console.log(`\n${name}`)
  const environment = describeEnvironment(options.folder)
  const { run } = await (SCENARIOS[name] as () => Promise<Scenario>)()
  const section = await within(SCENARIO_LIMIT_MS, name, run(options))
  const command = ['npm run bench --', name, ...flags].join(' ')
  const stored: StoredSection = { scenario: name, command, environment, ...section }
  if (options.out !== null) store(options.out, Object.keys(SCENARIOS), stored)
  console.log(sectionText(stored))
  if (section.bars.length === 0) return
  const rows = section.bars.map(({ what, bar, seen, held }) => [what, bar, seen, held ? 'yes' : 'no'])
  console.log(table({ head: ['What must hold', 'Bar', 'Seen', 'Held'], rows }))
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    console.error(`${signal}: stopping`)
    void closeRigs().finally(() => process.exit(130))
  })
}

main(process.argv.slice(2)).then(
  async (code) => {
    await closeRigs()
    process.exit(code)
  },
  async (error: unknown) => {
    console.error(error instanceof Error ? error.message : error)
    await closeRigs()
    process.exit(1)
  },
)
