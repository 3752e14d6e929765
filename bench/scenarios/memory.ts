/** Memory at rest, under load and after it. */
import { setTimeout as sleep } from 'node:timers/promises'
import { measureFlow, startSink } from '../support/flow.ts'
import { makeContent, singleFields } from '../support/messages.ts'
import type { Options } from '../support/options.ts'
import { type Memory, memoryOf } from '../support/processes.ts'
import type { Section } from '../support/results.ts'
import { type Rig, withRig } from '../support/rig.ts'
import type { Database } from '../support/service.ts'
import { formatNumber, median } from '../support/stats.ts'
import { ours } from '../support/systems.ts'
import { amountsOf, CONTENT_BYTES, ourName } from './e2e.ts'

/** Time for work that continues after the start, and for the collections after that. */
const START_REST_MS = 20_000
/** The service returns memory after a minute of rest, one thread after the other. */
const REST_MS = 90_000
const REST_SHORT_MS = 1_000
const PEAK_MAX_MB = 450

interface Run {
  database: Database
  started: Memory
  peak: Memory
  rested: Memory
}

export async function run(options: Options): Promise<Section> {
  const runs: Run[] = []
  for (let at = 1; at <= options.runs; at++)
    for (const database of options.databases)
      runs.push(await withRig(options.folder, (rig) => measure(rig, database, options)))
  const mbOf = (database: Database, when: 'started' | 'peak' | 'rested', key: keyof Memory) =>
    median(runs.filter((one) => one.database === database).map((one) => one[when][key]))
  const medianOf = (...of: [Database, 'started' | 'peak' | 'rested']) =>
    `${formatNumber(mbOf(...of, 'rssMb'), 0)} / ${formatNumber(mbOf(...of, 'pssMb'), 0)}`
  const peakMb = mbOf('sqlite', 'peak', 'pssMb')
  return {
    title: 'Memory',
    notes: [
      `RSS / PSS in MB: after the start, the highest during ${amountsOf(options).measured.count} messages of 10 KB end to end, and a minute and a half after them.`,
      "The database server's processes are included.",
    ],
    bars: options.databases.includes('sqlite')
      ? [
          {
            what: 'highest PSS end to end on SQLite',
            bar: `at most ${PEAK_MAX_MB} MB`,
            seen: `${formatNumber(peakMb, 0)} MB`,
            held: peakMb <= PEAK_MAX_MB,
          },
        ]
      : [],
    tables: [
      {
        head: ['System', 'Started', 'Highest', 'At rest again'],
        rows: options.databases.map((database) => [
          ourName(database),
          medianOf(database, 'started'),
          medianOf(database, 'peak'),
          medianOf(database, 'rested'),
        ]),
      },
    ],
    raw: runs,
  }
}

async function measure(rig: Rig, database: Database, options: Options): Promise<Run> {
  const content = makeContent(CONTENT_BYTES)
  const sink = await startSink(rig)
  const system = await ours(ourName(database), database, ({ domain }) => singleFields(domain, content)).start(
    rig,
    sink,
  )
  await sleep(options.short ? REST_SHORT_MS : START_REST_MS)
  const started = memoryOf(system.roots)
  const { peak } = await measureFlow(sink, system, amountsOf(options).measured)
  await sleep(options.short ? REST_SHORT_MS : REST_MS)
  const rested = memoryOf(system.roots)
  await system.stop()
  return { database, started, peak, rested }
}
