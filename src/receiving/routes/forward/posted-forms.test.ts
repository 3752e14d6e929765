import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import pino from 'pino'
import { createTestClock } from '../../../../test/support/clock.ts'
import { eventually } from '../../../../test/support/service.ts'
import { temporaryFolder } from '../../../../test/support/stores.ts'
import { createByteBudget } from '../../../base/flow/byte-budget.ts'
import { createLargeTexts } from '../../../mail/compose/large-texts.ts'
import type { MessageRecord } from '../../../mail/record/record.ts'
import { openBlobs } from '../../../platform/store/blobs/blobs.ts'
import { readChunk } from '../../../protocols/message/mime-message.ts'
import { attemptForm } from './form.ts'
import { createPostedForms } from './posted-forms.ts'

const IDLE_MS = 1_000
const TEXT = Buffer.alloc(100_000, 'Hello.\r\n')

/** A message of a text, with what a form reads of it. */
const recordOf = (id: string) =>
  ({
    ...{ id, domainName: 'example.com' },
    summary: { sender: 'a@example.org', sizeBytes: TEXT.byteLength },
    content: {
      kind: 'mime',
      headers: [['Subject', 's']],
      leaves: [
        {
          ...{ headerStart: -1, start: 0, end: TEXT.byteLength, sizeBytes: TEXT.byteLength },
          ...{ type: 'text/plain', charset: 'utf-8', encoding: '7bit', disposition: null },
          ...{ filename: '', contentId: null },
        },
      ],
      body: { base64: TEXT.toString('base64'), sizeBytes: TEXT.byteLength },
      incoming: { forwardFields: [], forwardedBy: {} },
    },
  }) as unknown as MessageRecord

async function start(t: TestContext, bytesMax?: number) {
  const folder = await temporaryFolder(t)
  const blobs = await openBlobs(folder)
  const largeTexts = createLargeTexts()
  t.after(() => largeTexts.close())
  const clock = createTestClock()
  /** Ids of messages with posts that are not done. */
  const pending = new Set<string>()
  /** Each question to the database waits for it. */
  const database = { answers: Promise.resolve() }
  const forms = createPostedForms({
    ...{ blobs, largeTexts, spool: blobs, clock, idleMs: IDLE_MS },
    store: {
      async read({ values }) {
        await database.answers
        return pending.has(String(values[0])) ? [{ id: 'post' }] : []
      },
    },
    bodiesOut: createByteBudget(40_000_000, clock),
    log: pino({ level: 'silent' }),
    ...(bytesMax !== undefined && { bytesMax }),
  })
  const files = () => readdirSync(join(folder, 'spool')).length
  return { forms, pending, clock, files, database }
}

test('a form is made once for all attempts of a kind, and all go with the last post of the message', async (t) => {
  const { forms, pending, files } = await start(t)
  pending.add('m')
  const record = recordOf('m')
  const uses = await Promise.all([1, 2, 3].map(() => forms.use(record, 'parsed', 'https://x.example/m')))
  assert.equal(files(), 1)
  const sent = await Promise.all(
    uses.map(async ({ form }, at) => {
      const { body } = attemptForm(form, { recipient: `r${at}@example.com`, signingKey: 'k', now: 0 })
      return (await readChunk(body)).toString()
    }),
  )
  for (const [at, text] of sent.entries())
    assert.ok(text.includes(`\r\n\r\nr${at}@example.com\r\n--sendwright-`))
  assert.equal(new Set(sent.map((text) => text.replace(/r\d@/, '').slice(0, 100_000))).size, 1)
  for (const { done } of uses) done()
  const raw = await forms.use(record, 'raw', 'https://x.example/m')
  assert.equal(files(), 2)
  pending.delete('m')
  raw.done()
  await eventually('no file', async () => files() === 0)
})

test('forms that wait are removed when there are too many, and when nothing uses them', async (t) => {
  const { forms, pending, files, clock } = await start(t, 500_000)
  for (const id of ['m1', 'm2', 'm3']) {
    pending.add(id)
    const { done } = await forms.use(recordOf(id), 'parsed', 'https://x.example/m')
    done()
  }
  await eventually('the oldest is gone', async () => files() === 1)
  await clock.advance(IDLE_MS)
  await eventually('no file', async () => files() === 0)
  const { done } = await forms.use(recordOf('m1'), 'parsed', 'https://x.example/m')
  assert.equal(files(), 1)
  await forms.close()
  assert.equal(files(), 0)
  done()
})

test('two attempts that end while the database is slow leave no timer that removes a form in use', async (t) => {
  const { forms, pending, files, clock, database } = await start(t)
  const use = () => forms.use(recordOf('m'), 'parsed', 'https://x.example/m')
  pending.add('m')
  const slow = Promise.withResolvers<void>()
  database.answers = slow.promise
  for (let end = 0; end < 3; end++) (await use()).done()
  slow.resolve()
  await slow.promise
  await new Promise((resolve) => setImmediate(resolve))
  const last = await use()
  await clock.advance(2 * IDLE_MS)
  assert.equal(files(), 1)
  assert.equal(
    (await readChunk(attemptForm(last.form, { recipient: 'r', signingKey: 'k', now: 0 }).body)).length > 0,
    true,
  )
  last.done()
  await forms.close()
})
