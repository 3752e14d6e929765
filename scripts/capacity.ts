/**
 * The capacity model of docs/scaling.md: what a number of messages a day takes in nodes, database and storage.
 *
 *     node scripts/capacity.ts 100e6            # messages a day
 *     node scripts/capacity.ts 100e6 --size 40000 --peak 5 --node-ms 0.9
 *
 * First the averages by arithmetic, then an hour of peak simulated second by second with random arrivals: how long mail
 * waits when that many nodes work. Inputs are measured values of one machine; measure yours, and give them as options.
 */
import { parseArgs } from 'node:util'

/** Name, default and meaning of each input. */
const INPUTS = {
  size: [10_000, 'bytes of a message'],
  events: [2.3, 'events per message: accepted, delivered, some opens and clicks'],
  'event-days': [30, 'days that events are kept'],
  'message-days': [1, 'days that messages are kept'],
  'node-ms': [
    0.92,
    'CPU milliseconds of a node per message (bench/results.md, e2e; with its database, so too much)',
  ],
  'db-ms': [0.9, 'CPU milliseconds of PostgreSQL per message (npm run drill -- R8, three nodes)'],
  'row-bytes': [2_400, 'bytes of rows and indexes per message, without its content (estimated)'],
  'event-bytes': [900, 'bytes of an event with its indexes (estimated)'],
  'log-factor': [2.2, 'bytes written to the database log per byte of rows (estimated)'],
  peak: [4, 'rate of the busiest hour against the average of the day'],
  use: [0.6, 'share of a processor that may be in use at the peak'],
  'node-cores': [2, 'processors of a node'],
  'session-s': [1.5, 'seconds that a delivery holds a connection (assumed)'],
} as const

type Input = keyof typeof INPUTS
const NAMES = Object.keys(INPUTS) as Input[]

function readInputs(): { perDay: number; given: Record<Input, number> } {
  const options = Object.fromEntries(NAMES.map((name) => [name, { type: 'string' as const }]))
  const { values, positionals } = parseArgs({ options, allowPositionals: true })
  const given = Object.fromEntries(
    NAMES.map((name) => [name, Number(values[name] ?? INPUTS[name][0])]),
  ) as Record<Input, number>
  const perDay = Number(positionals[0] ?? 1e6)
  const wrong = Object.entries({ 'messages a day': perDay, ...given }).find(([, value]) => !(value > 0))
  if (wrong) throw new Error(`${wrong[0]} must be a positive number`)
  return { perDay, given }
}

const DAY_S = 86_400

/** Everything that follows from the inputs by arithmetic; rates are per second at the peak. */
export function capacityOf(perDay: number, given: Record<Input, number>) {
  const average = perDay / DAY_S
  const peak = average * given.peak
  // A message that arrives is one transaction, its outcome another; events and counters follow in groups.
  const rowsWritten = peak * (3 + given.events)
  const bytesPerMessage = given['row-bytes'] + given.events * given['event-bytes'] + given.size
  return {
    average,
    peak,
    nodes: Math.ceil((peak * given['node-ms']) / 1000 / (given['node-cores'] * given.use)),
    databaseCores: Math.ceil((peak * given['db-ms']) / 1000 / given.use),
    rowsWritten,
    logMegabytesPerSecond: (peak * bytesPerMessage * given['log-factor']) / 1e6,
    connections: peak * given['session-s'],
    messageGigabytes: (perDay * given['message-days'] * (given['row-bytes'] + given.size)) / 1e9,
    eventGigabytes: (perDay * given['event-days'] * given.events * given['event-bytes']) / 1e9,
  }
}

const SIMULATED_S = 3_600

/** Waits, in seconds, when arrivals of a peak hour meet nodes that work at their full rate: a queue with random arrivals. */
export function simulate(
  peak: number,
  ratePerSecond: number,
  random: () => number,
): { mean: number; p99: number } {
  const waits: number[] = []
  let queued = 0
  for (let second = 0; second < SIMULATED_S; second++) {
    queued = Math.max(0, queued + arrivals(peak, random) - ratePerSecond)
    waits.push(queued / ratePerSecond)
  }
  waits.sort((a, b) => a - b)
  const mean = waits.reduce((sum, wait) => sum + wait, 0) / waits.length
  return { mean, p99: waits[Math.floor(waits.length * 0.99)] as number }
}

/** Poisson, by its normal approximation; mail comes in bursts, so with three times the variance. */
function arrivals(mean: number, random: () => number): number {
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
  return Math.max(0, mean + Math.sqrt(3 * mean) * normal)
}

const round = (value: number) =>
  value >= 100 ? Math.round(value).toLocaleString('en') : value.toPrecision(2)

function main(): void {
  const { perDay, given } = readInputs()
  console.log(`${perDay.toLocaleString('en')} messages a day, with`)
  for (const name of NAMES) console.log(`  --${name} ${given[name]}   ${INPUTS[name][1]}`)
  const capacity = capacityOf(perDay, given)
  const rate = (capacity.nodes * given['node-cores'] * 1000) / given['node-ms']
  const waits = simulate(capacity.peak, rate, Math.random)
  const rows: [string, string][] = [
    ['messages a second, average and peak', `${round(capacity.average)} and ${round(capacity.peak)}`],
    ['nodes', `${capacity.nodes} of ${given['node-cores']} processors`],
    ['processors of PostgreSQL', String(capacity.databaseCores)],
    ['rows written a second at the peak', round(capacity.rowsWritten)],
    ['database log at the peak', `${round(capacity.logMegabytesPerSecond)} MB/s`],
    ['connections to receivers at the peak', round(capacity.connections)],
    ['messages kept', `${round(capacity.messageGigabytes)} GB`],
    ['events kept', `${round(capacity.eventGigabytes)} GB`],
    ['simulated wait in a peak hour, mean and p99', `${round(waits.mean)} s and ${round(waits.p99)} s`],
  ]
  console.log('')
  for (const [name, value] of rows) console.log(`${name.padEnd(46)}${value}`)
}

const USAGE = `node scripts/capacity.ts [MESSAGES A DAY] [--NAME VALUE]...

${NAMES.map((name) => `  --${name.padEnd(14)}${INPUTS[name][1]} (${INPUTS[name][0]})`).join('\n')}`

if (import.meta.main) {
  try {
    if (process.argv.includes('--help')) console.log(USAGE)
    else main()
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${USAGE}`)
    process.exitCode = 2
  }
}
