import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { serviceFlags } from '../../../test/support/node-flags.ts'
import { plantFiles } from '../../../test/support/plant-files.ts'

/** With the flags of the launcher. */
async function run(t: Parameters<typeof plantFiles>[0], program: string) {
  const module = JSON.stringify(join(import.meta.dirname, 'engine-flags.ts'))
  const text = `import { freeThreadLimits } from ${module}\n${program}`
  const file = join(plantFiles(t, { 'program.mjs': text }), 'program.mjs')
  const { stdout } = await promisify(execFile)(process.execPath, [...serviceFlags(), file])
  return stdout.trim()
}

test('the young generation of a thread keeps to its limit', async (t) => {
  const program = `
    import { getHeapSpaceStatistics } from 'node:v8'
    import { isMainThread, Worker } from 'node:worker_threads'
    const youngMb = () =>
      getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space').physical_space_size / 2 ** 20
    if (isMainThread) {
      freeThreadLimits()
      new Worker(new URL(import.meta.url), { resourceLimits: { maxYoungGenerationSizeMb: 6 } })
    } else {
      let kept = []
      const sizes = []
      for (let n = 0; n < 1_500_000; n++) {
        kept.push({ n, text: 'x' + n })
        if (kept.length > 40_000) kept = []
        if (n % 50_000 === 0) sizes.push(youngMb())
      }
      // A collection that is under way holds more for a moment.
      console.log(sizes.sort((a, b) => a - b)[sizes.length >> 1])
    }`
  assert.ok(Number(await run(t, program)) <= 8)
})
