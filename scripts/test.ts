/**
 * Runs the tests: every `*.test.ts` below the folders named here, or those whose path contains one of the
 * arguments (`npm test -- src/protocols/mime dkim/sign`).
 *
 * 1. One PostgreSQL for the whole run, unless SENDWRIGHT_TEST_POSTGRES names one already.
 * 2. One process per file, a few at a time, each in a process group of its own with a time limit, its
 *    temporary files in a folder that is removed afterwards. Processes that a file leaves running are killed.
 *    The folders are in memory where that has room (test/support/memory-folder.ts): SQLite syncs each commit.
 * 3. Failures as they occur, a summary, and as the last line `N passed, N failed`.
 *
 * A file that dies, hangs or holds no test counts as one failure. A skipped test is named loudly, and
 * counts as failed where CI=true. Nothing to run is a failure.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import {
  chmodSync,
  closeSync,
  existsSync,
  globSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { basename, join, relative, resolve } from 'node:path'
import { killGroup } from '../test/support/kill-group.ts'
import { memoryFolder } from '../test/support/memory-folder.ts'
import { type PostgresCluster, startPostgres } from '../test/support/postgres.ts'
import type { TestRecord } from './test-events.ts'

/** Most files wait for sockets, databases and browsers at times, so three run well on two cores; memory limits the rest. */
const FILES_AT_A_TIME = Math.min(4, availableParallelism() + 1)
/** The longest files take 40 s: only a hang reaches it, also on a machine that is five times slower. */
const FILE_LIMIT_MS = 240_000
/** A run is to take less than twenty minutes with installing and checking; on a slow machine it may take three times as long. */
const RUN_LIMIT_MS = 60 * 60_000
/** Only the end of a file's output is printed with its failures. */
const OUTPUT_SHOWN_CHARS = 4_000
const SLOWEST_SHOWN = 10
const ANSWER_SHAPES = join(import.meta.dirname, '../test/support/answer-shapes.ts')
/** Scenarios take longest: started first, they do not delay the end. */
const FOLDERS = ['test', 'src', 'web', 'scripts', 'bench']

interface FileResult {
  file: string
  durationMs: number
  records: TestRecord[]
  /** How the process itself failed. */
  fault: string | undefined
  output: string
}

export interface RunOptions {
  /** The folder that holds `src`, `test` and so on. */
  root: string
  /** Parts of paths; empty: every file. */
  filters: string[]
  fileLimitMs: number
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
  const files = findFiles(options)
  if (files.length === 0) options.print(`No test file matches ${options.filters.join(', ') || 'anything'}`)
  const scratch = makeScratch()
  chmodSync(scratch, 0o711) // a database server may run as another user below it
  try {
    const results = await runFiles(files, scratch, options)
    const totals = count(results, options.skippedIsFailed)
    if (files.length > 0) options.print(summary(results, totals, performance.now() - begun))
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

function findFiles({ root, filters }: RunOptions): string[] {
  const ignored = (path: string) => /(^|\/)(node_modules|dist)$/.test(path)
  const files = FOLDERS.flatMap((folder) =>
    globSync(`${folder}/**/*.test.ts`, { cwd: root, exclude: ignored }).sort(),
  )
  if (filters.length === 0) return files
  /** A path below the root, seen from here, becomes one seen from the root; anything else is a part of a path. */
  const fromRoot = (filter: string) => {
    const path = relative(root, resolve(filter))
    return existsSync(filter) && !path.startsWith('..') ? path : filter
  }
  const wanted = filters.map(fromRoot)
  return files.filter((file) => wanted.some((part) => file.includes(part)))
}

/** A few files at a time. */
async function runFiles(files: string[], scratch: string, options: RunOptions): Promise<FileResult[]> {
  const { stop, print } = options
  const results: FileResult[] = []
  const running = new Set<ChildProcess>()
  stop.addEventListener('abort', () => running.forEach(killGroup))
  const waiting = [...files]
  const worker = async () => {
    for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) {
      const result = stop.aborted
        ? { file, durationMs: 0, records: [], fault: `not run: ${stop.reason}`, output: '' }
        : await runFile(file, scratch, options, running)
      results.push(result)
      print(describeResult(result))
    }
  }
  await Promise.all(Array.from({ length: FILES_AT_A_TIME }, worker))
  return results
}

/** Runs one file to its end or its limit; `running` holds its process meanwhile. */
async function runFile(
  file: string,
  scratch: string,
  { root, fileLimitMs }: RunOptions,
  running: Set<ChildProcess>,
): Promise<FileResult> {
  const folder = mkdtempSync(join(scratch, 'file-'))
  chmodSync(folder, 0o711)
  const recordsFile = join(folder, 'records')
  const outputFile = join(folder, 'output')
  const answersFile = join(scratch, `answers-${basename(folder)}`)
  const output = openSync(outputFile, 'w')
  const reporter = join(import.meta.dirname, 'test-events.ts')
  const flags = [`--test-reporter=${reporter}`, `--test-reporter-destination=${recordsFile}`]
  // The variable is node's own: set when this run is itself under test, it would overrule our reporter.
  const env = {
    ...process.env,
    TMPDIR: folder,
    SENDWRIGHT_TEST_DISK: tmpdir(),
    // Shared by all files: without it loading the sources takes half a second of processor time in each.
    NODE_COMPILE_CACHE: join(scratch, 'compile-cache'),
    NODE_TEST_CONTEXT: undefined,
    // Every answer that a test sees is compared with what its operation declares.
    NODE_OPTIONS: `--import=${ANSWER_SHAPES}`,
    SENDWRIGHT_ANSWER_FAULTS: answersFile,
    // Databases with today's schema, for all files (test/support/migrated.ts).
    SENDWRIGHT_TEST_TEMPLATES: scratch,
  }
  const begun = performance.now()
  const child = spawn(process.execPath, [...flags, file], {
    cwd: root,
    env,
    stdio: ['ignore', output, output],
    detached: true, // a group of its own, killed as a whole
  })
  closeSync(output)
  running.add(child)
  const { end, timedOut } = await endOf(child, fileLimitMs)
  running.delete(child)
  killGroup(child)
  const records = readRecords(recordsFile)
  const text = readFileSync(outputFile, 'utf8').slice(-OUTPUT_SHOWN_CHARS)
  removeFolder(folder)
  const fault = timedOut
    ? `ran over ${seconds(fileLimitMs)}${openTests(records)}`
    : (faultOf(end, records) ?? answerFaults(answersFile))
  return { file, durationMs: performance.now() - begun, records, fault, output: text }
}

function removeFolder(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
  } catch {
    // Something still writes there, such as a database that is stopping; all is removed at the end of the run.
  }
}

/** How the process ended: an exit code, the name of a signal, or the error that kept it from starting. */
async function endOf(
  child: ChildProcess,
  limitMs: number,
): Promise<{ end: number | string; timedOut: boolean }> {
  let timedOut = false
  const limit = setTimeout(() => {
    timedOut = true
    killGroup(child)
  }, limitMs)
  const end = await new Promise<number | string>((done) => {
    child.once('error', (error) => done(error.message))
    child.once('exit', (code, signal) => done(code ?? signal ?? 'unknown'))
  })
  clearTimeout(limit)
  return { end, timedOut }
}

function faultOf(end: number | string, records: TestRecord[]): string | undefined {
  const failed = records.some(({ kind }) => kind === 'failed')
  if (end !== 0 && !(end === 1 && failed)) return `process ended with ${end}${openTests(records)}`
  if (records.length === 0) return 'holds no test, or ended before its tests'
  if (!records.some(({ kind }) => kind === 'complete')) return `ended before its tests${openTests(records)}`
  if (ended(records).length === 0) return 'holds no test'
  return undefined
}

/** Answers that differ from what their operations declare (test/support/answer-shapes.ts). */
function answerFaults(file: string): string | undefined {
  if (!existsSync(file)) return undefined
  const faults = new Set(readFileSync(file, 'utf8').trimEnd().split('\n'))
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

function readRecords(file: string): TestRecord[] {
  if (!existsSync(file)) return []
  const lines = readFileSync(file, 'utf8').split('\n')
  lines.pop() // empty, or cut short when the process was killed
  return lines.map((line) => JSON.parse(line) as TestRecord)
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

function describeResult({ file, durationMs, records, fault, output }: FileResult): string {
  const tests = ended(records)
  const bad = fault !== undefined || tests.some(({ kind }) => kind === 'failed')
  const rows = [`${bad ? 'FAIL' : 'ok  '} ${file}  ${tests.length} tests, ${seconds(durationMs)}`]
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
  const slowest = results.toSorted((a, b) => b.durationMs - a.durationMs).slice(0, SLOWEST_SHOWN)
  const rows = ['', 'Slowest files:']
  for (const { file, durationMs: ms } of slowest) rows.push(`${seconds(ms).padStart(9)}  ${file}`)
  const failures = results.flatMap(({ file, records, fault }) => [
    ...ended(records).flatMap(({ kind, name }) => (kind === 'failed' ? [`  ${file}: ${name}`] : [])),
    ...(fault === undefined ? [] : [`  ${file}: ${fault}`]),
  ])
  if (failures.length > 0) rows.push('', 'Failed:', ...failures)
  if (totals.skipped > 0) rows.push('', `${totals.skipped} SKIPPED; each is a failure where CI=true`)
  rows.push('', `${results.length} files in ${seconds(durationMs)}`)
  return rows.join('\n')
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`
}

function indent(text: string): string {
  return text.replaceAll(/^(?=.)/gm, '    ')
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

async function main(filters: string[]): Promise<number> {
  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(signal, () => stop.abort(`stopped by ${signal}`))
  const limit = setTimeout(() => stop.abort(`the run took over ${seconds(RUN_LIMIT_MS)}`), RUN_LIMIT_MS)
  const cluster = await offerPostgres()
  const { passed, failed } = await runTests({
    root: resolve(import.meta.dirname, '..'),
    filters,
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
