/** The CPU cost of a message: a profile of the service end to end, compared with the physical floor. */
import { globSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type Floor, measureFloor } from '../support/floor.ts'
import { measureFlow, startSink } from '../support/flow.ts'
import { makeContent, singleFields } from '../support/messages.ts'
import type { Options } from '../support/options.ts'
import type { Section, Table } from '../support/results.ts'
import { withRig } from '../support/rig.ts'
import { formatNumber, monotonicMs } from '../support/stats.ts'
import { ours } from '../support/systems.ts'
import { amountsOf, CONTENT_BYTES, ourName } from './e2e.ts'

const FUNCTIONS_SHOWN = 10
const MODULES_SHOWN = 20
/** Approximate number of messages that share a sync under load: the store commits waiting units together. */
const MESSAGES_PER_SYNC = 16
/** A message needs at least two commits: accepted, and settled. */
const COMMITS = 2
const PROJECT = join(import.meta.dirname, '../..')

interface CpuProfile {
  nodes: { id: number; callFrame: { functionName: string; url: string; lineNumber: number } }[]
  samples: number[]
  /** Microseconds from one sample to the next; the first counts from `startTime`, on CLOCK_MONOTONIC. */
  timeDeltas: number[]
  startTime: number
}

/** In `monotonicMs`. */
interface Window {
  from: number
  to: number
}

interface ThreadProfile {
  thread: string
  busyMs: number
  /** Self time in ms by function and by module. */
  functions: [string, number][]
  modules: [string, number][]
}

export async function run(options: Options): Promise<Section> {
  const database = options.databases[0] ?? 'sqlite'
  const content = makeContent(CONTENT_BYTES)
  const fields = ({ domain }: { domain: string }) => singleFields(domain, content)
  const { warmUp, restMs, measured } = amountsOf(options)
  const plain = await withRig(options.folder, async (rig) => {
    const sink = await startSink(rig)
    const system = await ours('plain', database, fields).start(rig, sink)
    await measureFlow(sink, system, warmUp)
    await sleep(restMs)
    return measureFlow(sink, system, measured)
  })
  const threads = await withRig(options.folder, async (rig) => {
    const folder = join(rig.folder, 'profiles')
    mkdirSync(folder)
    const sink = await startSink(rig)
    const nodeFlags = ['--cpu-prof', `--cpu-prof-dir=${folder}`]
    const system = await ours('profiled', database, fields, { nodeFlags }).start(rig, sink)
    await measureFlow(sink, system, warmUp)
    await sleep(restMs)
    const from = monotonicMs()
    await measureFlow(sink, system, measured)
    const window = { from, to: monotonicMs() }
    await system.stop() // the profiles are written at exit
    return globSync(join(folder, '*.cpuprofile')).map((file) => readProfile(file, window))
  })
  if (threads.length === 0) throw new Error('the service wrote no profile')
  if (threads.every(({ busyMs }) => busyMs === 0)) throw new Error('no sample lies within the measured time')
  threads.sort((a, b) => b.busyMs - a.busyMs)
  const floor = await measureFloor(options.folder, CONTENT_BYTES, options.short)
  return {
    title: `Profile end to end, ${ourName(database)}`,
    notes: [
      `${measured.count} messages of 10 KB, in a warm service; self time of each JavaScript thread. Threads of node itself (signatures, file work) appear in no profile. A thread that waits for the disk counts as busy in the function that waits.`,
      `A message costs ${formatNumber(plain.cpuPerThousand * 1_000, 0)} µs of CPU (measured without the profiler, warm).`,
    ],
    bars: [],
    tables: [
      floorTable(floor, plain.cpuPerThousand * 1_000),
      ...threads.filter(({ busyMs }) => busyMs > 0).flatMap((thread) => tablesOf(thread, measured.count)),
    ],
    raw: { floor, cpuPerThousand: plain.cpuPerThousand, threads },
  }
}

function floorTable(floor: Floor, messageUs: number): Table {
  const syncShare = (floor.syncCpuUs * COMMITS) / MESSAGES_PER_SYNC
  const sum = floor.signatureUs + syncShare + floor.transactionUs
  const row = (what: string, us: number) => [
    what,
    formatNumber(us, 0),
    `${formatNumber((us / messageUs) * 100)} %`,
  ]
  return {
    head: ['Physical floor of a message', 'CPU µs', 'Share of ours'],
    rows: [
      row('one RSA-2048 signature', floor.signatureUs),
      row(
        `its share of ${COMMITS} syncs, ${MESSAGES_PER_SYNC} messages each (one takes ${formatNumber(floor.syncUs, 0)} µs, ${formatNumber(floor.syncCpuUs, 0)} of CPU)`,
        syncShare,
      ),
      row('one transaction over loopback, both ends', floor.transactionUs),
      row('together', sum),
      [`ours`, formatNumber(messageUs, 0), `${formatNumber(messageUs / sum, 2)} × the floor`],
    ],
  }
}

function tablesOf({ thread, busyMs, functions, modules }: ThreadProfile, messages: number): Table[] {
  const rows = (list: [string, number][], shown: number) =>
    list
      .slice(0, shown)
      .map(([name, ms]) => [
        name,
        `${formatNumber((ms / busyMs) * 100)} %`,
        formatNumber((ms * 1_000) / messages, 1),
      ])
  const busy = `${thread}, busy ${formatNumber(busyMs / 1_000)} s`
  return [
    { head: [`Function (${busy})`, 'Self time', 'µs a message'], rows: rows(functions, FUNCTIONS_SHOWN) },
    { head: [`Module (${thread})`, 'Self time', 'µs a message'], rows: rows(modules, MODULES_SHOWN) },
  ]
}

function readProfile(file: string, window: Window): ThreadProfile {
  const profile = JSON.parse(readFileSync(file, 'utf8')) as CpuProfile
  // CPU.<date>.<time>.<pid>.<thread>.<number>.cpuprofile; thread 0 is the main one.
  const id = Number(file.split('.').at(-3))
  return { thread: id === 0 ? 'main thread' : `worker ${id}`, ...selfTimes(profile, window) }
}

/** Self time of functions and modules within the window, in descending order, without waiting. */
export function selfTimes(
  { nodes, samples, timeDeltas, startTime }: CpuProfile,
  window: Window,
): Omit<ThreadProfile, 'thread'> {
  const byId = new Map(nodes.map((node) => [node.id, node.callFrame]))
  const functions = new Map<string, number>()
  const modules = new Map<string, number>()
  let busyMs = 0
  let now = startTime / 1_000
  for (const [at, id] of samples.entries()) {
    const frame = byId.get(id)
    const ms = Math.max(0, timeDeltas[at] ?? 0) / 1_000
    now += ms
    if (now < window.from || now > window.to) continue
    // "(program)" is native code outside JavaScript; on a worker it is mostly waiting in the event loop.
    if (!frame || frame.functionName === '(idle)') continue
    const place = placeOf(frame.url)
    const name = `${frame.functionName || '(anonymous)'} ${place}${frame.url === '' ? '' : `:${frame.lineNumber + 1}`}`
    busyMs += ms
    functions.set(name, (functions.get(name) ?? 0) + ms)
    const module = moduleOf(place) || frame.functionName
    modules.set(module, (modules.get(module) ?? 0) + ms)
  }
  const sorted = (map: Map<string, number>) => [...map].sort(([, a], [, b]) => b - a)
  return { busyMs, functions: sorted(functions), modules: sorted(modules) }
}

/** A path within the project, or the URL unchanged. */
function placeOf(url: string): string {
  if (!url.startsWith('file:')) return url
  const path = fileURLToPath(url)
  const packages = path.lastIndexOf('/node_modules/')
  if (packages >= 0) return path.slice(packages + 1)
  return path.startsWith(PROJECT) ? path.slice(PROJECT.length + 1) : path
}

/** `src/protocols/smtp`, `node_modules/kysely`, `node:internal`. */
function moduleOf(place: string): string {
  if (place.startsWith('node:')) return place.split('/').slice(0, 2).join('/')
  const depth = place.startsWith('node_modules/@') || place.startsWith('src/') ? 3 : 2
  return place.split('/').slice(0, depth).join('/')
}
