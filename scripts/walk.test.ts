import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import test from 'node:test'
import { measureWalks, type Walk } from './walk.ts'

const calls = ({ files }: Walk, name: string) =>
  files.some(({ functions }) => functions.some((one) => one.startsWith(`${name}:`)))

test('each walk has what it runs through, of all threads, and nothing of the others; architecture.md says how many files', async () => {
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

  const pages = readFileSync('docs/architecture.md', 'utf8').replace(/\s+/g, ' ')
  const figures = (pattern: RegExp) => pattern.exec(pages)?.slice(1).map(Number)
  const accepted = new Set(accept.files.map(({ path }) => path))
  const beyond = socket.files.filter(({ path }) => !accepted.has(path))
  assert.deepEqual(figures(/Sending a plain message .*? runs through (\d+) files/), [accept.files.length])
  assert.deepEqual(figures(/Delivering a message runs through (\d+) files, (\d+) of them beyond/), [
    socket.files.length,
    beyond.length,
  ])
  assert.deepEqual(figures(/Reading one record, .*? runs through (\d+) files/), [bounce.files.length])
})
