import assert from 'node:assert/strict'
import { test } from 'node:test'
import pino from 'pino'
import { createTestClock } from '../../../test/support/clock.ts'
import { ChangeHub } from '../../base/changes.ts'
import { createCache } from '../../base/flow/cache.ts'
import { type Announcements, channelOf, commonChannel, createAnnouncements } from './announcements.ts'
import type { Note } from './link.ts'

const log = pino({ level: 'silent' })

/** Processes whose notes reach each other at once; `cut` ones neither send nor receive. */
function network(ids: readonly string[]) {
  const cut = new Set<string>()
  const members = new Map<string, { hub: ChangeHub; announcements: Announcements }>()
  const pass = (from: string, { channel, payload }: Note) => {
    for (const [id, { announcements }] of members) {
      if (cut.has(from) || cut.has(id)) continue
      if (channel === commonChannel(null) || channel === channelOf(id)) announcements.received(payload)
    }
  }
  const alive = new Set(ids)
  for (const id of ids) {
    const hub = new ChangeHub()
    const announcements = createAnnouncements({
      channel: commonChannel(null),
      id,
      hub,
      log,
      others: () => [...alive].filter((other) => other !== id),
      async notify(notes) {
        for (const note of notes) pass(id, note)
      },
    })
    hub.attach(announcements)
    members.set(id, { hub, announcements })
  }
  return {
    cut,
    alive,
    of: (id: string) => members.get(id) as { hub: ChangeHub; announcements: Announcements },
  }
}

test('an announcement is applied by all others and resolves when they have confirmed', async () => {
  const net = network(['a', 'b', 'c'])
  const applied: string[] = []
  for (const id of ['a', 'b', 'c'])
    net.of(id).hub.follow('topic', async (text, from) => {
      await new Promise(setImmediate)
      applied.push(`${id} ${text} of ${from}`)
    })
  assert.equal(await net.of('a').hub.announce('topic', 'x'), true)
  assert.deepEqual(applied.sort(), ['b x of a', 'c x of a'])
})

test('a process that fails to apply it, or is gone, is waited for until it is known to be dead', async () => {
  const net = network(['a', 'b', 'c'])
  net.of('b').hub.follow('topic', () => Promise.reject(new Error('no')))
  net.cut.add('c')
  const announced = net.of('a').hub.announce('topic', 'x')
  let isSettled = false
  void announced.then(() => {
    isSettled = true
  })
  for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate)
  assert.equal(isSettled, false)
  net.alive.delete('b')
  net.alive.delete('c')
  net.of('a').announcements.othersChanged()
  assert.equal(await announced, true)
})

test('a text that no notification can hold counts as missed', async () => {
  const net = network(['a', 'b'])
  const texts: (string | null)[] = []
  net.of('b').hub.follow('topic', (text) => void texts.push(text))
  await net.of('a').hub.announce('topic', 'ä'.repeat(4_000))
  assert.deepEqual(texts, [null])
})

test('caches of one topic forget together: one key, all keys, and all when something was missed', async () => {
  const net = network(['a', 'b'])
  let loads = 0
  const cacheOf = (id: string) =>
    createCache<number>({
      clock: createTestClock(),
      ttlMs: 60_000,
      entriesMax: 10,
      load: async () => ++loads,
      shared: { changes: net.of(id).hub, topic: 'numbers' },
    })
  const [a, b] = [cacheOf('a'), cacheOf('b')]
  const read = async () => [await b.get('one'), await b.get('two')]
  assert.deepEqual(await read(), [1, 2])
  a.forget('one')
  await net.of('a').hub.applied()
  assert.deepEqual(await read(), [3, 2])
  a.forget()
  await net.of('a').hub.applied()
  assert.deepEqual(await read(), [4, 5])
  await net.of('b').hub.missed()
  assert.deepEqual(await read(), [6, 7])
})

test('a hint costs nothing without others', async () => {
  const net = network(['a'])
  let sent = 0
  net.of('a').hub.attach({ carry: async () => Boolean(++sent), hasOthers: () => false })
  net.of('a').hub.hint('topic', 'x')
  assert.equal(sent, 0)
})

test('notes of others on the channel are ignored', () => {
  const { announcements } = network(['a', 'b']).of('a')
  for (const payload of ['', 'null', '{', '7', '{"kind":"say"}', '{"kind":"done","numbers":7}', '[]'])
    announcements.received(payload)
})
