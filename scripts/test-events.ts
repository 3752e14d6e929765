/**
 * The reporter inside each test process: one line of JSON per test, read by `scripts/test.ts`.
 *
 * Suites and tests that fail only because one of their parts failed are left out: the part is reported.
 */
import { inspect } from 'node:util'

export type TestRecord =
  /** Written last: without it the process ended before its tests had. */
  | { kind: 'complete' }
  /** A test began; without a later record of that name the process ended in it. */
  | { kind: 'begun'; name: string }
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
    details?: { type?: string; error?: Error & { failureType?: string } }
  }
}

export default async function* testRecords(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const path: string[] = []
  for await (const event of events) {
    if (event.type === 'test:dequeue' && event.data.type !== 'suite')
      yield line({ kind: 'begun', name: event.data.name })
    if (event.type === 'test:start') path.splice(event.data.nesting, Infinity, event.data.name)
    if (event.type !== 'test:pass' && event.type !== 'test:fail') continue
    const record = toRecord(event, [...path.slice(0, event.data.nesting), event.data.name].join(' > '))
    if (record) yield line(record)
  }
  yield line({ kind: 'complete' })
}

function toRecord({ type, data }: TestEvent, name: string): TestRecord | undefined {
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

function line(record: TestRecord): string {
  return `${JSON.stringify(record)}\n`
}
