/** Mailboxes as IMAP servers show them: Gmail's categories, and servers that cannot be trusted. */
import assert from 'node:assert/strict'
import { createServer, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { startGmailServer } from '../../../test/support/gmail-server.ts'
import { ownAddress } from '../../../test/support/service.ts'
import { findCopies, problemOf } from './mailbox.ts'
import type { Seed } from './seeds.ts'

const SEED: Omit<Seed, 'host' | 'port' | 'tls'> = {
  ...{ address: 'seed@gmail.com', key: 'seed@gmail.com', provider: 'gmail.com', name: 'Gmail' },
  ...{ region: 'us', user: 'seed', password: 'p4ssw0rd', ca: null, spam: null },
}

async function lookInto(t: TestContext, category: string, tls: Seed['tls']) {
  const server = await startGmailServer(ownAddress(), category)
  t.after(() => server.close())
  const seed = { ...SEED, host: server.host, port: server.port, tls }
  return { server, seed, look: () => findCopies(seed, ['<a@b.example>'], new AbortController().signal) }
}

for (const [shown, category] of [
  ['promotions', 'promotions'],
  ['forums', 'forums'],
  ['none of them', 'primary'],
] as const)
  test(`a message that Gmail shows under ${shown} is in the category ${category}`, async (t) => {
    const { server, look } = await lookInto(t, shown, 'none')
    const [copy] = await look()
    assert.deepEqual([copy?.destination, copy?.category], ['inbox', category])
    assert.equal(copy?.arrivedAt, Date.parse('2026-06-01T12:00:00Z'))
    const asked = server.commands.filter((command) => command.includes('X-GM-RAW'))
    assert.match(asked[0] ?? '', /category:promotions rfc822msgid:a@b\.example/)
    assert.equal(
      server.commands.some((command) => /^SELECT|STORE/i.test(command)),
      false,
      'it is opened read-only',
    )
  })

test('without STARTTLS no password is sent, and a sentence says so', async (t) => {
  const { server, seed, look } = await lookInto(t, 'promotions', 'starttls')
  const error = await look().then(
    () => assert.fail('the mailbox was read in plain text'),
    (cause: unknown) => cause,
  )
  assert.equal(
    problemOf(error, seed),
    `${seed.host}:${seed.port} does not offer STARTTLS, and the password is not sent without TLS.`,
  )
  assert.equal(server.commands.includes('LOGIN'), false)
})

/** Writes the text again and again, as fast as the client reads. */
function flood(socket: Socket, text: string): void {
  const more = () => {
    while (!socket.destroyed && socket.write(text));
  }
  socket.on('drain', more)
  more()
}

const FLOODS: Record<string, (socket: Socket) => void> = {
  'a line without an end': (socket) => flood(socket, 'x'.repeat(65_536)),
  'a literal of a gigabyte': (socket) => {
    socket.write('* OK ready\r\n* LIST () "/" {1000000000}\r\n')
    flood(socket, 'x'.repeat(65_536))
  },
  'folders without an end': (socket) => {
    socket.write('* OK ready\r\n')
    socket.once('data', () => flood(socket, '* LIST () "/" folder\r\n'.repeat(1_000)))
  },
}
/** What both sockets hold comes on top of what the client reads. */
const FLOOD_BYTES_MAX = 32 * 1024 * 1024

for (const [what, serve] of Object.entries(FLOODS))
  test(`a server that sends ${what} is left after a few megabytes`, async (t) => {
    const host = ownAddress()
    const sockets: Socket[] = []
    const server = createServer((socket) => {
      sockets.push(socket)
      socket.on('error', () => {})
      serve(socket)
    })
    await new Promise<void>((resolve) => server.listen(0, host, resolve))
    t.after(() => server.close())
    const address = server.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    const look = findCopies(
      { ...SEED, host, port, tls: 'none' },
      ['<a@b.example>'],
      new AbortController().signal,
    )
    await assert.rejects(look)
    assert.ok(sockets.every(({ bytesWritten }) => bytesWritten < FLOOD_BYTES_MAX))
  })

test('sentences name the server and what to do, in one line without the password', () => {
  const seed: Seed = { ...SEED, host: 'imap.example', port: 993, tls: 'implicit' }
  const cases: [error: unknown, says: RegExp][] = [
    [{ message: 'Command failed', authenticationFailed: true }, /^imap\.example:993 refuses the user seed: /],
    [
      { message: 'certificate has expired', code: 'CERT_HAS_EXPIRED' },
      /cannot be trusted: certificate has expired\.$/,
    ],
    [
      { message: 'self-signed certificate', code: 'DEPTH_ZERO_SELF_SIGNED_CERT' },
      /cannot be trusted: self-signed/,
    ],
    [new Error('connect ECONNREFUSED\r\n1'), /^imap\.example:993 cannot be read: connect ECONNREFUSED 1\.$/],
    [null, /no reason given/],
  ]
  for (const [error, says] of cases) assert.match(problemOf(error, seed), says)
  assert.ok(problemOf(new Error('x'.repeat(5_000)), seed).length <= 300)
})
