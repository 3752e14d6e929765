/**
 * What code one plain message runs through: files and functions of `src` by folder, without libraries.
 *
 *     npm run walk                 # files and functions by folder
 *     npm run walk -- --files      # and the names of the functions, file by file
 *
 * - accept: a POST of from, to, subject and text, until the 200, and until the delivery waits in its lane.
 * - socket: from there to the final dot on a new connection to a relay, signed. "Beyond accept" are the files that accept
 *   does not touch, and the functions that it does not call.
 * - bounce: a GET of one address on the bounce list.
 *
 * The service runs in this process, on SQLite, and V8 counts the calls in all its threads. Its clock stands still, so
 * no periodic work runs meanwhile; the lane has a rate, so a delivery waits until the clock is moved. A function is
 * counted if every round calls it more often than any idle time does. The first messages, which load modules and fill
 * caches, are not measured. The top level of a module is no function; "named" leaves out anonymous functions and fields.
 */
import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import { type Profiler, Session } from 'node:inspector/promises'
import { dirname, join, relative } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { createTestClock } from '../test/support/clock.ts'
import { ownAddress, startTestService } from '../test/support/service.ts'
import { createSink } from '../test/support/smtp-sink.ts'

const ROOT = join(import.meta.dirname, '..')
/** So many messages do not wait in the lane. */
const UNPACED = 2
/** Fill the caches. */
const FIRST_ROUNDS = 1
const ROUNDS = 3
/** Between messages of the lane; shorter than what the caches keep. */
const INTERVAL_MS = 1_000
/** Between the times of the lane and those of periodic work. */
const APART_MS = 333
/**
 * The service is at rest when nothing has run in so many looks in a row, with this real time before each. Its clock stands still,
 * so it comes to rest; on a busy machine that takes longer. One look is not enough: it may fall into a sync of the disk.
 */
const QUIET_LOOKS = 2
const LOOK_MS = 50
const LOOKS_MAX = 600
const BOUNCED = 'gone@example.org'

/** Calls by function, as `<path>\n<offset>\n<name>`. */
type Calls = Map<string, number>
export interface WalkedFile {
  path: string
  /** In order, as `name:line`; the name of an anonymous one is empty. */
  functions: string[]
}
export interface Walk {
  name: string
  files: WalkedFile[]
}

type WalkName = 'accept' | 'socket' | 'bounce'

/** Sends and reads a few messages; takes some seconds. The same functions each time. */
export async function measureWalks(): Promise<Record<WalkName, Walk>> {
  const closers: (() => unknown)[] = []
  const t = { after: (close: () => unknown) => closers.unshift(close) } as Parameters<
    typeof startTestService
  >[0]
  try {
    const sink = await createSink({ host: ownAddress() })
    t.after(() => sink.close())
    const clock = createTestClock(Date.now())
    const env = {
      SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
      SENDWRIGHT_RATE_LIMIT: '100',
    }
    const { url, domain, key, call } = await startTestService(t, env, { clock, operation: (spec) => spec })
    const limits = { connections: 1, rate: `1/${INTERVAL_MS / 1000}s` }
    await accepted(call('PUT', '/sendwright/v1/shaping/relay:default/limits', { json: limits }))
    await accepted(call('POST', `/v3/${domain}/bounces`, { form: { address: BOUNCED } }))
    const authorization = `Basic ${Buffer.from(`api:${key}`).toString('base64')}`
    const curl = (method: string, path: string, body?: URLSearchParams) =>
      answered(url + path, method, authorization, body)
    const coverage = await startCoverage()
    t.after(() => coverage.stop())

    /** All that has run since the last time, when it has come to rest. */
    const settled = async () => {
      const all: Calls = new Map()
      let quiet = 0
      for (let looks = 0; looks < LOOKS_MAX; looks++) {
        await sleep(LOOK_MS)
        const calls = await coverage.take()
        for (const [name, count] of calls) all.set(name, (all.get(name) ?? 0) + count)
        quiet = calls.size === 0 ? quiet + 1 : 0
        if (quiet === QUIET_LOOKS) return all
      }
      throw new Error(`the service does not come to rest: ${[...all.keys()].join(' ')}`)
    }
    const taken: Record<WalkName | 'idle', Calls[]> = { idle: [], accept: [], socket: [], bounce: [] }
    const form = { from: `a@${domain}`, to: 'alice@example.org', subject: 'Hello', text: 'Hi.' }
    const send = () => curl('POST', `/v3/${domain}/messages`, new URLSearchParams(form))
    await clock.advance(APART_MS)
    for (let count = 0; count < UNPACED; count++) await send()
    await sink.waitFor(UNPACED)
    for (let round = -FIRST_ROUNDS; round < ROUNDS; round++) {
      await settled()
      await send()
      const accept = await settled()
      await clock.advance(INTERVAL_MS - 1)
      await settled()
      const dot = sink.hold('DATA-DOT')
      await clock.advance(1)
      const connection = await dot.reached
      const socket = await coverage.take()
      dot.release()
      await settled()
      connection.drop()
      await settled()
      await curl('GET', `/v3/${domain}/bounces/${BOUNCED}`)
      const bounce = await settled()
      const idle = await settled()
      if (round < 0) continue
      taken.idle.push(idle)
      taken.accept.push(accept)
      taken.socket.push(socket)
      taken.bounce.push(bounce)
    }
    const walk = (name: WalkName) => ({ name, files: filesOf(common(taken[name], taken.idle)) })
    return { accept: walk('accept'), socket: walk('socket'), bounce: walk('bounce') }
  } finally {
    for (const close of closers) await close()
  }
}

async function accepted(answer: Promise<{ status: number; text: string }>): Promise<void> {
  const { status, text } = await answer
  if (status !== 200) throw new Error(`${status}: ${text}`)
}

/** On a connection of its own, as curl does. */
function answered(url: string, method: string, authorization: string, body?: URLSearchParams): Promise<void> {
  const type = body && { 'content-type': 'application/x-www-form-urlencoded' }
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const sent = request(url, { method, agent: false, headers: { authorization, ...type } }, (response) => {
    response.resume().once('end', () => {
      if (response.statusCode === 200) resolve()
      else reject(new Error(`${method} ${url}: ${response.statusCode}`))
    })
  })
  sent.once('error', reject).end(body?.toString())
  return promise
}

const START = [
  ['Profiler.enable', {}],
  ['Profiler.startPreciseCoverage', { callCount: true, detailed: false }],
] as const

/** Counts calls in this thread and in those that it starts. */
async function startCoverage() {
  const session = new Session()
  session.connect()
  /** What settles the questions to each thread, by its session. */
  const workers = new Map<string, Map<number, (result: unknown) => void>>()
  let lastId = 0
  const ask = async (sessionId: string, method: string, params: object): Promise<unknown> => {
    const { promise, resolve } = Promise.withResolvers<unknown>()
    const id = ++lastId
    workers.get(sessionId)?.set(id, resolve)
    const message = JSON.stringify({ id, method, params })
    await session.post('NodeWorker.sendMessageToWorker', { sessionId, message }).catch(resolve)
    return promise
  }
  /** Asks this thread and all others. */
  const all = (method: string, params = {}) =>
    Promise.all([session.post(method, params), ...[...workers.keys()].map((id) => ask(id, method, params))])
  session.on('NodeWorker.attachedToWorker', ({ params }) => {
    workers.set(params.sessionId, new Map())
    for (const [method, options] of START) void ask(params.sessionId, method, options)
  })
  session.on('NodeWorker.receivedMessageFromWorker', ({ params }) => {
    const { id, result } = JSON.parse(params.message) as { id: number; result: unknown }
    workers.get(params.sessionId)?.get(id)?.(result)
    workers.get(params.sessionId)?.delete(id)
  })
  // Some end when they are idle.
  session.on('NodeWorker.detachedFromWorker', ({ params }) => {
    for (const resolve of workers.get(params.sessionId)?.values() ?? []) resolve(undefined)
    workers.delete(params.sessionId)
  })
  for (const [method, options] of START) await session.post(method, options)
  await session.post('NodeWorker.enable', { waitForDebuggerOnStart: false })
  return {
    async take(): Promise<Calls> {
      const answers = (await all('Profiler.takePreciseCoverage')) as (
        | Profiler.TakePreciseCoverageReturnType
        | undefined
      )[]
      return callsOf(answers.flatMap((answer) => answer?.result ?? []))
    },
    stop: () => session.disconnect(),
  }
}

function callsOf(scripts: readonly Profiler.ScriptCoverage[]): Calls {
  const calls: Calls = new Map()
  for (const { url, functions } of scripts) {
    const path = url.startsWith('file:') ? relative(ROOT, fileURLToPath(url)) : ''
    if (!path.startsWith('src/')) continue
    for (const { functionName, ranges } of functions) {
      const [{ startOffset, count } = { startOffset: 0, count: 0 }] = ranges
      if (count === 0 || startOffset === 0) continue
      const name = [path, startOffset, functionName].join('\n')
      calls.set(name, (calls.get(name) ?? 0) + count)
    }
  }
  return calls
}

/** What each round called more often than any idle one. */
function common([first = new Map(), ...others]: readonly Calls[], idle: readonly Calls[]): string[] {
  return [...first.keys()].filter((name) => {
    const idleCalls = Math.max(...idle.map((calls) => calls.get(name) ?? 0))
    return [first, ...others].every((calls) => (calls.get(name) ?? 0) > idleCalls)
  })
}

function filesOf(names: readonly string[]): WalkedFile[] {
  const found = names.map((name) => name.split('\n') as [path: string, offset: string, name: string])
  const byPath = Object.entries(Object.groupBy(found, ([path]) => path))
  return byPath
    .map(([path, functions = []]) => {
      const source = readFileSync(join(ROOT, path), 'utf8')
      const byPlace = functions.toSorted((a, b) => Number(a[1]) - Number(b[1]))
      const lineOf = (offset: number) => source.slice(0, offset).split('\n').length
      return { path, functions: byPlace.map(([, offset, name]) => `${name}:${lineOf(Number(offset))}`) }
    })
    .sort((a, b) => (a.path < b.path ? -1 : 1))
}

/** The totals, then a line for each folder, with its files below it if they are wanted. */
export function walkText({ name, files }: Walk, withFiles: boolean): string {
  const folders = Object.entries(Object.groupBy(files, ({ path }) => dirname(path)))
  return [
    line(name, files.length, functionsOf(files)),
    ...folders.flatMap(([folder, inside = []]) => [
      line(`  ${folder}`, inside.length, functionsOf(inside)),
      ...(withFiles ? inside.map(({ path, functions }) => `      ${path}: ${functions.join(', ')}`) : []),
    ]),
  ].join('\n')
}

/** How many files a walk has that another one does not touch, and how many functions that it does not call. */
export function beyondText(walk: Walk, other: Walk): string {
  const known = new Map(other.files.map(({ path, functions }) => [path, functions]))
  const files = walk.files.filter(({ path }) => !known.has(path))
  const functions = walk.files.flatMap((file) =>
    file.functions.filter((name) => !known.get(file.path)?.includes(name)),
  )
  return line(`${walk.name} beyond ${other.name}`, files.length, functions)
}

const functionsOf = (files: readonly WalkedFile[]) => files.flatMap(({ functions }) => functions)

const line = (what: string, files: number, functions: readonly string[]) =>
  row(what, files, functions.length, functions.filter((name) => !/^[:<]/.test(name)).length)

const row = (what: string, ...cells: (number | string)[]) =>
  what.padEnd(36) + cells.map((cell) => String(cell).padStart(11)).join('')

if (import.meta.main) {
  const { values } = parseArgs({ options: { files: { type: 'boolean', default: false } } })
  const { accept, socket, bounce } = await measureWalks()
  console.log(row('', 'files', 'functions', 'named'))
  for (const walk of [accept, socket, bounce]) console.log(`${walkText(walk, values.files)}\n`)
  console.log(beyondText(socket, accept))
}
