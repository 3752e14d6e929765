import assert from 'node:assert/strict'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { HANG_MS } from '../../test/support/hang.ts'
import { startKept } from './kept-process.ts'
import { cpuSeconds, memoryOf, processTree } from './processes.ts'
import { until, withRig } from './rig.ts'
import { median, percentile } from './stats.ts'

test("CPU time holds that of a child that has ended, and the tree is gone after the program's end", async () => {
  await withRig(tmpdir(), async (rig) => {
    // The child uses some tenths of a second of CPU, then the parent waits for a signal.
    const child = `/bin/sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'; echo done; sleep 100 & wait`
    const kept = await startKept(['/bin/sh', '-c', child], {
      env: { PATH: process.env['PATH'] },
      cwd: rig.folder,
      outputFile: join(rig.folder, 'output'),
    })
    rig.defer('program', () => kept.end('SIGKILL'))
    await until('the child', HANG_MS, () => kept.output().includes('done'))
    assert.ok(cpuSeconds([kept.pid]) > 0.05)
    assert.ok(memoryOf([kept.pid]).rssMb > 0)
    const sleeper = processTree([kept.pid]).find(({ name }) => name === 'sleep')
    if (sleeper) process.kill(sleeper.pid)
    await kept.end('SIGTERM')
    assert.equal(kept.isRunning(), false)
    assert.deepEqual(processTree([kept.pid]), [])
  })
})

test('median and percentile', () => {
  assert.equal(median([3, 1, 2]), 2)
  assert.equal(median([4, 1, 2, 3]), 2.5)
  assert.equal(percentile([5, 1, 4, 2, 3], 0.5), 3)
  assert.equal(percentile([5, 1, 4, 2, 3], 0.95), 5)
  assert.ok(Number.isNaN(percentile([], 0.5)))
})
