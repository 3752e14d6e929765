// Both databases: only files that it plants have tests for each.
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { plantFiles } from '../test/support/plant-files.ts'
import { type RunOptions, runTests, type Totals } from './test.ts'

const HEAD = "import { test, describe, before } from 'node:test'\nimport assert from 'node:assert/strict'\n"

const FILE_LIMIT_MS = 600_000

/** Runs the runner over planted files. */
async function run(
  context: TestContext,
  files: Record<string, string>,
  options: Partial<RunOptions> = {},
): Promise<{ totals: Totals; printed: string; root: string }> {
  const root = plantFiles(context, files)
  let printed = ''
  const totals = await runTests({
    root,
    filters: [],
    slow: false,
    fileLimitMs: FILE_LIMIT_MS,
    skippedIsFailed: false,
    print: (text) => {
      printed += `${text}\n`
    },
    stop: new AbortController().signal,
    ...options,
  })
  return { totals, printed, root }
}

test('a failure is named with file, line, difference and what the file printed', async (context) => {
  const { totals, printed } = await run(context, {
    'src/sum.test.ts': `${HEAD}console.log('a word before')
test('adds', () => {})
describe('sums', () => { test('differ', () => assert.deepEqual({ a: 1 }, { a: 2 })) })`,
  })
  assert.deepEqual(totals, { passed: 1, failed: 1, skipped: 0 })
  assert.match(printed, /FAIL src\/sum\.test\.ts {2}2 tests/)
  assert.match(printed, /FAILED sums > differ\n {2}at src\/sum\.test\.ts:5\n/)
  assert.match(printed, /\+ {3}a: 1\n\s+- {3}a: 2/)
  assert.match(printed, /It printed:\n\n {4}a word before/)
  assert.match(printed, /Failed:\n {2}src\/sum\.test\.ts: sums > differ/)
})

test('a parent of a failed part is not counted as well', async (context) => {
  const { totals } = await run(context, {
    'src/parts.test.ts': `${HEAD}test('whole', async (t) => { await t.test('part', () => assert.fail('no')) })`,
  })
  assert.deepEqual(totals, { passed: 0, failed: 1, skipped: 0 })
})

const FAULTS: [name: string, source: string, said: RegExp][] = [
  ['does not parse', 'const = 1', /FAILED the file itself[\s\S]*SyntaxError/],
  ['holds no test', 'export const nothing = 1', /holds no test/],
  [
    'leaves in the middle with a good exit code',
    `${HEAD}test('before', () => {})\ntest('leaves', async () => { await null; process.exit(0) })`,
    /process ended with 0 before its tests/,
  ],
  [
    'is killed',
    `${HEAD}test('dies', async () => { process.kill(process.pid, 'SIGKILL'); await new Promise(() => {}) })`,
    /process ended with SIGKILL/,
  ],
  [
    'fails in a hook',
    `${HEAD}describe('suite', () => { before(() => { throw new Error('no hook') }); test('x', () => {}) })`,
    /no hook/,
  ],
]
for (const [name, source, said] of FAULTS) {
  test(`a file that ${name} is a failure`, async (context) => {
    const { totals, printed } = await run(context, { 'web/faulty.test.ts': source })
    assert.ok(totals.failed > 0, printed)
    assert.match(printed, said)
  })
}

test('a file over its time limit is killed with what it started, and its open test is named', async (context) => {
  const note = join(plantFiles(context, {}), 'pid')
  // Written when the runner has been told of both tests.
  const setLimit = (ms: number, over: () => void) => {
    if (ms !== FILE_LIMIT_MS) return () => {}
    const look = setInterval(() => existsSync(note) && setImmediate(over), 20)
    return () => clearInterval(look)
  }
  const { totals, printed } = await run(
    context,
    {
      'test/hangs.test.ts': `${HEAD}import { spawn } from 'node:child_process'
import { renameSync, writeFileSync } from 'node:fs'
import { setImmediate as turn } from 'node:timers/promises'
test('ends', () => {})
test('never ends', async () => {
  process.on('SIGTERM', () => {})
  for (let turns = 0; turns < 100; turns++) await turn()
  writeFileSync('pid', String(spawn('sleep', ['600'], { stdio: 'inherit' }).pid))
  renameSync('pid', ${JSON.stringify(note)})
  await new Promise(() => setInterval(() => {}, 1_000))
})`,
    },
    { setLimit },
  )
  assert.deepEqual(totals, { passed: 1, failed: 1, skipped: 0 })
  assert.match(printed, /FAILED test\/hangs\.test\.ts: ran over 600\.0 s in "never ends"/)
  const child = readFileSync(note, 'utf8')
  assert.ok(!existsSync(`/proc/${child}`) || /State:\s+Z/.test(readFileSync(`/proc/${child}/status`, 'utf8')))
})

test('a skipped test is loud, and a failure where that is asked for', async (context) => {
  const files = {
    'src/skips.test.ts': `${HEAD}test('runs', () => {})
test('left out', { skip: 'no reason' }, () => {})
test('later', { todo: true }, () => { throw new Error('not yet') })`,
  }
  const lenient = await run(context, files)
  assert.deepEqual(lenient.totals, { passed: 1, failed: 0, skipped: 2 })
  assert.match(lenient.printed, /SKIPPED left out: skipped no reason/)
  assert.match(lenient.printed, /SKIPPED later: to do/)
  const strict = await run(context, files, { skippedIsFailed: true })
  assert.deepEqual(strict.totals, { passed: 1, failed: 2, skipped: 2 })
})

test('filters choose files by a part of their path', async (context) => {
  const passing = `${HEAD}test('passes', () => {})`
  const files = {
    'src/mime/a.test.ts': passing,
    'src/dkim/b.test.ts': passing,
    'test/c.test.ts': passing,
    'web/node_modules/d.test.ts': passing,
  }
  const { printed } = await run(context, files, { filters: ['src/mime', 'b.test'] })
  assert.deepEqual([...printed.matchAll(/^ok {3}(\S+)/gm)].map((match) => match[1]).sort(), [
    'src/dkim/b.test.ts',
    'src/mime/a.test.ts',
  ])
  assert.equal((await run(context, files)).totals.passed, 3)
  const none = await run(context, files, { filters: ['nowhere'] })
  assert.deepEqual(none.totals, { passed: 0, failed: 0, skipped: 0 })
  assert.match(none.printed, /No test file matches nowhere/)
})

test('slow files run on their own, or where they are named', async (context) => {
  const passing = `${HEAD}test('passes', () => {})`
  const files = {
    'src/quick.test.ts': passing,
    'src/slow.test.ts': `// Slow: it takes a month.\n${passing}`,
    'src/named.test.ts': `// By name: it takes a year.\n${passing}`,
  }
  const namesOf = ({ printed }: { printed: string }) =>
    [...printed.matchAll(/^ok {3}(\S+)/gm)].map((match) => match[1]).sort()
  assert.deepEqual(namesOf(await run(context, files)), ['src/quick.test.ts'])
  assert.deepEqual(namesOf(await run(context, files, { slow: true })), ['src/slow.test.ts'])
  assert.deepEqual(namesOf(await run(context, files, { filters: ['src/'] })), [
    'src/named.test.ts',
    'src/quick.test.ts',
    'src/slow.test.ts',
  ])
})

test('each test runs with each database in one of the two runs', async (context) => {
  const support = join(import.meta.dirname, '../test/support/databases.ts')
  const file = (head: string) => `${head}\n${HEAD}import { appendFileSync } from 'node:fs'
import { basename } from 'node:path'
import { eachDatabase } from ${JSON.stringify(support)}
const note = (word) => appendFileSync('trace', basename(import.meta.url, '.test.ts') + ' ' + word + '\\n')
test('about neither', () => note('neither'))
eachDatabase((database) => {
  test('about each', (t) => t.test('in a part', () => note(database)))
})
test('about neither, too', () => note('neither'))`
  const files = {
    ...Object.fromEntries(['usual', 'v', 'w', 'x', 'y'].map((name) => [`src/${name}.test.ts`, file('')])),
    'src/both.test.ts': file('// Both databases: it locks rows.'),
    'src/slow.test.ts': file('// Slow: it takes a month.'),
    'src/own.test.ts': file('// Own process: it measures.'),
  }
  const ran = async (options: Partial<RunOptions>) => {
    const { root, totals, printed } = await run(context, files, options)
    assert.equal(totals.failed, 0, printed)
    return [...new Set(readFileSync(join(root, 'trace'), 'utf8').trim().split('\n'))].sort()
  }
  const all = (name: string) => ['neither', 'postgres', 'sqlite'].map((word) => `${name} ${word}`)
  assert.deepEqual(await ran({}), [
    ...all('both'),
    ...['own', 'usual', 'v', 'w', 'x', 'y'].flatMap((name) => [`${name} neither`, `${name} sqlite`]),
  ])
  const rest = ['usual', 'v', 'w', 'x', 'y'].map((name) => `${name} postgres`)
  assert.deepEqual(await ran({ slow: true }), ['own postgres', ...all('slow'), ...rest])
  const names = ['both', 'own', 'slow', 'usual', 'v', 'w', 'x', 'y']
  assert.deepEqual(await ran({ filters: ['src/'] }), names.flatMap(all))
})

test('the slowest tests are named, with the time of each file', async (context) => {
  const { printed } = await run(context, {
    'src/times.test.ts': `${HEAD}test('at once', () => {})
test('waits', () => new Promise((done) => setTimeout(done, 200)))`,
  })
  assert.match(printed, /^ok {3}src\/times\.test\.ts {2}2 tests, \d+\.\d s, processor \d+\.\d s$/m)
  assert.match(printed, /^Slowest tests:\n +\d+\.\d s {2}src\/times\.test\.ts: waits\n.*: at once$/m)
})

test('files share a process, each with its own hooks and folder, and one that asks for it has its own', async (context) => {
  const file = (head: string) => `${head}\n${HEAD}import { after } from 'node:test'
import { appendFileSync, existsSync, mkdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
let ready = false
before((t) => {
  mkdirSync(tmpdir() + '/mine')
  t.after(() => appendFileSync('trace', 'cleaned\\n'))
  ready = true
})
after(() => appendFileSync('trace', 'after\\n'))
test('runs', () => {
  assert.ok(ready && existsSync(tmpdir() + '/mine'))
  appendFileSync('trace', process.pid + '\\n')
})`
  const files = Object.fromEntries([...'abcdefg'].map((name) => [`src/${name}.test.ts`, file('')]))
  const { totals, root, printed } = await run(context, {
    ...files,
    'src/own.test.ts': file('// Own process: it says so.'),
  })
  assert.deepEqual(totals, { passed: 8, failed: 0, skipped: 0 }, printed)
  const trace = readFileSync(join(root, 'trace'), 'utf8').trim().split('\n')
  const processes = trace.filter((line) => /^\d+$/.test(line))
  assert.equal(processes.length, 8)
  assert.ok(new Set(processes).size < 8, 'none is shared')
  for (const word of ['after', 'cleaned']) assert.equal(trace.filter((line) => line === word).length, 8, word)
})

/** A second for the end of a process, which nothing but what is left open prevents. */
function onceEnding(ms: number, over: () => void): () => void {
  const timer = setTimeout(over, ms === FILE_LIMIT_MS ? ms : 1_000)
  return () => clearTimeout(timer)
}

test('a file that leaves something open is named', async (context) => {
  const { totals, printed } = await run(
    context,
    { 'src/open.test.ts': `${HEAD}test('passes', () => void setInterval(() => {}, 1_000))` },
    { setLimit: onceEnding },
  )
  assert.deepEqual(totals, { passed: 1, failed: 1, skipped: 0 })
  assert.match(printed, /src\/open\.test\.ts: left something open/)
})

test('an error outside of all tests fails the file', async (context) => {
  const { totals, printed } = await run(context, {
    'src/late.test.ts': `${HEAD}test('passes', () => { setTimeout(() => { throw new Error('too late') }, 50) })
test('waits', () => new Promise((done) => setTimeout(done, 200)))`,
  })
  assert.ok(totals.failed > 0, printed)
  assert.match(printed, /too late/)
})

test('a stopped run names the files that it did not run', async (context) => {
  const { totals, printed } = await run(
    context,
    { 'src/a.test.ts': `${HEAD}test('passes', () => {})` },
    { stop: AbortSignal.abort('stopped by SIGINT') },
  )
  assert.deepEqual(totals, { passed: 0, failed: 1, skipped: 0 })
  assert.match(printed, /src\/a\.test\.ts: not run: stopped by SIGINT/)
})

test('temporary files of tests are removed with the run', async (context) => {
  const { root } = await run(context, {
    'src/a.test.ts': `${HEAD}import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
test('leaves a folder', () => writeFileSync('where', mkdtempSync(tmpdir() + '/left-')))`,
  })
  assert.ok(!existsSync(readFileSync(join(root, 'where'), 'utf8')))
})
