import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { closeSync, constants, openSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { eventually } from '../../../test/support/service.ts'
import { temporaryFolder } from '../../../test/support/stores.ts'
import { type LostLines, openLogOutput } from './log-output.ts'

const { O_RDONLY, O_WRONLY, O_NONBLOCK } = constants
/** More than a pipe holds. */
const LINE = `${'x'.repeat(99_999)}\n`
const LINES_HELD = 10

/** An output to a FIFO, whose reader can leave and return. */
async function startOutput(t: TestContext) {
  const path = join(await temporaryFolder(t), 'log')
  assert.equal(spawnSync('mkfifo', [path]).status, 0)
  const reader = openSync(path, O_RDONLY | O_NONBLOCK)
  const writer = openSync(path, O_WRONLY | O_NONBLOCK)
  const gaps: LostLines[] = []
  const output = openLogOutput(writer, (lost) => {
    gaps.push(lost)
    output.write('gap\n')
  })
  t.after(() => closeSync(writer))
  let read = ''
  const follow = () => {
    const cat = spawn('cat', [path], { stdio: ['ignore', 'pipe', 'inherit'] })
    cat.stdout.on('data', (bytes: Buffer) => {
      read += bytes.toString()
    })
    t.after(() => cat.kill())
  }
  return { output, reader, gaps, follow, linesRead: () => read.split('\n').slice(0, -1) }
}

test('a pipe that nobody reads: lines beyond the bound are counted, and the gap is reported', async (t) => {
  const { output, reader, gaps, follow, linesRead } = await startOutput(t)
  const before = new Date()
  for (let line = 0; line < LINES_HELD + 3; line++) output.write(LINE)
  assert.equal(output.lost(), 3)
  closeSync(reader)
  follow()
  await eventually('the gap', async () => linesRead().at(-1) === 'gap')
  assert.equal(linesRead().length, LINES_HELD + 1)
  assert.deepEqual(
    gaps.map(({ lines }) => lines),
    [3],
  )
  assert.ok(gaps[0] && gaps[0].since >= before && gaps[0].since <= new Date())
  output.write('after\n')
  await eventually('the next line', async () => linesRead().at(-1) === 'after')
  assert.deepEqual([gaps.length, output.lost()], [1, 3])
})

test('a reader that leaves and returns gets what was written meanwhile', async (t) => {
  const { output, reader, gaps, follow, linesRead } = await startOutput(t)
  closeSync(reader)
  output.write('first\n')
  output.write('second\n')
  follow()
  await eventually('both', async () => linesRead().join() === 'first,second')
  assert.deepEqual([gaps, output.lost()], [[], 0])
})

test('a full disk delays the end of the process by nothing, a full pipe by a second', async (t) => {
  const output = openLogOutput(openSync('/dev/full', 'w'), () => assert.fail('nothing is lost'))
  output.write('one\n')
  await output.finish()
  const { output: unread } = await startOutput(t)
  unread.write(LINE)
  await unread.finish()
})

test('a process that ends at once writes what it can', async (t) => {
  const { output, follow, linesRead } = await startOutput(t)
  output.write('first\n')
  output.write('second\n')
  output.flushSync()
  output.write('too late\n')
  follow()
  await eventually('both', async () => linesRead().toSorted().join() === 'first,second')
})
