import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { createSink, type Sink } from '../../../test/support/smtp-sink.ts'
import { relaxedBodyHash } from '../dkim/body-hash.ts'
import { type Chunk, chunkSize, type LazyChunk } from '../message/mime-message.ts'
import { connectSmtp } from './client.ts'
import type { SmtpConnection } from './connection.ts'
import { SmtpFailure } from './failure.ts'

async function withConnection(
  use: (connection: SmtpConnection, sink: Sink) => Promise<void>,
  timeouts = {},
): Promise<void> {
  const sink = await createSink()
  const connection = await connectSmtp({
    host: sink.host,
    port: sink.port,
    heloName: 'client.test',
    tls: 'none',
    verify: false,
    timeouts,
  })
  try {
    await use(connection, sink)
  } finally {
    connection.close()
    await sink.close()
  }
}

const transaction = (body: Chunk[], headers = ['Subject: test']) => ({
  returnPath: 'a@example.com',
  recipients: ['b@example.net'],
  message: { headers, body },
  sizeBytes: body.reduce((sum, chunk) => sum + chunkSize(chunk), 0),
  utf8: false,
})

const lazy = (
  pieces: Uint8Array[],
  sizeBytes = pieces.reduce((sum, { length }) => sum + length, 0),
): LazyChunk => ({
  sizeBytes,
  open: async function* () {
    yield* pieces
  },
})

const isFailure =
  (stage: string, reason: string, afterFinalDot = false) =>
  (error: unknown) =>
    error instanceof SmtpFailure &&
    error.stage === stage &&
    error.reason === reason &&
    error.afterFinalDot === afterFinalDot

describe('content', () => {
  test('any body arrives as it is but for its line ends, as one message, and hashes as the signer hashes it', () =>
    withConnection(async (connection, sink) => {
      const piece = fc
        .array(
          fc.constantFrom('.', '..', '\r', '\n', '\r\n', '\0', 'a ', ' \t', 'ö', '\r\n.\r\nMAIL FROM:<>\r\n'),
          {
            maxLength: 10,
          },
        )
        .map((parts) => Buffer.from(parts.join('')))
      await fc.assert(
        fc.asyncProperty(fc.array(fc.tuple(piece, fc.boolean()), { maxLength: 6 }), async (pieces) => {
          const body = pieces.map(([bytes, isLazy]) => (isLazy ? lazy([bytes]) : bytes))
          sink.messages.length = 0
          assert.equal((await connection.send(transaction(body))).data?.code, 250)
          assert.equal(sink.messages.length, 1)
          const content = Buffer.concat(pieces.map(([bytes]) => bytes)).toString()
          const lines = content.replaceAll('\0', '').replace(/\r\n|\r|\n/g, '\r\n')
          const expected = lines === '' || lines.endsWith('\r\n') ? lines : `${lines}\r\n`
          const received = sink.messages[0]?.raw ?? Buffer.alloc(0)
          assert.equal(received.toString(), `Subject: test\r\n\r\n${expected}`)
          const receivedBody = received.subarray('Subject: test\r\n\r\n'.length)
          assert.equal(await relaxedBodyHash([receivedBody]), await relaxedBodyHash(body))
        }),
        { seed: 5321, numRuns: 300 },
      )
    }))

  const BEFORE_DOT = ['\n', '\r', '\r\n', '\n\n', '\r\r', '\r\r\n', '\n\r', '\0\r\n', '\r\0\n', '\r\n\0']
  const AFTER_DOT = ['\n', '\r', '\r\n', '\r\r\n', '\n\r\n', '\0\r\n', '\r\0\n']
  test('no sequence of line ends around a dot smuggles a second message', () =>
    withConnection(async (connection, sink) => {
      const smuggled = 'MAIL FROM:<evil@example.com>\r\nRCPT TO:<b@example.net>\r\nDATA\r\nX: y\r\n\r\n'
      for (const prefix of BEFORE_DOT) {
        for (const suffix of AFTER_DOT) {
          const body = Buffer.from(`a${prefix}.${suffix}${smuggled}`)
          assert.equal((await connection.send(transaction([body]))).data?.code, 250)
        }
      }
      assert.equal(sink.messages.length, BEFORE_DOT.length * AFTER_DOT.length)
      for (const { wire } of sink.messages) assert.doesNotMatch(wire.toString(), /\r(?!\n)|(?<!\r)\n|\0/)
      assert.ok(!sink.commands.some(([, line]) => line.includes('evil')))
    }))

  test('a header that could end the header block is refused before anything is written', () =>
    withConnection(async (connection, sink) => {
      for (const field of ['Subject: a\r\n\r\n.\r\nQUIT', 'Subject: a\nBcc: b', 'Subject\r\n: a']) {
        await assert.rejects(connection.send(transaction([], [field])), isFailure('data', 'message'))
      }
      assert.equal(sink.commands.length, 1)
      assert.equal(connection.reusable, true)
    }))

  test('a header line that begins with a dot is stuffed like any other', () =>
    withConnection(async (connection, sink) => {
      await connection.send(transaction([Buffer.from('x\r\n')], ['.odd: 1', 'Subject: a']))
      assert.equal(sink.messages[0]?.raw.toString(), '.odd: 1\r\nSubject: a\r\n\r\nx\r\n')
    }))

  test('a large body, partly lazy, arrives whole, and the source is read no faster than it is sent', () =>
    withConnection(async (connection, sink) => {
      const block = Buffer.from(`${'.'.repeat(1022)}\r\n`.repeat(64))
      const BLOCKS = 400 // 26 MB, more than the buffers of both sockets hold
      let read = 0
      const source: LazyChunk = {
        sizeBytes: BLOCKS * block.length,
        open: async function* () {
          for (let count = 0; count < BLOCKS; count++) {
            read++
            yield block
          }
        },
      }
      // The sink stops reading at the start of the content: its socket and ours fill up, then reading must pause.
      const held = sink.hold('BODY')
      const sent = connection.send(transaction([block, source]))
      await held.reached
      for (let turns = 0; turns < 100; turns++) await new Promise((resolve) => setImmediate(resolve))
      assert.ok(read < BLOCKS, 'reading continues although nothing is taken')
      held.release()
      assert.equal((await sent).data?.code, 250)
      assert.equal(read, BLOCKS)
      const raw = sink.messages[0]?.raw ?? Buffer.alloc(0)
      assert.equal(raw.length, 'Subject: test\r\n\r\n'.length + (BLOCKS + 1) * block.length)
      assert.ok(raw.subarray(-block.length).equals(block))
    }))

  test('a lazy body that breaks off, or has another length than it says, is never ended with a dot', () =>
    withConnection(async (_, sink) => {
      const broken: LazyChunk = {
        sizeBytes: 2000,
        open: async function* () {
          yield Buffer.alloc(1000, 'a')
          throw new Error('disk')
        },
      }
      const short = lazy([Buffer.from('ab')], 3)
      const long = lazy([Buffer.from('ab')], 1)
      for (const chunk of [broken, short, long]) {
        const { host, port } = sink
        const connection = await connectSmtp({ host, port, heloName: 'c', tls: 'none', verify: false })
        await assert.rejects(connection.send(transaction([chunk])), isFailure('body', 'message'))
        assert.equal(connection.reusable, false)
      }
      assert.equal(sink.messages.length, 0)
    }))
})

describe('the hook before the final dot', () => {
  test('runs when the server waits for nothing but the rest, and before it has the message', () =>
    withConnection(async (connection, sink) => {
      const seen: string[] = []
      const beforeFinalDot = async () => {
        seen.push(`${sink.commands.at(-1)?.[1]} ${sink.messages.length}`)
      }
      await connection.send({ ...transaction([Buffer.from('a')]), beforeFinalDot })
      assert.deepEqual(seen, ['DATA 0'])
    }))

  test('does not run when no recipient is to get the message', () =>
    withConnection(async (connection, sink) => {
      sink.on('RCPT TO', '550 no')
      const beforeFinalDot = () => assert.fail('called')
      const result = await connection.send({ ...transaction([]), beforeFinalDot })
      assert.equal(result.data, null)
    }))

  test('that fails keeps the message from being sent, and its error comes through', () =>
    withConnection(async (connection, sink) => {
      const error = new Error('database is away')
      const beforeFinalDot = () => Promise.reject(error)
      await assert.rejects(connection.send({ ...transaction([]), beforeFinalDot }), error)
      assert.equal(connection.reusable, false)
      await sink.idle()
      assert.equal(sink.messages.length, 0)
    }))

  test('a server that leaves, or speaks, meanwhile never gets the dot: the fate is known', async () => {
    const endings: [answer: string | null, reason: string][] = [
      [null, 'closed'],
      ['552 5.3.4 too big', 'refused'],
      ['421 4.3.2 shutdown', 'refused'],
      ['250 2.0.0 thanks', 'protocol'],
    ]
    for (const [answer, reason] of endings) {
      await withConnection(async (connection, sink) => {
        sink.on('BODY', (session) => {
          if (answer === null) session.drop()
          return answer
        })
        // Over a block, so that content is written before the hook is called.
        const body = Buffer.from('a line of text\r\n'.repeat(10_000))
        const beforeFinalDot = async () => {
          await sink.idle()
          // The sink's end is closed; a few turns of the loop bring the news to ours.
          for (let turns = 0; turns < 20; turns++) await new Promise((resolve) => setImmediate(resolve))
        }
        await assert.rejects(
          connection.send({ ...transaction([body]), beforeFinalDot }),
          isFailure('body', reason),
        )
        assert.equal(sink.messages.length, 0)
      })
    }
  })
})

test('one transaction at a time', () =>
  withConnection(async (connection) => {
    const first = connection.send(transaction([]))
    assert.equal(connection.reusable, false)
    await assert.rejects(connection.send(transaction([])), assert.AssertionError)
    assert.equal((await first).data?.code, 250)
    assert.equal(connection.reusable, true)
  }))

test('closing rejects the transaction in progress', () =>
  withConnection(async (connection, sink) => {
    const held = sink.hold('MAIL FROM')
    const sent = assert.rejects(connection.send(transaction([])), isFailure('mail', 'closed'))
    await held.reached
    connection.close()
    await sent
    held.release()
  }))

test('quit ends the connection even when the server does not answer it, and twice is once', () =>
  withConnection(
    async (connection, sink) => {
      sink.on('QUIT', null)
      await connection.quit()
      await connection.quit()
      await sink.idle()
      assert.equal(sink.commands.filter(([, line]) => line === 'QUIT').length, 1)
    },
    { quit: 1 },
  ))
