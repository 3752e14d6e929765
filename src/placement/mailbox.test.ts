/** Mailboxes as IMAP servers show them: Gmail's categories, and servers that cannot be trusted. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { startGmailServer } from '../../test/support/gmail-server.ts'
import { ownAddress } from '../../test/support/service.ts'
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
