// Own process: it measures the memory of its process.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { grownOldMb } from '../../../test/support/process-memory.ts'
import type { Domain } from '../../sending/domains/domain.ts'
import { acceptedMessage } from '../record/event-message.ts'
import type { MessageRecord } from '../record/record.ts'
import { type CopyParts, composeCopy } from './copy.ts'
import { createLargeTexts } from './large-texts.ts'

const record = (number: number) =>
  ({
    id: `m${number}`,
    accountId: 'a',
    domainId: 'd',
    domainName: 'mg.example.com',
    messageId: `${number}@mg.example.com`,
    summary: {
      recipients: ['bob@example.org'],
      tags: [],
      userVariables: { long: 'x'.repeat(5_000) + number },
    },
    options: {},
    content: {
      kind: 'parts',
      headers: [],
      text: `Hello ${number}`,
      html: null,
      amp: null,
      files: [],
      template: null,
    },
    createdAt: 1,
  }) as unknown as MessageRecord

const BOB = { name: '', local: 'bob', domain: 'example.org' }
const NOBODY = { delivery: null, recipient: null, variables: null, list: null }

test('what is worked out of a message is hidden on it, and goes with it', async (t) => {
  const largeTexts = createLargeTexts()
  t.after(() => largeTexts.close())
  const parts = { headerPrefix: 'X-Test-', largeTexts } as CopyParts
  const about = (message: MessageRecord) => acceptedMessage(message, '', BOB, { id: 'd' }, null, null)
  const message = record(0)
  const { summary } = about(message)
  assert.equal(about(message).summary, summary)
  assert.notEqual(about({ ...message, summary: { ...message.summary } }).summary, summary)
  await composeCopy(parts, message, {} as Domain, NOBODY)
  assert.equal(JSON.stringify({ ...message }), JSON.stringify(record(0)))
  assert.deepEqual(Object.getOwnPropertySymbols({ ...message, ...message.summary }), [])

  const pass = (count: number) => {
    for (let number = 0; number < count; number++) about(record(number))
  }
  pass(1_000)
  const grown = grownOldMb(() => pass(60_000))
  assert.ok(grown < 5, `${grown.toFixed(1)} MB`)
})
