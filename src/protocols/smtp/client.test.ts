import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { type Authority, createAuthority, selfSigned } from '../../../test/support/certificates.ts'
import {
  type Answer,
  createSink,
  DEFAULT_EXTENSIONS,
  type Sink,
  type SinkOptions,
} from '../../../test/support/smtp-sink.ts'
import type { Clock } from '../../base/time/clock.ts'
import type { TranscriptEntry } from './channel.ts'
import { type ConnectOptions, connectSmtp } from './client.ts'
import type { SmtpConnection } from './connection.ts'
import { SmtpFailure, type SmtpFailureReason, type SmtpStage } from './failure.ts'
import { passwordLogin } from './login.ts'

let authority: Authority

before(() => {
  authority = createAuthority()
})

/** Runs with a sink of its own and closes whatever is open afterwards. */
async function withSink(options: SinkOptions, run: (sink: Sink) => Promise<void>): Promise<void> {
  const sink = await createSink(options)
  try {
    await run(sink)
  } finally {
    await sink.close()
  }
}

function connect(sink: { host: string; port: number }, options: Partial<ConnectOptions> = {}) {
  return connectSmtp({
    host: sink.host,
    port: sink.port,
    heloName: 'client.test',
    tls: 'none',
    verify: false,
    ...options,
  })
}

/** A clock whose time stands still. */
function stoppedClock() {
  const timers = new Map<() => void, number>()
  let changed = Promise.withResolvers<void>()
  const clock: Clock = {
    now: () => 0,
    monotonic: () => 0,
    setTimer(delayMs, run) {
      timers.set(run, delayMs)
      changed.resolve()
      changed = Promise.withResolvers()
      return { cancel: () => timers.delete(run) }
    },
  }
  return {
    ...clock,
    /** Resolves when a timer of that length is running, with the way to let it run out. */
    async armed(delayMs: number): Promise<() => void> {
      for (;;) {
        const found = [...timers].find(([, delay]) => delay === delayMs)
        if (found !== undefined) return found[0]
        await changed.promise
      }
    },
  }
}

async function fails(
  attempt: Promise<unknown>,
  stage: SmtpStage,
  reason: SmtpFailureReason,
  more: { code?: number; afterFinalDot?: boolean } = {},
): Promise<void> {
  await assert.rejects(attempt, (error) => {
    assert.ok(error instanceof SmtpFailure, String(error))
    assert.deepEqual(
      {
        stage: error.stage,
        reason: error.reason,
        code: error.reply?.code,
        afterFinalDot: error.afterFinalDot,
      },
      { stage, reason, code: more.code, afterFinalDot: more.afterFinalDot ?? false },
      error.message,
    )
    return true
  })
}

const transaction = (recipients = ['b@example.net'], body: string | Buffer = 'Hello\r\n') => ({
  returnPath: 'a@example.com',
  recipients,
  message: { headers: ['Subject: test'], body: [Buffer.from(body)] },
  sizeBytes: 30,
  utf8: false,
})

async function withConnection(
  sink: Sink,
  options: Partial<ConnectOptions>,
  use: (connection: SmtpConnection) => Promise<void>,
): Promise<void> {
  const connection = await connect(sink, options)
  try {
    await use(connection)
  } finally {
    connection.close()
  }
}

describe('opening', () => {
  test('greeting and EHLO give extensions, peer and a usable connection', () =>
    withSink({}, async (sink) => {
      await withConnection(sink, { localAddress: '127.0.0.2' }, async (connection) => {
        assert.equal(connection.reusable, true)
        assert.equal(connection.tls, null)
        assert.equal(connection.extensions.get('SIZE'), '52428800')
        assert.deepEqual(connection.peer, { host: '127.0.0.1', port: sink.port, address: '127.0.0.1' })
        await connection.quit()
        assert.equal(connection.reusable, false)
      })
      assert.deepEqual(
        sink.commands.map(([, line]) => line),
        ['EHLO client.test', 'QUIT'],
      )
    }))

  const REFUSALS: [
    event: string,
    answer: string,
    stage: SmtpStage,
    reason: SmtpFailureReason,
    code?: number,
  ][] = [
    ['CONNECT', '554 5.7.1 not you', 'greeting', 'refused', 554],
    ['CONNECT', '421 4.3.2 busy', 'greeting', 'refused', 421],
    ['CONNECT', '250 what', 'greeting', 'protocol', 250],
    ['CONNECT', 'HTTP/1.1 400 Bad Request', 'greeting', 'protocol'],
    ['CONNECT', `220-${'x'.repeat(5000)}`, 'greeting', 'protocol'],
    ['CONNECT', '220-x\r\n'.repeat(200), 'greeting', 'protocol'],
    ['EHLO', '421 4.3.2 closing', 'ehlo', 'refused', 421],
    ['EHLO', '450 4.7.1 greylisted', 'ehlo', 'refused', 450],
    ['EHLO', '554 5.7.1 no service', 'ehlo', 'refused', 554],
  ]
  for (const [event, answer, stage, reason, code] of REFUSALS) {
    test(`${event} answered "${answer.slice(0, 30)}" fails in stage ${stage}: ${reason}`, () =>
      withSink({}, async (sink) => {
        sink.on(event, answer)
        await fails(connect(sink), stage, reason, code === undefined ? {} : { code })
        await sink.idle()
      }))
  }

  test('a server that refuses EHLO is greeted with HELO and has no extensions', () =>
    withSink({}, async (sink) => {
      sink.on('EHLO', '502 5.5.1 what?')
      await withConnection(sink, { tls: 'opportunistic' }, async (connection) => {
        assert.equal(connection.extensions.size, 0)
        assert.equal((await connection.send(transaction())).data?.code, 250)
      })
    }))

  test('a server that leaves before or after the greeting fails in that stage', () =>
    withSink({}, async (sink) => {
      sink.dropAt('CONNECT', { times: 1 })
      await fails(connect(sink), 'greeting', 'closed')
      sink.dropAt('EHLO', { times: 1, reset: true })
      await fails(connect(sink), 'ehlo', 'closed')
    }))

  test('a port without a listener is unreachable', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as { port: number }
    server.close()
    await once(server, 'close')
    await fails(connect({ host: '127.0.0.1', port }), 'connect', 'unreachable')
  })

  test('a HELO name that would be a command of its own is refused without connecting', () =>
    withSink({}, async (sink) => {
      await fails(connect(sink, { heloName: 'a\r\nMAIL FROM:<>' }), 'ehlo', 'address')
      assert.equal(sink.connections.total, 0)
    }))
})

describe('time-outs and abort', () => {
  const STAGES: [event: string, stage: SmtpStage][] = [
    ['CONNECT', 'greeting'],
    ['EHLO', 'ehlo'],
    ['MAIL FROM', 'mail'],
    ['RCPT TO', 'rcpt'],
    ['DATA', 'data'],
    ['DATA-DOT', 'dot'],
  ]
  const attempt = async (sink: Sink, options: Partial<ConnectOptions>) => {
    const connection = await connect(sink, options)
    return connection.send(transaction())
  }
  // Each stage has a time of its own, by which its timer is known.
  const timeouts = { greeting: 1, ehlo: 2, mail: 3, rcpt: 4, data: 5, dot: 6 }
  for (const [event, stage] of STAGES) {
    for (const reason of ['timeout', 'aborted'] as const) {
      test(`silence at ${event}, then ${reason}: fails in stage ${stage}`, () =>
        withSink({}, async (sink) => {
          const clock = stoppedClock()
          const controller = new AbortController()
          const held = sink.hold(event)
          const sent = attempt(sink, { clock, timeouts, signal: controller.signal })
          const failed = fails(sent, stage, reason, { afterFinalDot: stage === 'dot' })
          const runOut = await clock.armed(timeouts[stage as keyof typeof timeouts])
          await held.reached
          if (reason === 'timeout') runOut()
          else controller.abort(new Error('not wanted any more'))
          await failed
          held.release()
          await sink.idle()
        }))
    }
  }

  test('an attempt that is aborted before it begins does not begin', () =>
    withSink({}, async (sink) => {
      await fails(connect(sink, { signal: AbortSignal.abort() }), 'connect', 'aborted')
    }))
})

for (const pipelining of [true, false]) {
  const options: SinkOptions = pipelining ? {} : { extensions: ['8BITMIME', 'SIZE'] }
  const open = (sink: Sink, use: (connection: SmtpConnection) => Promise<void>) =>
    withConnection(sink, {}, use)

  describe(pipelining ? 'transactions, pipelined' : 'transactions, one command at a time', () => {
    test('several messages go over one connection', () =>
      withSink(options, async (sink) => {
        await open(sink, async (connection) => {
          for (let count = 0; count < 3; count++) {
            const result = await connection.send(transaction(['b@example.net', 'c@example.net']))
            assert.equal(result.data?.code, 250)
            assert.deepEqual(
              result.recipients.map(({ address, reply }) => [address, reply.code]),
              [
                ['b@example.net', 250],
                ['c@example.net', 250],
              ],
            )
          }
        })
        assert.equal(sink.connections.total, 1)
        assert.equal(sink.messages[2]?.raw.toString(), 'Subject: test\r\n\r\nHello\r\n')
        assert.deepEqual(sink.messages[0]?.envelope, {
          from: 'a@example.com',
          to: ['b@example.net', 'c@example.net'],
        })
        assert.ok(!sink.commands.some(([, line]) => line === 'RSET'))
      }))

    test('the null return path is <>', () =>
      withSink(options, async (sink) => {
        await open(sink, async (connection) => {
          await connection.send({ ...transaction(), returnPath: '' })
        })
        assert.ok(sink.commands.some(([, line]) => line.startsWith('MAIL FROM:<>')))
      }))

    test('a 450 to one RCPT TO is that recipient’s own, the others get the message', () =>
      withSink(options, async (sink) => {
        sink.on('RCPT TO:<b@example.net>', '450 4.2.2 mailbox full')
        sink.on('RCPT TO:<c@example.net>', '550-5.1.1 no such\r\n550 5.1.1 user')
        await open(sink, async (connection) => {
          const recipients = ['a@example.net', 'b@example.net', 'c@example.net', 'd@example.net']
          const result = await connection.send(transaction(recipients))
          assert.deepEqual(
            result.recipients.map(({ reply }) => reply.code),
            [250, 450, 550, 250],
          )
          assert.equal(result.data?.code, 250)
          assert.equal(connection.reusable, true)
        })
        assert.deepEqual(sink.messages[0]?.envelope.to, ['a@example.net', 'd@example.net'])
      }))

    test('with every recipient refused nothing is sent, and the connection goes on', () =>
      withSink(options, async (sink) => {
        sink.on('RCPT TO', '550 5.1.1 no such user', { times: 2 })
        await open(sink, async (connection) => {
          const result = await connection.send(transaction(['b@example.net', 'c@example.net']))
          assert.equal(result.data, null)
          assert.equal((await connection.send(transaction())).data?.code, 250)
        })
        assert.equal(sink.messages.length, 1)
        assert.equal(sink.connections.total, 1)
      }))

    test('a refused MAIL FROM is a failure that leaves the connection in order', () =>
      withSink(options, async (sink) => {
        sink.on('MAIL FROM', '550 5.7.1 bad sender', { times: 1 })
        await open(sink, async (connection) => {
          await fails(connection.send(transaction()), 'mail', 'refused', { code: 550 })
          assert.equal(connection.reusable, true)
          assert.equal((await connection.send(transaction())).data?.code, 250)
        })
      }))

    test('a refused DATA is the answer for all accepted recipients', () =>
      withSink(options, async (sink) => {
        sink.on('DATA', '451 4.3.0 later', { times: 1 })
        await open(sink, async (connection) => {
          assert.equal((await connection.send(transaction())).data?.code, 451)
          assert.equal((await connection.send(transaction())).data?.code, 250)
        })
      }))

    for (const code of [451, 552]) {
      test(`${code} to the final dot is the answer, and the connection goes on`, () =>
        withSink(options, async (sink) => {
          sink.on('DATA-DOT', `${code} no`, { times: 1 })
          await open(sink, async (connection) => {
            assert.equal((await connection.send(transaction())).data?.code, code)
            assert.equal((await connection.send(transaction())).data?.code, 250)
          })
          assert.equal(sink.messages.length, 1)
        }))
    }

    const LEAVING: [event: string, stage: SmtpStage | null][] = [
      ['MAIL FROM', 'mail'],
      ['RCPT TO', 'rcpt'],
      ['DATA', null],
      ['DATA-DOT', null],
    ]
    for (const [event, stage] of LEAVING) {
      test(`421 to ${event} ends the use of the connection`, () =>
        withSink(options, async (sink) => {
          sink.on(event, '421 4.7.0 closing')
          await open(sink, async (connection) => {
            const sent = connection.send(transaction())
            if (stage !== null) await fails(sent, stage, 'refused', { code: 421 })
            else assert.equal((await sent).data?.code, 421)
            assert.equal(connection.reusable, false)
          })
          await sink.idle()
        }))
    }

    const DROPS: [event: string, stage: SmtpStage, afterFinalDot: boolean][] = [
      ['MAIL FROM', 'mail', false],
      ['RCPT TO', 'rcpt', false],
      ['DATA', 'data', false],
      ['DATA-DOT', 'dot', true],
    ]
    for (const [event, stage, afterFinalDot] of DROPS) {
      for (const reset of [false, true]) {
        test(`a connection ${reset ? 'reset' : 'closed'} at ${event} fails in stage ${stage}`, () =>
          withSink(options, async (sink) => {
            sink.dropAt(event, { reset })
            await open(sink, async (connection) => {
              await fails(connection.send(transaction()), stage, 'closed', { afterFinalDot })
              assert.equal(connection.reusable, false)
            })
          }))
      }
      test(`garbage in answer to ${event} fails in stage ${stage}`, () =>
        withSink(options, async (sink) => {
          sink.on(event, '<html>')
          await open(sink, async (connection) => {
            await fails(connection.send(transaction()), stage, 'protocol', { afterFinalDot })
          })
        }))
    }

    test('a reply of class 3 where it makes no sense is a protocol failure', () =>
      withSink(options, async (sink) => {
        sink.on('RCPT TO', '354 go on', { times: 1 })
        await open(sink, async (connection) => {
          await fails(connection.send(transaction()), 'rcpt', 'protocol', { code: 354 })
        })
        sink.on('DATA-DOT', '354 go on', { times: 1 })
        await open(sink, async (connection) => {
          await fails(connection.send(transaction()), 'dot', 'protocol', { code: 354, afterFinalDot: true })
        })
        sink.on('DATA', '250 ok', { times: 1 })
        await open(sink, async (connection) => {
          await fails(connection.send(transaction()), 'data', 'protocol', { code: 250 })
        })
      }))

    test('refusals are known even if the server closes right after them', () =>
      withSink(options, async (sink) => {
        sink.on('RCPT TO', (session) => {
          session.write('550 5.7.1 go away\r\n')
          session.drop()
          return null
        })
        await open(sink, async (connection) => {
          const result = await connection.send(transaction())
          assert.deepEqual([result.recipients[0]?.reply.code, result.data], [550, null])
        })
        sink.clearRules()
        sink.on('MAIL FROM', (session) => {
          session.write('550 5.7.1 go away\r\n')
          session.drop()
          return null
        })
        await open(sink, async (connection) => {
          await fails(connection.send(transaction()), 'mail', 'refused', { code: 550 })
        })
      }))
  })
}

describe('pipelining', () => {
  test('envelope and DATA go out before the first answer is there', () =>
    withSink({}, async (sink) => {
      await withConnection(sink, {}, async (connection) => {
        const held = sink.hold('MAIL FROM')
        const sent = connection.send(transaction())
        const session = await held.reached
        assert.equal(session.connection, 1)
        held.release()
        assert.equal((await sent).data?.code, 250)
      })
      assert.deepEqual(
        sink.commands.map(([, line]) => line.split(/[ :]/)[0]),
        ['EHLO', 'MAIL', 'RCPT', 'DATA'],
      )
    }))

  test('DATA accepted though no recipient was: a lone dot, whatever its answer, and no recipient gets anything', () =>
    withSink({}, async (sink) => {
      for (const answer of ['554 5.5.1 no recipients', '250 2.0.0 Ok']) {
        sink.clearRules()
        sink.on('RCPT TO', '550 5.1.1 no such user', { times: 1 })
        sink.on('DATA', '354 go on', { times: 1 })
        const acceptAnyway: Answer = (session) => {
          session.accept()
          return answer
        }
        sink.on('DATA-DOT', acceptAnyway, { times: 1 })
        await withConnection(sink, {}, async (connection) => {
          assert.equal((await connection.send(transaction())).data, null)
          assert.equal(sink.messages.at(-1)?.raw.length, 0)
          assert.equal((await connection.send(transaction())).data?.code, 250)
        })
      }
    }))

  test('1,000 recipients with mixed answers each get their own', () =>
    withSink({}, async (sink) => {
      const codes = [250, 450, 550]
      sink.on('RCPT TO', (_session, event) => `${codes[Number(/<(\d+)/.exec(event)?.[1]) % 3]} answer`)
      await withConnection(sink, {}, async (connection) => {
        const recipients = Array.from({ length: 1000 }, (_, index) => `${index}@example.net`)
        const result = await connection.send(transaction(recipients))
        result.recipients.forEach(({ address, reply }, index) => {
          assert.deepEqual([address, reply.code], [`${index}@example.net`, codes[index % 3]])
        })
        assert.equal(sink.messages[0]?.envelope.to.length, 334)
      })
    }))
})

test('a surplus reply to EHLO ends the connection by its name', () =>
  withSink({}, async (sink) => {
    sink.on('EHLO', '250 sink.test\r\n250 and more')
    await assert.rejects(connect(sink), { message: 'SMTP ehlo: unsolicited reply: 250 and more' })
  }))

describe('an idle connection', () => {
  test('that the server closes with 421 is no longer reusable', () =>
    withSink({}, async (sink) => {
      const held = sink.hold('CONNECT')
      const connecting = connect(sink)
      const session = await held.reached
      held.release()
      const connection = await connecting
      session.write('421 4.4.2 idle for too long\r\n')
      session.drop()
      await sink.idle()
      while (connection.reusable) await new Promise((resolve) => setImmediate(resolve))
      await fails(connection.send(transaction()), 'mail', 'closed')
      connection.close()
    }))

  test('on which the server speaks unasked is given up', () =>
    withSink({}, async (sink) => {
      const held = sink.hold('CONNECT')
      const connecting = connect(sink)
      const session = await held.reached
      held.release()
      const connection = await connecting
      session.write('250 and more\r\n')
      while (connection.reusable) await new Promise((resolve) => setImmediate(resolve))
      await fails(connection.send(transaction()), 'mail', 'closed')
      await sink.idle()
    }))
})

describe('extensions', () => {
  const mailCommand = (sink: Sink) => sink.commands.find(([, line]) => line.startsWith('MAIL'))?.[1]

  const CASES: [extensions: string[], body: string, utf8: boolean, command: string][] = [
    [[], 'a', false, 'MAIL FROM:<a@example.com>'],
    [[], 'ö', false, 'MAIL FROM:<a@example.com>'],
    [['SIZE'], 'a', false, 'MAIL FROM:<a@example.com> SIZE=30'],
    [['SIZE 0'], 'a', false, 'MAIL FROM:<a@example.com> SIZE=30'],
    [['size 30', '8bitmime'], 'ö', false, 'MAIL FROM:<a@example.com> SIZE=30 BODY=8BITMIME'],
    [['8BITMIME', 'SMTPUTF8'], 'a', false, 'MAIL FROM:<a@example.com>'],
    [['8BITMIME', 'SMTPUTF8'], 'a', true, 'MAIL FROM:<a@example.com> BODY=8BITMIME SMTPUTF8'],
  ]
  for (const [extensions, body, utf8, command] of CASES) {
    test(`offered ${extensions.join(', ') || 'nothing'}: ${command}`, () =>
      withSink({ extensions }, async (sink) => {
        await withConnection(sink, {}, async (connection) => {
          await connection.send({ ...transaction(undefined, body), utf8 })
        })
        assert.equal(mailCommand(sink), command)
        assert.equal(sink.messages[0]?.raw.toString(), `Subject: test\r\n\r\n${body}\r\n`)
      }))
  }

  test('a message over the announced size is not begun', () =>
    withSink({ extensions: ['SIZE 29'] }, async (sink) => {
      await withConnection(sink, {}, async (connection) => {
        await fails(connection.send(transaction()), 'mail', 'too-large')
        assert.equal(connection.reusable, true)
      })
      assert.equal(mailCommand(sink), undefined)
    }))

  test('UTF-8 addresses go to a server with SMTPUTF8 and to no other', async () => {
    const international = { ...transaction(['jö@example.net']), utf8: true }
    await withSink({}, async (sink) => {
      await withConnection(sink, {}, async (connection) => {
        await connection.send(international)
        await fails(connection.send({ ...international, utf8: false }), 'rcpt', 'address')
      })
      assert.deepEqual(sink.messages[0]?.envelope.to, ['jö@example.net'])
    })
    await withSink({ extensions: ['8BITMIME'] }, async (sink) => {
      await withConnection(sink, {}, (connection) =>
        fails(connection.send(international), 'mail', 'unsupported'),
      )
    })
  })

  test('an address that would be a command is refused and nothing of it is written', () =>
    withSink({}, async (sink) => {
      await withConnection(sink, {}, async (connection) => {
        const injection = 'b@example.net>\r\nRCPT TO:<c@example.net'
        await fails(connection.send(transaction([injection])), 'rcpt', 'address')
        await fails(connection.send({ ...transaction(), returnPath: injection }), 'mail', 'address')
      })
      assert.equal(sink.commands.length, 1)
    }))
})

describe('TLS', () => {
  const secure = (names = ['mx.example.net'], validity = {}): SinkOptions => ({
    tls: authority.issue(names, validity),
  })
  const trusting = (more: Partial<ConnectOptions> = {}): Partial<ConnectOptions> => ({
    tls: 'required',
    verify: true,
    serverName: 'mx.example.net',
    tlsOptions: { ca: authority.cert },
    ...more,
  })

  test('STARTTLS with a good certificate is verified, and EHLO said again', () =>
    withSink(secure(), async (sink) => {
      await withConnection(sink, trusting(), async (connection) => {
        assert.equal(connection.tls?.protocol, 'TLSv1.3')
        assert.equal(connection.tls?.verified, true)
        assert.equal((await connection.send(transaction())).data?.code, 250)
      })
      assert.equal(sink.messages[0]?.tls, true)
      assert.deepEqual(
        sink.commands.slice(0, 3).map(([, line]) => line),
        ['EHLO client.test', 'STARTTLS', 'EHLO client.test'],
      )
    }))

  test('extensions learnt in plain text do not outlive the handshake', () =>
    withSink({ ...secure(), extensions: [] }, async (sink) => {
      sink.on('EHLO', '250-sink.test\r\n250-SIZE 7\r\n250 STARTTLS', { times: 1 })
      await withConnection(sink, trusting(), async (connection) => {
        assert.equal(connection.extensions.size, 0)
      })
    }))

  test('TLS from the first byte', () =>
    withSink(
      { tls: { ...authority.issue(['mx.example.net', '127.0.0.1']), implicit: true } },
      async (sink) => {
        const options = trusting({ tls: 'implicit' })
        await withConnection(sink, options, async (connection) => {
          assert.equal(connection.tls?.verified, true)
          assert.equal((await connection.send(transaction())).data?.code, 250)
          await connection.quit()
        })
        const { serverName: _, ...byAddress } = options
        await withConnection(sink, byAddress, async (connection) => {
          assert.equal(connection.tls?.verified, true, 'the address itself is in the certificate')
        })
      },
    ))

  const BAD: [name: string, tls: () => SinkOptions['tls'], error: RegExp][] = [
    ['of an unknown authority', () => selfSigned(['mx.example.net']), /UNABLE_TO_VERIFY|SELF_SIGNED/],
    ['for another name', () => authority.issue(['other.example.net']), /not for "mx\.example\.net"/],
    ['for a name on another level', () => authority.issue(['*.mx.example.net', '*.net']), /not for/],
    ['that has expired', () => authority.issue(['mx.example.net'], { to: new Date(0) }), /CERT_HAS_EXPIRED/],
  ]
  for (const [name, tls, error] of BAD) {
    test(`a certificate ${name} counts only when it need not verify`, () =>
      withSink({ tls: tls() as NonNullable<SinkOptions['tls']> }, async (sink) => {
        for (const policy of ['opportunistic', 'required'] as const) {
          await assert.rejects(connect(sink, trusting({ tls: policy })), error)
          await fails(connect(sink, trusting({ tls: policy })), 'tls', 'certificate')
          await withConnection(sink, trusting({ tls: policy, verify: false }), async (connection) => {
            assert.equal(connection.tls?.verified, false)
            assert.match(connection.tls?.verifyError ?? '', error)
          })
        }
      }))
  }

  test('the caller may judge the certificate by rules of its own', () =>
    withSink({ tls: selfSigned(['x']) }, async (sink) => {
      const judge = ({ chain }: { chain: { fingerprint256: string }[] }) =>
        chain.length > 0 && chain[0]?.fingerprint256 ? null : 'none'
      await withConnection(sink, trusting({ tlsOptions: { judge } }), async (connection) => {
        assert.equal(connection.tls?.verified, true)
      })
    }))

  test('without STARTTLS an opportunistic connection is plain and a required one fails', () =>
    withSink({}, async (sink) => {
      await withConnection(sink, { tls: 'opportunistic' }, async (connection) =>
        assert.equal(connection.tls, null),
      )
      await fails(connect(sink, { tls: 'required' }), 'starttls', 'unsupported')
      assert.equal(sink.messages.length, 0)
    }))

  test('STARTTLS refused by a reply: opportunistic goes on, required fails', () =>
    withSink(secure(), async (sink) => {
      sink.on('STARTTLS', '454 4.7.0 not now')
      await withConnection(sink, { tls: 'opportunistic' }, async (connection) => {
        assert.equal(connection.tls, null)
        assert.equal((await connection.send(transaction())).data?.code, 250)
      })
      await fails(connect(sink, { tls: 'required' }), 'starttls', 'refused', { code: 454 })
    }))

  test('TLS that is promised and does not work fails in stage tls, for the caller to decide', () =>
    withSink({ extensions: ['STARTTLS'] }, async (sink) => {
      sink.on('STARTTLS', (session) => {
        session.write('220 go\r\n')
        session.drop()
        return null
      })
      for (const tls of ['opportunistic', 'required'] as const) {
        await assert.rejects(
          connect(sink, { tls }),
          (error) => error instanceof SmtpFailure && error.stage !== 'ehlo',
        )
      }
      sink.clearRules() // 220, but then no TLS
      await assert.rejects(
        connect(sink, { tls: 'opportunistic' }),
        (error) => error instanceof SmtpFailure && error.stage === 'tls',
      )
    }))

  test('a handshake without answer ends in a time-out', async () => {
    const clock = stoppedClock()
    const server = createServer((socket) => socket.on('error', () => {}).resume()).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as { port: number }
    const options = { tls: 'implicit' as const, clock, timeouts: { tls: 1 } }
    const failed = fails(connect({ host: '127.0.0.1', port }, options), 'tls', 'timeout')
    const runOut = await clock.armed(1)
    runOut()
    await failed
    server.close()
    await once(server, 'close')
  })

  for (const injected of ['250 injected', '25', '421 x', 'garbage']) {
    test(`plain text after the answer to STARTTLS (${injected}) ends the attempt`, () =>
      withSink(secure(), async (sink) => {
        sink.on('STARTTLS', (session) => {
          session.write(`220 go\r\n${injected}${injected === '25' ? '' : '\r\n'}`)
          return null
        })
        await assert.rejects(
          connect(sink, trusting()),
          (error) => error instanceof SmtpFailure && error.stage === 'starttls',
        )
        assert.equal(sink.commands.filter(([, line]) => line.startsWith('EHLO')).length, 1)
      }))
  }
})

describe('AUTH', () => {
  const account = { user: 'user', password: 'pässword' }
  const extensions = (mechanisms: string) => `250-sink.test\r\n250 AUTH ${mechanisms}`

  for (const mechanisms of ['PLAIN LOGIN', 'LOGIN', 'plain']) {
    test(`${mechanisms} with the right and the wrong password`, () =>
      withSink({ auth: account }, async (sink) => {
        sink.on('EHLO', extensions(mechanisms))
        await withConnection(sink, { auth: passwordLogin(account) }, async (connection) => {
          await connection.send(transaction())
        })
        assert.equal(sink.messages[0]?.auth, 'user')
        await fails(
          connect(sink, { auth: passwordLogin({ ...account, password: 'x' }) }),
          'auth',
          'refused',
          { code: 535 },
        )
      }))
  }

  test('credentials too long for the command line go on a line of their own', async () => {
    const long = { user: 'u'.repeat(300), password: 'p'.repeat(300) }
    await withSink({ auth: long }, async (sink) => {
      await withConnection(sink, { auth: passwordLogin(long) }, async () => {})
      assert.ok(sink.commands.some(([, line]) => line === 'AUTH PLAIN'))
    })
  })

  test('a server without a mechanism that we know', () =>
    withSink({}, async (sink) => {
      await fails(connect(sink, { auth: passwordLogin(account) }), 'auth', 'unsupported')
      sink.on('EHLO', extensions('GSSAPI NTLM'))
      await fails(connect(sink, { auth: passwordLogin(account) }), 'auth', 'unsupported')
    }))

  test('the transcript shows the dialogue without secrets and content', () =>
    withSink({ auth: account }, async (sink) => {
      const transcript: TranscriptEntry[] = []
      const options = {
        auth: passwordLogin(account),
        transcript: (entry: TranscriptEntry) => transcript.push(entry),
      }
      await withConnection(sink, options, async (connection) => {
        await connection.send(transaction(undefined, 'secret body'))
        await connection.quit()
      })
      assert.deepEqual(
        transcript
          .filter(({ line }) => !line.startsWith('250-'))
          .map(({ direction, line }) => `${direction[0]} ${line}`),
        [
          'r 220 sink.test ESMTP',
          's EHLO client.test',
          'r 250 AUTH PLAIN LOGIN',
          's AUTH PLAIN [hidden]',
          'r 235 2.7.0 welcome',
          's MAIL FROM:<a@example.com> SIZE=30',
          's RCPT TO:<b@example.net>',
          's DATA',
          'r 250 2.1.0 Ok',
          'r 250 2.1.5 Ok',
          'r 354 go on',
          's [33 bytes of content]',
          'r 250 2.0.0 Ok: queued as 1',
          's QUIT',
          'r 221 2.0.0 Bye',
        ],
      )
      assert.ok(transcript.every(({ ms }) => ms >= 0))
    }))
})

after(() => {
  assert.ok(DEFAULT_EXTENSIONS.includes('PIPELINING'), 'the pipelined half of these tests needs it')
})
