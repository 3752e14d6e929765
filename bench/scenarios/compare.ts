/**
 * The CPU of a plain message here against that of other checkouts. Their services run at the same time, and blocks of load take turns
 * among them, so that what else happens on the machine meets them all: single runs of one version differ by 20 %, the quotient of the
 * sums by 4 %.
 */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { measureFlow, startSink } from '../support/flow.ts'
import { makeContent, singleFields } from '../support/messages.ts'
import type { Options } from '../support/options.ts'
import { cpuSeconds, memoryOf } from '../support/processes.ts'
import type { Section } from '../support/results.ts'
import { type Rig, withRig } from '../support/rig.ts'
import type { Database } from '../support/service.ts'
import { formatNumber, median } from '../support/stats.ts'
import { ours } from '../support/systems.ts'
import { CONTENT_BYTES, ourName } from './e2e.ts'

/** Messages of each service and block, and of each before the first block. */
const AMOUNTS = { blocks: 12, messages: 2_000, warmUp: 18_000 }
const AMOUNTS_SHORT = { blocks: 2, messages: 100, warmUp: 100 }
/** The warm-up takes turns too: V8 compiles for all of them under the same conditions. */
const WARM_UP_BLOCKS = 3
/** What a service does after its last delivery, such as writing events and counting, belongs to the block. */
const REST_MS = 500

interface Block {
  cpuUs: number
  perSecond: number
  pssMb: number
}

export async function run(options: Options): Promise<Section> {
  const folders = [join(import.meta.dirname, '../..'), ...options.others]
  if (folders.length === 1) throw new Error('compare: name another checkout by --with')
  const amounts = options.short ? AMOUNTS_SHORT : AMOUNTS
  const rows: string[][] = []
  const raw: Record<string, Block[]> = {}
  for (const database of options.databases)
    for (let at = 1; at <= options.runs; at++) {
      const all = await withRig(options.folder, (rig) => measure(rig, database, folders, amounts))
      const here = all.get(folders[0]!)!
      for (const [folder, blocks] of all) {
        raw[`${database} ${at} ${folder}`] = blocks
        rows.push([
          `${ourName(database)}, ${folder === folders[0] ? 'here' : commitOf(folder)}`,
          formatNumber(sum(blocks) / blocks.length, 0),
          formatNumber(sum(here) / sum(blocks), 3),
          formatNumber(median(blocks.map(({ cpuUs }, block) => here[block]!.cpuUs / cpuUs)), 3),
          formatNumber(median(blocks.map(({ perSecond }) => perSecond)), 0),
          formatNumber(Math.max(...blocks.map(({ pssMb }) => pssMb)), 0),
        ])
      }
    }
  return {
    title: 'Against other checkouts, in blocks of load that take turns',
    notes: [
      `${amounts.blocks} blocks of ${amounts.messages} messages each, 10 KB over HTTP, signed, delivered, after ${amounts.warmUp} for the compiler; ${options.runs} runs.`,
      'Quotients are of the CPU here by the CPU there: below 1, a message is cheaper here.',
    ],
    bars: [],
    tables: [
      {
        head: ['Checkout', 'CPU µs', 'Quotient of the sums', 'Median of the blocks', 'Messages/s', 'PSS MB'],
        rows,
      },
    ],
    raw,
  }
}

const commitOf = (folder: string) =>
  execFileSync('git', ['-C', folder, 'log', '-1', '--format=%h'], { encoding: 'utf8' }).trim()

const sum = (blocks: readonly Block[]) => blocks.reduce((total, { cpuUs }) => total + cpuUs, 0)

async function measure(
  rig: Rig,
  database: Database,
  folders: readonly string[],
  { blocks, messages, warmUp }: typeof AMOUNTS,
): Promise<Map<string, Block[]>> {
  const systems = new Map<string, Awaited<ReturnType<typeof start>>>()
  for (const folder of folders) systems.set(folder, await start(rig, database, folder))
  const found = new Map<string, Block[]>(folders.map((folder) => [folder, []]))
  for (let block = -WARM_UP_BLOCKS; block < blocks; block++)
    for (const folder of block % 2 === 0 ? folders : folders.toReversed()) {
      const { sink, system } = systems.get(folder)!
      const count = block < 0 ? Math.ceil(warmUp / WARM_UP_BLOCKS) : messages
      const before = cpuSeconds(system.roots)
      const firstNumber = (block + WARM_UP_BLOCKS) * Math.max(warmUp, messages)
      const { perSecond, peak } = await measureFlow(sink, system, { count, firstNumber })
      await sleep(REST_MS)
      const cpuUs = ((cpuSeconds(system.roots) - before) * 1e6) / count
      const pssMb = Math.max(peak.pssMb, memoryOf(system.roots).pssMb)
      if (block >= 0) found.get(folder)!.push({ cpuUs, perSecond, pssMb })
    }
  for (const { system } of systems.values()) await system.stop()
  return found
}

async function start(rig: Rig, database: Database, folder: string) {
  const content = makeContent(CONTENT_BYTES)
  const launcher = join(folder, 'bin/sendwright')
  const sink = await startSink(rig)
  const candidate = ours(folder, database, ({ domain }) => singleFields(domain, content), { launcher })
  return { sink, system: await candidate.start(rig, sink) }
}
