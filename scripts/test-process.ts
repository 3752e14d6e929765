/**
 * Runs test files one after another, as `scripts/test.ts` orders them: loading and warming up the sources takes more
 * processor time than the tests of most files. Each file is a suite, so that its hooks are its own; test-events.ts
 * reports its end. It ends once the runner has disconnected and no file has left anything open.
 */
import asyncHooks, { type AsyncResource } from 'node:async_hooks'
import { flushCompileCache } from 'node:module'
import type { SuiteContext } from 'node:test'
import { pathToFileURL } from 'node:url'
import type { Database } from '../test/support/databases.ts'
import { repeatKeys } from '../test/support/repeated-keys.ts'
import { followOpen } from './left-open.ts'

/** `folder`: for the temporary files of this test file. */
export interface Order {
  file: string
  folder: string
  /** The databases that it defines tests for (test/support/databases.ts). */
  databases: 'both' | Database
}

type Cleanup = () => unknown

// node:test follows each promise, to know in which suite a test is defined and whose error an uncaught one is. That takes a
// sixth of the processor time, so it is done while a file is loaded only; an uncaught error is one of the file.
const { createHook } = asyncHooks
let following: asyncHooks.AsyncHook | undefined
/** Of each promise that it has heard of node:test keeps the test until it hears of its end, which it mostly does not. */
let forget: (() => void) | undefined
asyncHooks.createHook = (callbacks) => {
  const heardOf: number[] = []
  forget = () => {
    for (const id of heardOf.splice(0)) callbacks.destroy?.(id)
  }
  following = createHook({
    ...callbacks,
    init(id, ...rest) {
      heardOf.push(id)
      callbacks.init?.(id, ...rest)
    },
  })
  return following
}
const { after, describe } = await import('node:test')
asyncHooks.createHook = createHook

followOpen()

const shared = process.env['SENDWRIGHT_TEST_TEMPLATES']
if (shared !== undefined) repeatKeys(shared)

/** Of the last file. */
let last: Definer | undefined

process.on('message', ({ file, folder, databases }: Order) => {
  process.env['SENDWRIGHT_TEST_DATABASES'] = databases
  process.env['TMPDIR'] = folder
  // node:test keeps all tests, and with their hooks the services and databases that these close: 2 MB for each service.
  last?.subtests.splice(0)
  forget?.()
  following?.enable()
  seeSuite(file, (suite) => {
    last = suite
    if (databases === 'postgres') leaveOutTests(suite)
  })
  describe(file, async (suite) => {
    const cleanups = collectCleanups(suite)
    await import(pathToFileURL(file).href)
    after(async () => {
      for (const cleanup of cleanups) await cleanup()
    })
    following?.disable()
    // For the services that its tests start, and for the other processes.
    flushCompileCache()
  })
})

/** The object of node:test behind a suite. */
interface Definer extends AsyncResource {
  name: string
  subtests: unknown[]
  createSubtest(kind: { name: string }, ...rest: unknown[]): unknown
}

/** Calls `see` with the suite that is described next, of this name, before its function runs. */
function seeSuite(suiteName: string, see: (suite: Definer) => void): void {
  const { prototype } = asyncHooks.AsyncResource
  const { runInAsyncScope } = prototype
  // A suite calls its function in its scope.
  prototype.runInAsyncScope = function (this: Definer, ...call: unknown[]) {
    if (this.name === suiteName) {
      prototype.runInAsyncScope = runInAsyncScope
      see(this)
    }
    return Reflect.apply(runInAsyncScope, this, call)
  } as typeof runInAsyncScope
}

/**
 * The suite takes suites only: of a file whose tests with SQLite have run, those that `eachDatabase` defines for PostgreSQL. By a
 * pattern of names, node:test would leave out all that later files of the process define.
 */
function leaveOutTests(suite: Definer): void {
  const create = suite.createSubtest.bind(suite)
  suite.createSubtest = (kind, ...rest) => (kind.name === 'Suite' ? create(kind, ...rest) : undefined)
}

/** A hook of a file that is run by node itself receives the context of a test, whose `after` it may call. */
function collectCleanups(suite: SuiteContext): readonly Cleanup[] {
  const cleanups: Cleanup[] = []
  Object.defineProperty(Object.getPrototypeOf(suite), 'after', {
    value: (cleanup: Cleanup) => cleanups.push(cleanup),
    configurable: true,
    writable: true,
  })
  return cleanups
}
