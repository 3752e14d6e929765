// Both databases: rows are locked against other nodes.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import pino from 'pino'
import { createTestClock } from '../../../test/support/clock.ts'
import { eachStore } from '../../../test/support/stores.ts'
import { readChunks } from '../../protocols/message/mime-message.ts'
import type { EventRecord } from '../../watching/events/event.ts'
import type { ClaimedDelivery } from '../deliver/claim/queue.ts'
import { createArchiveNotes, createArchiveSender, type PostResult } from './archive.ts'

const delivery = { id: 'd', account_id: 'a' } as ClaimedDelivery
const delivered = {
  event: 'delivered',
  domainName: 'mg.example.com',
  timestampUs: 5_000_999,
  payload: { envelope: { 'sending-ip': '192.0.2.7' } },
} as unknown as EventRecord

function noted() {
  const notes = createArchiveNotes()
  notes.note(delivery, {
    url: 'https://archive.example/',
    headers: ['From: a@b.c'],
    sourceHeader: 'X-Service-Sending-Ip',
  })
  return notes
}

test('only a delivery leaves a row, with the header block as it was sent', () => {
  assert.deepEqual(noted().statements(delivery, [{ ...delivered, event: 'failed' }], 1), [])
  assert.deepEqual(createArchiveNotes().statements(delivery, [delivered], 1), [])
  const [statement] = noted().statements(delivery, [delivered], 1)
  assert.ok(statement?.values.includes('From: a@b.c\r\nX-Service-Sending-Ip: 192.0.2.7\r\n'))
})

eachStore('copies are posted whole, tried again while that helps, and then given up', async (store) => {
  const clock = createTestClock()
  const results: PostResult[] = ['retry', 'taken', 'retry', 'retry', 'gone']
  const posted: string[] = []
  const counted: object[] = []
  const sender = createArchiveSender({
    store,
    clock,
    log: pino({ level: 'silent' }),
    scheduleMs: [1000],
    async countTaken(copy, removal) {
      counted.push(copy)
      await store.commit([removal])
    },
    bodyOf: async () => [Buffer.from('Body\r\n')],
    poster: {
      async post(url, contentType, body) {
        const parts: Uint8Array[] = []
        for await (const bytes of readChunks([body])) parts.push(bytes)
        const bytes = Buffer.concat(parts)
        assert.equal(bytes.byteLength, body.sizeBytes)
        posted.push(`${url} ${contentType} ${bytes}`)
        return results.shift() ?? assert.fail('one post too many')
      },
    },
  })
  const waiting = async () => (await store.db.selectFrom('archive_outbox').selectAll().execute()).length
  const add = () => store.commit(noted().statements(delivery, [delivered], clock.now()))
  await add()
  assert.equal(await sender.run(), 1)
  assert.equal(await sender.run(), 0)
  clock.stepWall(1000)
  await sender.run()
  assert.equal(await waiting(), 0)
  assert.equal(
    posted[1],
    'https://archive.example/ application/mime From: a@b.c\r\nX-Service-Sending-Ip: 192.0.2.7\r\n\r\nBody\r\n',
  )
  await add()
  await sender.run()
  clock.stepWall(1000)
  await sender.run()
  assert.equal(await waiting(), 0)
  await add()
  await sender.run()
  assert.equal(await waiting(), 0)
  assert.deepEqual(counted, [{ accountId: 'a', domainName: 'mg.example.com', at: 5000 }])
})

eachStore('a copy that is given up is logged without what is secret in its address', async (store) => {
  const clock = createTestClock()
  let logged = ''
  const stream = {
    write(line: string) {
      logged += line
    },
  }
  const sender = createArchiveSender({
    store,
    clock,
    log: pino({ level: 'trace' }, stream),
    scheduleMs: [],
    countTaken: () => assert.fail('not taken'),
    bodyOf: async () => [Buffer.from('Body')],
    poster: { post: async () => 'gone' },
  })
  const notes = createArchiveNotes()
  const url = 'https://user:pLanted@archive.example/in?token=pLanted'
  notes.note(delivery, { url, headers: [], sourceHeader: null })
  await store.commit(notes.statements(delivery, [delivered], clock.now()))
  await sender.run()
  assert.match(logged, /"url":"https:\/\/archive\.example\/in"/)
  assert.ok(!logged.includes('pLanted'), logged)
})
