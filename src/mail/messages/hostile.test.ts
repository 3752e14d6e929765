/** What a caller may put into any field must not become structure of the mail, nor stop the service. */

import assert from 'node:assert/strict'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { test } from 'node:test'
import fc from 'fast-check'
import { anyCharacter } from '../../../test/support/any-character.ts'
import { malformedMessages } from '../../../test/support/malformed-mime.ts'
import { BadRequest } from '../../base/process/errors.ts'
import { Fields, Params, type UploadedFile } from '../../platform/http/request/params.ts'
import type { BlobStore } from '../../platform/store/blobs/blobs.ts'
import { messageBytes } from '../../protocols/message/mime-message.ts'
import { AddressSyntaxError, parseAddressList } from '../../protocols/mime/address.ts'
import { type Domain, domainOfRow, newDomainRow } from '../../sending/domains/domain.ts'
import { storeBody } from '../accept/rows.ts'
import { makeCopy } from '../compose/copy.ts'
import { mailHeaders } from '../compose/headers.ts'
import { createLargeTexts } from '../compose/large-texts.ts'
import type { MessageRecord } from '../record/record.ts'
import type { Draft } from '../request/draft.ts'
import { readMimeRequest, readSendRequest } from '../request/send-request.ts'

const domain: Domain = domainOfRow(
  newDomainRow({
    id: 'd',
    account_id: 'a',
    name: 'example.com',
    type: 'custom',
    state: 'active',
    created_at: 0,
  }),
  0,
)
const facts = {
  prefixes: ['X-Service-', 'X-Mailgun-'],
  now: 0,
  scheduleMaxMs: 1,
  contentType: 'multipart/form-data',
}
const noBlobs = new Proxy({} as BlobStore, {
  get() {
    throw new Error('nothing here is large')
  },
})

function paramsOf(fields: Record<string, string>, files: UploadedFile[] = []): Params {
  const body = new Fields()
  for (const [name, value] of Object.entries(fields)) body.add(name, value)
  return new Params({ query: new Fields(), body, files })
}

async function built(draft: Draft): Promise<Buffer> {
  const content = {
    headers: mailHeaders(draft, { domainName: domain.name, messageId: 'id@example.com', date: new Date(0) }),
    template: null,
    batch: draft.recipientVariables !== null,
    ...(await storeBody(draft.body, noBlobs)),
  }
  const [recipient] = draft.recipients
  assert.ok(recipient)
  const record: MessageRecord = {
    id: 'record',
    accountId: 'a',
    domainId: 'd',
    domainName: domain.name,
    messageId: 'id@example.com',
    summary: {
      from: '',
      to: '',
      subject: '',
      sender: 'a@example.com',
      recipients: ['b@example.org'],
      attachments: [],
      sizeBytes: 0,
      tags: [...draft.tags],
      userVariables: draft.userVariables,
      testMode: false,
      method: 'http',
      originatingIp: null,
      keyId: null,
      template: null,
    },
    options: draft.options,
    content,
    createdAt: 0,
  }
  const parts = {
    blobs: noBlobs,
    largeTexts: createLargeTexts(),
    renderer: { render: () => assert.fail() },
    tracker: { trackingOf: () => null },
    headerPrefix: 'X-Service-',
    storageUrl: '',
  }
  const variables = draft.recipientVariables?.get('b@example.org') ?? null
  const target = { delivery: { id: 'x', sid: 'sid' }, recipient, variables, list: null }
  const copy = await makeCopy(parts, record, domain, target)
  return messageBytes(copy.message)
}

/** An independent, strict reading of header blocks: names of the lines that begin a field, of every block in the mail. */
function fieldNames(raw: Buffer): string[] {
  const names: string[] = []
  const text = raw.toString('latin1')
  for (const line of text.slice(0, text.indexOf('\r\n\r\n')).split(/\r\n|\r|\n/)) {
    if (/^[ \t]/.test(line)) continue
    names.push(line.slice(0, line.indexOf(':')).toLowerCase())
  }
  return names
}

const BREAKS = [
  '\r\n',
  '\n',
  '\r',
  '\u0085',
  '\u2028',
  '\u2029',
  '\0',
  '\r\n ',
  '\v',
  '\f',
  '=?utf-8?q?=0D=0A?=',
  '=?utf-8?b?DQpYLUV2aWw6IDE=?=',
]
const evil = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        ...BREAKS,
        'X-Evil: 1',
        'Bcc: evil@example.net',
        '"',
        '<',
        '>',
        ',',
        ';',
        '%recipient.x%',
        '\ud800',
      ),
      fc.string({ maxLength: 12, unit: anyCharacter }),
    ),
    { minLength: 1, maxLength: 8 },
  )
  .map((pieces) => pieces.join(''))

const PLACES: Record<string, (payload: string) => [Record<string, string>, UploadedFile[]]> = {
  from: (text) => [{ from: `${text} <a@example.com>` }, []],
  'from name': (text) => [{ from: `"${text.replace(/["\\]/g, '')}" <a@example.com>` }, []],
  to: (text) => [{ to: `${text} <b@example.org>` }, []],
  cc: (text) => [{ cc: `"${text.replace(/["\\]/g, '')}" <c@example.org>` }, []],
  subject: (text) => [{ subject: text }, []],
  'h: value': (text) => [
    { 'h:X-Mine': text, 'h:Reply-To': text, 'h:List-Unsubscribe': text, 'h:Message-Id': text },
    [],
  ],
  'h: name': (text) => [{ [`h:${text}`]: 'x' }, []],
  'v: value': (text) => [{ 'v:mine': text }, []],
  'v: name': (text) => [{ [`v:${text}`]: 'x' }, []],
  'o:tag': (text) => [{ 'o:tag': text }, []],
  'recipient variable': (text) => [
    {
      subject: '%recipient.x%',
      'h:X-Mine': 'a %recipient.x%',
      'v:v': '%recipient.x%',
      'recipient-variables': JSON.stringify({ 'b@example.org': { x: text } }),
    },
    [],
  ],
  'file name and type': (text) => {
    const chunk = Buffer.from('x')
    const file = { filename: text, contentType: text, chunk, keep: () => chunk }
    return [
      {},
      [
        { ...file, fieldName: 'attachment' },
        { ...file, fieldName: 'inline' },
      ],
    ]
  },
}

const KNOWN = new Set(
  `from to cc subject date message-id sender x-mine reply-to list-unsubscribe x-service-tag x-service-variables
  x-service-sid mime-version content-type content-transfer-encoding`.split(/\s+/),
)

test('10,000 payloads in every field add no header line', async () => {
  const places = Object.entries(PLACES)
  let refused = 0
  for (const [at, [place, fill]] of places.entries()) {
    const runs = Math.ceil(10_000 / places.length)
    for (const payload of fc.sample(evil, { numRuns: runs, seed: 7_000 + at })) {
      const [fields, files] = fill(payload)
      let draft: Draft
      try {
        draft = readSendRequest(
          paramsOf({ from: 'a@example.com', to: 'b@example.org', subject: 's', text: 't', ...fields }, files),
          facts,
        )
      } catch (error) {
        assert.ok(error instanceof BadRequest, String(error))
        refused += 1
        continue
      }
      const names = fieldNames(await built(draft))
      const own = place === 'h: name' ? new Set([...KNOWN, payload.trim().toLowerCase()]) : KNOWN
      assert.deepEqual(
        names.filter((name) => !own.has(name)),
        [],
        `${place}: ${JSON.stringify(payload)}`,
      )
      for (const name of ['from', 'to', 'subject', 'message-id', 'date', 'content-type']) {
        assert.ok(
          names.filter((other) => other === name).length <= 1,
          `${place}: two ${name}: ${JSON.stringify(payload)}`,
        )
      }
      assert.ok(!names.includes('bcc') && !names.includes('x-evil'))
    }
  }
  assert.ok(refused < 6_000, `${refused} refused: too few got through to prove anything`)
})

const LARGE: Record<string, () => string> = {
  '100,000 parts': () =>
    `From: a@example.com\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n${'--b\r\n\r\nx\r\n'.repeat(100_000)}`,
  '10,000 levels': () =>
    `From: a@example.com\r\n${Array.from({ length: 10_000 }, (_, n) => `Content-Type: multipart/mixed; boundary=b${n}\r\n\r\n--b${n}\r\n`).join('')}`,
  'a header of 1 MB': () => `From: a@example.com\r\nX-Long: ${'x '.repeat(524_288)}\r\n\r\nbody`,
  'a million addresses': () => `From: a@example.com\r\nTo: ${'a@b.example, '.repeat(1_000_000)}\r\n\r\nbody`,
  'a bomb of encoded words': () =>
    `From: a@example.com\r\nSubject: ${'=?utf-8?q?x?= '.repeat(60_000)}\r\n\r\nbody`,
  'a line of blanks': () =>
    `From: a@example.com\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n${' '.repeat(2_000_000)}x`,
  'unclosed parameters': () =>
    `From: a@example.com\r\nContent-Type: multipart/mixed${';a="'.repeat(20_000)}\r\n\r\nbody`,
}

async function read(chunk: Buffer): Promise<void> {
  const file = {
    fieldName: 'message',
    filename: 'm',
    contentType: 'message/rfc822',
    chunk,
    keep: () => chunk,
  }
  const fields = { to: 'b@example.org', 'recipient-variables': '{"b@example.org":{"x":"ä"}}' }
  const draft = await readMimeRequest(paramsOf(fields, [file]), facts)
  if (draft.from.length === 0) parseAddressList('')
  if (chunk.byteLength < 200_000) await built(draft)
}

test('2,000 malformed MIME messages: each is read or refused, none stops the service', async (t) => {
  const delay = monitorEventLoopDelay({ resolution: 10 })
  delay.enable()
  let readable = 0
  for (const message of [
    ...malformedMessages(2_000, 42),
    ...Object.values(LARGE).map((make) => Buffer.from(make(), 'latin1')),
  ]) {
    await new Promise((resolve) => setImmediate(resolve))
    await read(message).then(
      () => readable++,
      (error: unknown) =>
        assert.ok(
          error instanceof BadRequest || error instanceof AddressSyntaxError,
          String((error as Error).stack),
        ),
    )
  }
  delay.disable()
  t.diagnostic(`longest block of the event loop: ${Math.round(delay.max / 1e6)} ms`)
  assert.ok(readable > 1000, `${readable} readable`)
})
