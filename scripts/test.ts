/**
 * Runs the tests: every `*.test.ts` below the folders named here but the slow ones, with `--slow` the rest; or those whose
 * path contains one of the arguments, whole (`npm test -- src/protocols/mime dkim/sign`). A file is slow that says why in a line
 * `// Slow: ...`. One that says why in a line `// By name: ...` runs only where it is named.
 *
 * 1. The dashboard is built, and one PostgreSQL started for the whole run, unless SENDWRIGHT_TEST_POSTGRES names one already.
 *    Where no files are named, the program is bundled for the processes that tests start.
 * 2. A few processes, each in a process group of its own, run the files one after another (test-process.ts). A file that
 *    says why in a line `// Own process: ...` has one to itself. Each has a time limit, and its temporary files in a folder
 *    that is removed afterwards. What a process leaves running is killed with it. The folders are in memory where
 *    that has room (test/support/memory-folder.ts), and SQLite syncs nothing (test/support/unsynced.ts).
 * 3. Failures as they occur, a summary, and as the last line `N passed, N failed`.
 * 4. What a file defines for each database (test/support/databases.ts) runs with SQLite, and with PostgreSQL among the slow
 *    ones; with both at once in a file that is slow, or says in a line `// Both databases: ...` why the statements behind
 *    it differ.
 *
 * A file that dies, hangs or holds no test counts as one failure. A skipped test is named loudly, and
 * counts as failed where CI=true. Nothing to run is a failure.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import type { Database } from '../test/support/databases.ts'
import { killGroup } from '../test/support/kill-group.ts'
import { memoryFolder } from '../test/support/memory-folder.ts'
import { type PostgresCluster, startPostgres } from '../test/support/postgres.ts'
import { treeProcessorMs } from './processor-time.ts'
import type { TestRecord } from './test-events.ts'
import type { Order } from './test-process.ts'

/**
 * Most files wait for sockets and databases at times: with five at a time two cores are used to five sixths, with four to less than four
 * fifths. Memory limits the rest.
 */
const FILES_AT_A_TIME = Math.min(5, availableParallelism() + 3)
/** Browsers, and processes that are flooded, leave less unused; five are slower. */
const SLOW_FILES_AT_A_TIME = Math.min(4, availableParallelism() + 2)
/** The longest files take 40 s: only a hang reaches it, also on a machine that is twenty times slower. */
const FILE_LIMIT_MS = 900_000
/** From the last test of a process to its end: a fraction of a second, if nothing is left open. Connections that are kept end within a minute. */
const END_LIMIT_MS = 90_000
/** A run is to take less than twenty minutes with installing and checking; on a slow machine it may take three times as long. */
const RUN_LIMIT_MS = 60 * 60_000
/** Modules of test files and leavings of their tests stay in its memory. */
const FILES_PER_PROCESS = 150
/** In MB: modules and services that live for seconds soon fill V8's own 1 to 16, whose collections take a twentieth of the processor time. */
const YOUNG_FLAGS = ['--min-semi-space-size=16', '--max-semi-space-size=64']
const RSS_MAX_BYTES = 1024 ** 3
/** A file says so, with its reason, if its tests would disturb others or be disturbed. */
const OWN_PROCESS = /^\/\/ Own process: ./m
/** A file says so, with its reason, if it is not about what most changes of code can break. */
const SLOW = /^\/\/ Slow: ./m
/** A file says so, with its reason, if neither run has time for it. */
const BY_NAME = /^\/\/ By name: ./m
const EACH_DATABASE = /\beach(?:Database|Store)\(/
/** A file says so, with its reason, if what holds with one database may not with the other. */
const BOTH_DATABASES = /^\/\/ Both databases: ./m
const COMPILE_CACHE = join(import.meta.dirname, '../node_modules/.cache/sendwright-test')
/** Only the end of a file's output is printed with its failures. */
const OUTPUT_SHOWN_CHARS = 4_000
/** How many of the slowest tests, and of the costliest files, are listed. */
const SHOWN = 10
/** Loaded into every process of a test. */
const PRELOADED = ['answer-shapes.ts', 'unsynced.ts'].map((name) =>
  join(import.meta.dirname, '../test/support', name),
)
/** Scenarios take longest: started first, they do not delay the end. */
const FOLDERS = ['test', 'src', 'web', 'scripts', 'bench']

/** A file, or what it defines for one of the databases; `postgres`: nothing else. */
interface Part {
  file: string
  databases: 'both' | Database
}

interface FileResult {
  /** As it is printed. */
  file: string
  durationMs: number
  /** Processor time of its process and all that it started, so without a PostgreSQL that all files share. */
  processorMs: number
  records: TestRecord[]
  /** How the process itself failed. */
  fault: string | undefined
  output: string
}

const NOTHING_RUN = { durationMs: 0, processorMs: 0, records: [], output: '' }

export interface RunOptions {
  /** The folder that holds `src`, `test` and so on. */
  root: string
  /** Parts of paths; empty: every file that is slow, or every other one. */
  filters: string[]
  slow: boolean
  fileLimitMs: number
  /** Calls `over` after that time, unless what it returns is called before; in place of a timer. */
  setLimit?: (ms: number, over: () => void) => () => void
  skippedIsFailed: boolean
  /** Takes one or more lines, without the last line end. */
  print(text: string): void
  /** When aborted, running files are killed and no more are started; its reason is reported. */
  stop: AbortSignal
}

/** `failed` counts skipped tests too where they count as failed. */
export type Totals = { passed: number; failed: number; skipped: number }

/** Runs the chosen files, prints their failures and a summary; removes all their temporary files. */
export async function runTests(options: RunOptions): Promise<Totals> {
  const begun = performance.now()
  const parts = findParts(options)
  if (parts.length === 0) options.print(`No test file matches ${options.filters.join(', ') || 'anything'}`)
  const scratch = makeScratch()
  chmodSync(scratch, 0o711) // a database server may run as another user below it
  try {
    const results = await runParts(parts, scratch, options)
    const totals = count(results, options.skippedIsFailed)
    if (parts.length > 0) options.print(summary(results, totals, performance.now() - begun))
    return totals
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

/** In memory where we may write and files may be run, which containers often forbid there and some tests do. */
function makeScratch(): string {
  return scratchInMemory() ?? mkdtempSync(join(tmpdir(), 'sendwright-test-'))
}

function scratchInMemory(): string | undefined {
  const memory = memoryFolder()
  if (memory === undefined) return undefined
  const scratch = mkdtempSync(join(memory, 'sendwright-test-'))
  const program = join(scratch, 'program')
  writeFileSync(program, '#!/bin/sh\n', { mode: 0o755 })
  if (spawnSync(program).status === 0) return scratch
  rmSync(scratch, { recursive: true })
  return undefined
}

function findParts({ root, filters, slow }: RunOptions): Part[] {
  const ignored = (path: string) => /(^|\/)(node_modules|dist)$/.test(path)
  const files = FOLDERS.flatMap((folder) =>
    globSync(`${folder}/**/*.test.ts`, { cwd: root, exclude: ignored }).sort(),
  )
  if (filters.length === 0) {
    const parts = files.flatMap((file) => partOf(file, readFileSync(join(root, file), 'utf8'), slow) ?? [])
    // The others take longest.
    return [...parts.filter((part) => !isRest(part)), ...parts.filter(isRest)]
  }
  /** A path below the root, seen from here, becomes one seen from the root; anything else is a part of a path. */
  const fromRoot = (filter: string) => {
    const path = relative(root, resolve(filter))
    return existsSync(filter) && !path.startsWith('..') ? path : filter
  }
  const wanted = filters.map(fromRoot)
  return files
    .filter((file) => wanted.some((part) => file.includes(part)))
    .map((file) => ({ file, databases: 'both' }))
}

/** Whether only a file's tests with PostgreSQL are run. */
const isRest = ({ databases }: Part) => databases === 'postgres'

/** What a run has to do with a file of this text: each test with each database is in one of the two runs. */
function partOf(file: string, text: string, slow: boolean): Part | undefined {
  if (BY_NAME.test(text)) return undefined
  if (SLOW.test(text)) return slow ? { file, databases: 'both' } : undefined
  const isWhole = !EACH_DATABASE.test(text) || BOTH_DATABASES.test(text)
  if (slow) return isWhole ? undefined : { file, databases: 'postgres' }
  return { file, databases: isWhole ? 'both' : 'sqlite' }
}

/** A few files at a time. */
async function runParts(parts: Part[], scratch: string, options: RunOptions): Promise<FileResult[]> {
  const { stop, print } = options
  const results: FileResult[] = []
  const running = new Set<ChildProcess>()
  stop.addEventListener('abort', () => running.forEach(killGroup))
  const note = (result: FileResult) => {
    results.push(result)
    print(describeResult(result))
  }
  const end = async (shared: TestProcess) => {
    const fault = await shared.end()
    if (fault !== undefined) note({ file: shared.ran.map(nameOf).join(', '), ...NOTHING_RUN, fault })
  }
  const waiting = [...parts]
  const worker = async () => {
    let shared: TestProcess | undefined
    for (let part = waiting.shift(); part !== undefined; part = waiting.shift()) {
      if (stop.aborted) {
        note({ file: nameOf(part), ...NOTHING_RUN, fault: `not run: ${stop.reason}` })
        continue
      }
      if (OWN_PROCESS.test(readFileSync(join(options.root, part.file), 'utf8'))) {
        const own = startProcess(scratch, options, running)
        note(await own.run(part))
        await end(own)
        continue
      }
      if (shared?.isSpent()) {
        await end(shared)
        shared = undefined
      }
      shared ??= startProcess(scratch, options, running, YOUNG_FLAGS)
      note(await shared.run(part))
    }
    if (shared) await end(shared)
  }
  const isFast = !options.slow && options.filters.length === 0
  await Promise.all(Array.from({ length: isFast ? FILES_AT_A_TIME : SLOW_FILES_AT_A_TIME }, worker))
  return results
}

/**
 * Compiled sources, shared by all processes and kept for later runs. Without them loading the sources takes seconds of processor
 * time in each. Node compares them with the sources.
 */
function compileCache(scratch: string): string {
  try {
    mkdirSync(COMPILE_CACHE, { recursive: true })
    accessSync(COMPILE_CACHE, constants.W_OK)
    return COMPILE_CACHE
  } catch {
    return join(scratch, 'compile-cache')
  }
}

interface TestProcess {
  /** So far. */
  ran: readonly Part[]
  /** Runs one file to its end or its limit. */
  run(part: Part): Promise<FileResult>
  /** Whether another file needs another process: this one is gone, or has grown. */
  isSpent(): boolean
  /** Resolves when it has ended, with how it failed to. */
  end(): Promise<string | undefined>
}

/** `running` holds it until its end; `flags` are node's. */
function startProcess(
  scratch: string,
  { root, fileLimitMs, setLimit = setTimer }: RunOptions,
  running: Set<ChildProcess>,
  flags: readonly string[] = [],
): TestProcess {
  const home = makeFolder(scratch, 'process-')
  const outputFile = join(home, 'output')
  const answersFile = join(home, 'answers')
  const output = openSync(outputFile, 'w')
  const [reporter, program] = ['test-events.ts', 'test-process.ts'].map((name) =>
    join(import.meta.dirname, name),
  )
  const env = {
    ...process.env,
    TMPDIR: home,
    // For what outlasts a file (test/support/browser.ts).
    SENDWRIGHT_TEST_HOME: home,
    SENDWRIGHT_TEST_DISK: tmpdir(),
    NODE_COMPILE_CACHE: compileCache(scratch),
    // The variable is node's own: set when this run is itself under test, it would overrule our reporter.
    NODE_TEST_CONTEXT: undefined,
    // Every answer that a test sees is compared with what its operation declares, and commits wait for no disk.
    NODE_OPTIONS: PRELOADED.map((file) => `--import=${file}`).join(' '),
    SENDWRIGHT_ANSWER_FAULTS: answersFile,
    // Databases with today's schema, for all files (test/support/migrated.ts).
    SENDWRIGHT_TEST_TEMPLATES: scratch,
  }
  const child = spawn(process.execPath, [...flags, `--test-reporter=${reporter}`, program ?? ''], {
    cwd: root,
    env,
    stdio: ['ignore', output, output, 'ipc'],
    detached: true, // a group of its own, killed as a whole
  })
  closeSync(output)
  running.add(child)
  let outcome: number | string | undefined
  const ended = endOf(child).then((end) => {
    outcome = end
    running.delete(child)
    killGroup(child)
  })
  const usedMs = () => (child.pid === undefined ? 0 : treeProcessorMs(child.pid))
  const ran: Part[] = []
  let rssBytes = 0
  let hasFailed = false

  async function records(
    { file, databases }: Part,
    folder: string,
  ): Promise<{ records: TestRecord[]; timedOut: boolean }> {
    const records: TestRecord[] = []
    let timedOut = false
    const complete = new Promise<void>((done) => {
      child.on('message', (record: TestRecord) => {
        records.push(record)
        if (record.kind === 'complete') done()
      })
    })
    const clearLimit = setLimit(fileLimitMs, () => {
      timedOut = true
      killGroup(child)
    })
    child.send({ file: resolve(root, file), folder, databases } satisfies Order, () => {})
    await Promise.race([complete, ended])
    clearLimit()
    child.removeAllListeners('message')
    return { records, timedOut }
  }

  return {
    ran,
    async run(part) {
      const begun = performance.now()
      const usedBefore = usedMs()
      const printedBefore = statSync(outputFile).size
      const folder = makeFolder(scratch, 'file-')
      ran.push(part)
      const { records: all, timedOut } = await records(part, folder)
      const processorMs = Math.max(0, usedMs() - usedBefore)
      for (const record of all) if (record.kind === 'complete') rssBytes = record.rssBytes
      hasFailed ||= all.some(({ kind }) => kind === 'failed')
      removeFolder(folder)
      const fault = timedOut
        ? `ran over ${seconds(fileLimitMs)}${openTests(all)}`
        : (faultOf(outcome, all) ?? answerFaults(answersFile))
      const text = readFileSync(outputFile).subarray(printedBefore).toString().slice(-OUTPUT_SHOWN_CHARS)
      const durationMs = performance.now() - begun
      return { file: nameOf(part), durationMs, processorMs, records: all, fault, output: text }
    },
    isSpent: () => outcome !== undefined || ran.length >= FILES_PER_PROCESS || rssBytes > RSS_MAX_BYTES,
    async end() {
      if (outcome !== undefined) return undefined // with the file that ran
      child.disconnect()
      const printedBefore = statSync(outputFile).size
      let timedOut = false
      const clearLimit = setLimit(END_LIMIT_MS, () => {
        timedOut = true
        killGroup(child)
      })
      await ended
      clearLimit()
      const text = readFileSync(outputFile).subarray(printedBefore).toString().slice(0, OUTPUT_SHOWN_CHARS)
      removeFolder(home)
      if (timedOut)
        return `left something open: their process did not end in ${seconds(END_LIMIT_MS)}\n${text}`
      return outcome === 0 || (outcome === 1 && hasFailed) ? undefined : `their process ended with ${outcome}`
    },
  }
}

function setTimer(ms: number, over: () => void): () => void {
  const timer = setTimeout(over, ms)
  return () => clearTimeout(timer)
}

const nameOf = (part: Part) => (isRest(part) ? `${part.file} (postgres)` : part.file)

/** A database server may run as another user below it. */
function makeFolder(parent: string, prefix: string): string {
  const folder = mkdtempSync(join(parent, prefix))
  chmodSync(folder, 0o711)
  return folder
}

function removeFolder(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
  } catch {
    // Something still writes there, such as a database that is stopping; all is removed at the end of the run.
  }
}

/** How a process ended: an exit code, the name of a signal, or the error that kept it from starting. */
async function endOf(child: ChildProcess): Promise<number | string> {
  const disconnected = new Promise((done) => child.once('disconnect', done))
  const end = await new Promise<number | string>((done) => {
    child.once('error', (error) => done(error.message))
    child.once('exit', (code, signal) => done(code ?? signal ?? 'unknown'))
  })
  // Its last records may still be on their way.
  if (child.connected) await disconnected
  return end
}

/** `end`: how the process ended, if it has. */
function faultOf(end: number | string | undefined, records: TestRecord[]): string | undefined {
  if (!records.some(({ kind }) => kind === 'complete'))
    return `process ended with ${end} before its tests${openTests(records)}`
  if (ended(records).length === 0) return 'holds no test'
  return undefined
}

/** Answers that differ from what their operations declare (test/support/answer-shapes.ts). */
function answerFaults(file: string): string | undefined {
  if (!existsSync(file)) return undefined
  const faults = new Set(readFileSync(file, 'utf8').trimEnd().split('\n'))
  rmSync(file)
  return `answers outside of their shapes:\n    ${[...faults].join('\n    ')}`
}

type Ended = Exclude<TestRecord, { kind: 'begun' | 'complete' }>

function ended(records: TestRecord[]): Ended[] {
  return records.filter((record): record is Ended => record.kind !== 'begun' && record.kind !== 'complete')
}

/** Names the tests that started and did not end. */
function openTests(records: TestRecord[]): string {
  const done = new Set(ended(records).map(({ name }) => name.split(' > ').at(-1)))
  const open = records.flatMap((record) =>
    record.kind === 'begun' && !done.has(record.name) ? [`"${record.name}"`] : [],
  )
  return open.length > 0 ? ` in ${open.join(', ')}` : ''
}

function count(results: FileResult[], skippedIsFailed: boolean): Totals {
  const totals = { passed: 0, failed: 0, skipped: 0 }
  for (const { records, fault } of results) {
    for (const { kind } of ended(records)) totals[kind] += 1
    if (fault !== undefined) totals.failed += 1
  }
  if (skippedIsFailed) totals.failed += totals.skipped
  return totals
}

function describeResult({ file, durationMs, processorMs, records, fault, output }: FileResult): string {
  const tests = ended(records)
  const bad = fault !== undefined || tests.some(({ kind }) => kind === 'failed')
  const times = `${seconds(durationMs)}, processor ${seconds(processorMs)}`
  const rows = [`${bad ? 'FAIL' : 'ok  '} ${file}  ${tests.length} tests, ${times}`]
  for (const test of tests) {
    if (test.kind === 'skipped') rows.push(`\n  SKIPPED ${test.name}: ${test.why}\n`)
    if (test.kind === 'failed')
      rows.push(`\n  FAILED ${test.name}\n  at ${file}:${test.line}\n\n${indent(test.error)}\n`)
  }
  if (fault !== undefined) rows.push(`\n  FAILED ${file}: ${fault}\n`)
  if (bad && output.trim() !== '') rows.push(`  It printed:\n\n${indent(output.trimEnd())}\n`)
  return rows.join('\n')
}

function summary(results: FileResult[], totals: Totals, durationMs: number): string {
  const tests = results.flatMap(({ file, records }) =>
    ended(records).map(({ name, durationMs }) => ({ what: `${file}: ${name}`, ms: durationMs })),
  )
  const costs = results.map(({ file, processorMs }) => ({ what: file, ms: processorMs }))
  const rows = ['', 'Slowest tests:', ...largest(tests), '', 'Files by processor time:', ...largest(costs)]
  const failures = results.flatMap(({ file, records, fault }) => [
    ...ended(records).flatMap(({ kind, name }) => (kind === 'failed' ? [`  ${file}: ${name}`] : [])),
    ...(fault === undefined ? [] : [`  ${file}: ${fault}`]),
  ])
  if (failures.length > 0) rows.push('', 'Failed:', ...failures)
  if (totals.skipped > 0) rows.push('', `${totals.skipped} SKIPPED; each is a failure where CI=true`)
  const used = seconds(results.reduce((sum, { processorMs }) => sum + processorMs, 0))
  rows.push('', `${results.length} files in ${seconds(durationMs)}, processor ${used} without PostgreSQL`)
  return rows.join('\n')
}

function largest(all: { what: string; ms: number }[]): string[] {
  const shown = all.toSorted((a, b) => b.ms - a.ms).slice(0, SHOWN)
  return shown.map(({ what, ms }) => `${seconds(ms).padStart(9)}  ${what}`)
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`
}

function indent(text: string): string {
  return text.replaceAll(/^(?=.)/gm, '    ')
}

/**
 * Once before all tests: a service cannot start while one of them builds the dashboard. A build that fails is named by those that
 * need it; without the program's, processes of tests run the sources.
 */
async function build(root: string): Promise<void> {
  const [status] = await once(
    spawn(process.execPath, [join(root, 'scripts/build.mjs')], { stdio: 'inherit' }),
    'close',
  )
  if (status === 0) process.env['SENDWRIGHT_TEST_BUILT'] = 'yes'
}

/** Passes the server to the test files in the environment. Without one, those that need it fail with a message. */
async function offerPostgres(): Promise<PostgresCluster | undefined> {
  if (process.env['SENDWRIGHT_TEST_POSTGRES']) return undefined
  try {
    const cluster = await startPostgres()
    process.env['SENDWRIGHT_TEST_POSTGRES'] = cluster.url
    return cluster
  } catch (error) {
    console.log(`${error instanceof Error ? error.message : error}\n`)
    return undefined
  }
}

async function main(words: string[]): Promise<number> {
  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(signal, () => stop.abort(`stopped by ${signal}`))
  const limit = setTimeout(() => stop.abort(`the run took over ${seconds(RUN_LIMIT_MS)}`), RUN_LIMIT_MS)
  const root = resolve(import.meta.dirname, '..')
  const filters = words.filter((word) => word !== '--slow')
  const [cluster] = await Promise.all([offerPostgres(), build(root)])
  const { passed, failed } = await runTests({
    root,
    filters,
    slow: words.includes('--slow'),
    fileLimitMs: FILE_LIMIT_MS,
    skippedIsFailed: process.env['CI'] === 'true',
    print: console.log,
    stop: stop.signal,
  }).finally(() => cluster?.stop())
  clearTimeout(limit)
  console.log(`${passed} passed, ${failed} failed`)
  return failed === 0 && passed > 0 ? 0 : 1
}

if (import.meta.main) process.exitCode = await main(process.argv.slice(2))
