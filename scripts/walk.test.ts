import assert from 'node:assert/strict'
import test from 'node:test'
import { measureWalks, type Walk } from './walk.ts'

const calls = ({ files }: Walk, name: string) =>
  files.some(({ functions }) => functions.some((one) => one.startsWith(`${name}:`)))

test('each walk has what it runs through, of all threads, and nothing of the others', async () => {
  const { accept, socket, bounce } = await measureWalks()
  for (const walk of [accept, socket, bounce])
    for (const { path } of walk.files) assert.match(path, /^src\/.*(?<!\.test)\.ts$/)
  const has = (name: string) => [accept, socket, bounce].map((walk) => calls(walk, name))
  assert.deepEqual(has('acceptMessage'), [true, false, false])
  assert.deepEqual(has('signMessage'), [false, true, false])
  assert.deepEqual(has('connectSmtp'), [false, true, false])
  assert.deepEqual(has('findRecord'), [false, false, true])
  // The thread that listens, and the one that writes.
  assert.deepEqual(has('splitPlainForm'), [true, false, false])
  assert.deepEqual(has('runTogether'), [true, false, false])
})
