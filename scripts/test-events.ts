/**
 * The reporter inside each test process: sends one record per test to `scripts/test.ts`, and one at the end of each file.
 *
 * Suites and tests that fail only because one of their parts failed are left out: the part is reported.
 */
import { inspect } from 'node:util'

export type TestRecord =
  /** A file ended. Without it the process ended before its tests had. */
  | { kind: 'complete'; rssBytes: number }
  /** A test began; without a later record of that name the process ended in it. */
  | { kind: 'begun'; name: string }
  | ({ durationMs: number } & Ended)

type Ended =
  | { kind: 'passed'; name: string }
  /** `why` tells a test marked as skipped from one marked as still to do. */
  | { kind: 'skipped'; name: string; why: string }
  | { kind: 'failed'; name: string; line: number; error: string }

/** What we read of the events of node:test (its documentation: class TestsStream). */
interface TestEvent {
  type: string
  data: {
    name: string
    nesting: number
    type?: string
    line?: number
    skip?: string | boolean
    todo?: string | boolean
    details?: { type?: string; duration_ms?: number; error?: Error & { failureType?: string } }
  }
}

/** Removed from the process: programs under test take its presence for a parent of their own. */
const send = process.send?.bind(process)
delete process.send

const report = (record: TestRecord) => void send?.(record)

/** Each file is a suite at the top (test-process.ts). */
export default async function* testRecords(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const path: string[] = []
  const suites = new Set<string>()
  const uncaught: string[] = []
  process.on('uncaughtExceptionMonitor', (error) => uncaught.push(describe(error)))
  for await (const event of events) {
    const { nesting, name } = event.data
    // Its own type is the one of its parent (Node 24.21).
    if (event.type === 'test:enqueue' && event.data.type === 'suite') suites.add(name)
    if (event.type === 'test:dequeue' && !suites.has(name)) report({ kind: 'begun', name })
    if (event.type === 'test:start') path.splice(nesting, Infinity, name)
    if (event.type !== 'test:pass' && event.type !== 'test:fail') continue
    // At the top: it cannot be loaded, or one of its hooks failed.
    const parts = nesting === 0 ? ['the file itself'] : [...path.slice(1, nesting), name]
    const record = toRecord(event, parts.join(' > '))
    if (record) report({ ...record, durationMs: event.data.details?.duration_ms ?? 0 })
    if (nesting > 0) continue
    // Set by node:test for an error that belongs to no running test.
    if (process.exitCode !== undefined)
      report({
        kind: 'failed',
        name: 'outside of its tests',
        line: 0,
        error: uncaught.join('\n'),
        durationMs: 0,
      })
    process.exitCode = undefined
    uncaught.length = 0
    report({ kind: 'complete', rssBytes: process.memoryUsage.rss() })
  }
}

function toRecord({ type, data }: TestEvent, name: string): Ended | undefined {
  if (data.skip !== undefined && data.skip !== false)
    return { kind: 'skipped', name, why: `skipped ${data.skip}` }
  if (data.todo !== undefined && data.todo !== false)
    return { kind: 'skipped', name, why: `to do ${data.todo}` }
  const { error, type: kind } = data.details ?? {}
  if (type === 'test:pass') return kind === 'suite' ? undefined : { kind: 'passed', name }
  if (error?.failureType === 'subtestsFailed') return undefined
  return { kind: 'failed', name, line: data.line ?? 0, error: describe(error?.cause ?? error) }
}

/** An assertion's message holds the difference; its properties would repeat both values whole. */
function describe(error: unknown): string {
  const text =
    error instanceof Error && error.name === 'AssertionError'
      ? (error.stack ?? error.message)
      : inspect(error)
  return text
    .split('\n')
    .filter((row) => !/^\s+at .*\(?node:internal\//.test(row))
    .join('\n')
}
