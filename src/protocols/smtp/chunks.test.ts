/** Transactions in one write to servers that take chunks (RFC 3030). */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import fc from 'fast-check'
import { createSink, DEFAULT_EXTENSIONS, type Sink } from '../../../test/support/smtp-sink.ts'
import { relaxedBodyHash } from '../dkim/body-hash.ts'
import type { Chunk } from '../message/mime-message.ts'
import { type ConnectOptions, connectSmtp } from './client.ts'
import type { SmtpConnection, Transaction } from './connection.ts'
import { SmtpFailure } from './failure.ts'

async function withConnection(
  use: (connection: SmtpConnection, sink: Sink) => Promise<void>,
  options: Partial<ConnectOptions> = {},
): Promise<void> {
  const sink = await createSink({ extensions: [...DEFAULT_EXTENSIONS, 'CHUNKING'] })
  const { host, port } = sink
  const connection = await connectSmtp({
    ...{ host, port, heloName: 'client.test', tls: 'none', verify: false },
    ...options,
  })
  try {
    await use(connection, sink)
  } finally {
    connection.close()
    await sink.close()
  }
}

const transaction = (body: Chunk[], more: Partial<Transaction> = {}): Transaction => ({
  returnPath: 'a@example.com',
  recipients: ['b@example.net'],
  message: { headers: ['Subject: test'], body },
  sizeBytes: 1_000,
  utf8: false,
  ...more,
})

const small = () => transaction([Buffer.from('hello\r\n')])
const verbs = (sink: Sink) => sink.commands.map(([, line]) => line.split(' ', 1)[0])

const isFailure = (stage: string, reason: string, afterFinalDot: boolean) => (error: unknown) =>
  error instanceof SmtpFailure &&
  error.stage === stage &&
  error.reason === reason &&
  error.afterFinalDot === afterFinalDot

test('any small body arrives as it is but for its line ends, dots included, and hashes as it was signed', () =>
  withConnection(async (connection, sink) => {
    const part = fc.constantFrom(
      '.',
      '..',
      '\r',
      '\n',
      '\r\n',
      '\0',
      'a ',
      ' \t',
      'ö',
      '\r\n.\r\nMAIL FROM:<>\r\n',
    )
    const piece = fc.array(part, { maxLength: 10 }).map((parts) => Buffer.from(parts.join('')))
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 6 }), async (body) => {
        sink.messages.length = 0
        sink.commands.length = 0
        assert.equal((await connection.send(transaction(body))).data?.code, 250)
        assert.deepEqual(verbs(sink), ['MAIL', 'RCPT', 'BDAT'])
        const lines = Buffer.concat(body)
          .toString()
          .replaceAll('\0', '')
          .replace(/\r\n|\r|\n/g, '\r\n')
        const expected = lines === '' || lines.endsWith('\r\n') ? lines : `${lines}\r\n`
        const received = sink.messages[0]?.raw ?? Buffer.alloc(0)
        assert.equal(received.toString(), `Subject: test\r\n\r\n${expected}`)
        const receivedBody = received.subarray('Subject: test\r\n\r\n'.length)
        assert.equal(await relaxedBodyHash([receivedBody]), await relaxedBodyHash(body))
      }),
      { seed: 3030, numRuns: 300 },
    )
  }))

test('nothing is written before the hook is done, and its error ends the connection with nothing sent', () =>
  withConnection(async (connection, sink) => {
    const gate = Promise.withResolvers<void>()
    const sending = connection.send({ ...small(), beforeFinalDot: () => gate.promise })
    gate.reject(new Error('not any more'))
    await assert.rejects(sending, /not any more/)
    await sink.idle()
    assert.deepEqual(verbs(sink), ['EHLO'])
  }))

const OTHERWISE: [name: string, given: Transaction, options: Partial<ConnectOptions>][] = [
  ['several recipients', transaction([Buffer.from('x')], { recipients: ['b@x.net', 'c@x.net'] }), {}],
  ['a larger message', transaction([Buffer.alloc(40_000, 'x')], { sizeBytes: 40_016 }), {}],
  ['a body that is read when needed', transaction([{ sizeBytes: 1, open: () => bytesOf('x') }]), {}],
  ['a server that is not to be asked for it', small(), { chunking: false }],
]
for (const [name, given, options] of OTHERWISE) {
  test(`${name}: step by step with DATA`, () =>
    withConnection(async (connection, sink) => {
      assert.equal((await connection.send(given)).data?.code, 250)
      assert.ok(verbs(sink).includes('DATA') && !verbs(sink).includes('BDAT'))
    }, options))
}

async function* bytesOf(text: string) {
  yield Buffer.from(text)
}

test('a refused recipient is reported; the next message starts with RSET and is delivered', () =>
  withConnection(async (connection, sink) => {
    sink.on('RCPT', '550 5.1.1 nobody', { times: 1 })
    const refused = await connection.send(small())
    assert.deepEqual([refused.recipients[0]?.reply.code, refused.data], [550, null])
    sink.commands.length = 0
    assert.equal((await connection.send(small())).data?.code, 250)
    assert.deepEqual(verbs(sink), ['RSET', 'MAIL', 'RCPT', 'BDAT'])
    assert.equal(sink.messages.length, 1)
  }))

test('a refused sender leaves the connection in order', () =>
  withConnection(async (connection, sink) => {
    sink.on('MAIL', '550 5.7.1 not you', { times: 1 })
    await assert.rejects(connection.send(small()), isFailure('mail', 'refused', false))
    assert.equal((await connection.send(small())).data?.code, 250)
  }))

test('a server that leaves with 421 at MAIL or RCPT says so', async () => {
  for (const [verb, stage] of [
    ['MAIL', 'mail'],
    ['RCPT', 'rcpt'],
  ] as const) {
    await withConnection(async (connection, sink) => {
      sink.on(verb, (session) => {
        session.write('421 4.3.2 closing\r\n')
        session.drop()
        return null
      })
      await assert.rejects(connection.send(small()), isFailure(stage, 'refused', false))
      assert.equal(connection.reusable, false)
    })
  }
})

test('a refused content decides, and the next message starts with RSET', () =>
  withConnection(async (connection, sink) => {
    sink.on('BDAT', '552 5.3.4 too much', { times: 1 })
    assert.equal((await connection.send(small())).data?.code, 552)
    sink.commands.length = 0
    assert.equal((await connection.send(small())).data?.code, 250)
    assert.deepEqual(verbs(sink), ['RSET', 'MAIL', 'RCPT', 'BDAT'])
  }))

test('a connection that breaks while the answer is awaited leaves the fate unknown', () =>
  withConnection(async (connection, sink) => {
    sink.dropAt('BDAT', { accept: true })
    await assert.rejects(connection.send(small()), isFailure('dot', 'closed', true))
  }))

for (const reply of ['502 5.5.1 what?', '503 5.5.1 not now']) {
  test(`a server that offers chunks and answers BDAT with ${reply} has said nothing about the message`, () =>
    withConnection(async (connection, sink) => {
      sink.on('BDAT', reply)
      await assert.rejects(connection.send(small()), isFailure('dot', 'unsupported', true))
      assert.equal(connection.reusable, false)
    }))
}

for (const [verb, refusal] of [
  ['MAIL', '550 5.7.1 not you'],
  ['RCPT', '550 5.1.1 nobody'],
] as const) {
  test(`${verb} refused by a server that does not know BDAT: what it says of the content is no answer to the next message`, async () => {
    const server = createServer((socket) => {
      let bdat = false
      socket.on('error', () => {})
      socket.write('220 sink\r\n')
      const lines = createInterface(socket)
      // It reports the errors of its socket again.
      lines.on('error', () => {})
      lines.on('line', (line) => {
        const reply = () => {
          if (line.startsWith('EHLO')) return '250-sink\r\n250-PIPELINING\r\n250 CHUNKING'
          if (line.startsWith(verb)) return refusal
          return /^(?:MAIL|RCPT|RSET|NOOP)/.test(line) ? '250 fine' : '502 5.5.1 what?'
        }
        const answer = () => {
          if (!socket.destroyed) socket.write(`${reply()}\r\n`)
        }
        if (bdat) setTimeout(answer, 50)
        else answer()
        bdat ||= line.startsWith('BDAT')
      })
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const host = '127.0.0.1'
    const connection = await connectSmtp({ host, port, heloName: 'client.test', tls: 'none', verify: false })
    try {
      const content = transaction([Buffer.from('NOOP\r\n'.repeat(9))])
      await connection.send(content).catch(() => {})
      assert.equal(connection.reusable, false)
    } finally {
      connection.close()
      server.close()
    }
  })
}
