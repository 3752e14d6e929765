/** A relay's password goes over TLS that verifies, whatever a message asks for. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createAuthority, selfSigned } from '../../../test/support/certificates.ts'
import { createSink, DEFAULT_EXTENSIONS, type SinkOptions } from '../../../test/support/smtp-sink.ts'
import { testRelay, testTransport } from '../../../test/support/test-transport.ts'
import { connectSmtp } from '../../protocols/smtp/client.ts'
import { passwordLogin } from '../../protocols/smtp/login.ts'
import type { ClaimedDelivery } from './claim/queue.ts'
import { isOwnMachine } from './connect/relay.ts'
import type { Prepared } from './contract.ts'

const authority = createAuthority()
const account = { user: 'user', password: 'password' }
const HOST = 'relay.example'

const WISHES = [false, true].flatMap((required) => [false, true].map((verify) => ({ required, verify })))

interface Relay {
  host?: string
  allowUnverified?: boolean
}

/** Sends a message with each wish to a relay; resolves what arrived, the commands, and the last failure. */
async function sendAll(
  t: TestContext,
  options: SinkOptions,
  { host = HOST, allowUnverified = false }: Relay,
) {
  const sink = await createSink({ auth: account, ...options })
  const transport = testTransport({
    relays: testRelay({
      host,
      port: sink.port,
      tls: isOwnMachine(host) ? 'wanted' : 'required',
      verify: !isOwnMachine(host) && !allowUnverified,
      auth: passwordLogin({ ...account, allowUnverified }),
    }),
    tlsOptions: { ca: authority.cert },
    connect: (wanted) => connectSmtp({ ...wanted, host: sink.host }),
  })
  t.after(async () => {
    await transport.close()
    await sink.close()
  })
  const failures: string[] = []
  for (const tls of WISHES) {
    const delivery = { recipient: 'user@receiver.example', recipient_domain: 'receiver.example' }
    const lane = await transport.laneOf(delivery as ClaimedDelivery)
    const result = await transport.deliver(
      lane,
      delivery as ClaimedDelivery,
      preparedWith(tls),
      async () => {},
    )
    if ('localFault' in result) throw new Error(result.localFault)
    if (result.outcome.kind === 'deferred') failures.push(result.outcome.failure.message)
  }
  const authentications = sink.commands.filter(([, line]) => line.startsWith('AUTH'))
  return { messages: sink.messages, authentications: authentications.length, failures }
}

function preparedWith(tls: { required: boolean; verify: boolean }): Extract<Prepared, { kind: 'send' }> {
  return {
    kind: 'send',
    about: {} as Extract<Prepared, { kind: 'send' }>['about'],
    returnPath: 'sender@example.org',
    message: { headers: ['Subject: hello'], body: [Buffer.from('Hi.\r\n')] },
    sizeBytes: 23,
    utf8: false,
    tls,
    primaryDkim: null,
  }
}

const REFUSED: [string, SinkOptions, Relay][] = [
  ['of an unknown authority', { tls: selfSigned([HOST]) }, {}],
  ['of an unknown authority for another name', { tls: selfSigned(['other.example']) }, {}],
  ['for another name', { tls: authority.issue(['other.example']) }, {}],
  ['that has expired', { tls: authority.issue([HOST], { to: new Date(0) }) }, {}],
  ['of an unknown authority on this machine', { tls: selfSigned(['localhost']) }, { host: 'localhost' }],
  ['of an unknown authority at a loopback address', { tls: selfSigned(['x']) }, { host: '127.0.0.1' }],
]
for (const [which, options, relay] of REFUSED)
  test(`no password over TLS with a certificate ${which}`, async (t) => {
    const { messages, authentications, failures } = await sendAll(t, options, relay)
    assert.deepEqual([messages.length, authentications, failures.length], [0, 0, WISHES.length])
    for (const failure of failures) assert.match(failure, /certificate .*SENDWRIGHT_DELIVERY/)
  })

for (const [how, options] of [
  ['does not offer STARTTLS', {}],
  ['fails at STARTTLS', { extensions: [...DEFAULT_EXTENSIONS, 'STARTTLS'] }],
] as const)
  test(`no password to a relay that ${how}`, async (t) => {
    for (const allowUnverified of [false, true]) {
      const { messages, authentications, failures } = await sendAll(t, options, { allowUnverified })
      assert.deepEqual([messages.length, authentications, failures.length], [0, 0, WISHES.length])
      assert.match(failures[0] ?? '', /SENDWRIGHT_DELIVERY/)
    }
  })

const ACCEPTED: [string, SinkOptions, Relay, boolean][] = [
  ['over TLS that verifies', { tls: authority.issue([HOST]) }, {}, true],
  ['over any TLS if the operator says so', { tls: selfSigned(['x']) }, { allowUnverified: true }, true],
  [
    'over any TLS on this machine if the operator says so',
    { tls: selfSigned(['x']) },
    { host: 'localhost', allowUnverified: true },
    true,
  ],
  ['without TLS to a loopback address', {}, { host: '127.0.0.1' }, false],
  ['without TLS to localhost', {}, { host: 'localhost' }, false],
]
for (const [how, options, relay, tls] of ACCEPTED)
  test(`the password goes ${how}, and one login serves all messages`, async (t) => {
    const { messages, authentications, failures } = await sendAll(t, options, relay)
    assert.deepEqual(failures, [])
    assert.deepEqual(
      messages.map((message) => message.tls),
      WISHES.map(() => tls),
    )
    assert.equal(authentications, 1)
  })
