import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CommandError } from '../usage.ts'
import { gatherAnswers, readFlags, type Surroundings } from './answers.ts'

const parts: Surroundings = {
  portState: async () => 'free',
  outgoingPort: async () => ({ sentence: 'open' }),
  relayFault: async () => null,
}
const HOST = ['--yes', '--host', 'mail.own.example']

const WRONG: [args: string[], says: RegExp][] = [
  [['--yes'], /^--host is missing/],
  [['--host', 'mail.own.example'], /not a terminal: give the answers as flags, with --yes/],
  [['--yes', '--host', '192.0.2.7'], /^--host: An address is not enough/],
  [['--yes', '--host', 'mail'], /^--host: "mail" is not a host name/],
  [[...HOST, '--https', 'magic'], /^--https: "magic" is not one of acme, files/],
  [[...HOST, '--password', 'secret-secret'], /^Unknown option '--password'/],
  [[...HOST, '--storage', 'postgres'], /needs SENDWRIGHT_DATABASE_URL/],
  [[...HOST, '--delivery', 'relay'], /needs SENDWRIGHT_DELIVERY/],
  [[...HOST, '--https', 'files', '--tls-cert', '/c.pem'], /^--tls-key is missing/],
  [[...HOST, '--smtp-port', '99999'], /^--smtp-port: "99999" is not a port/],
]

for (const [args, says] of WRONG)
  test(`setup ${args.join(' ')} is refused with exit code 2`, async () => {
    await assert.rejects(
      async () => gatherAnswers(readFlags(args), {}, parts),
      (error) => error instanceof CommandError && error.exitCode === 2 && says.test(error.message),
    )
  })

test('without a terminal the present settings are the answers, secrets included', async () => {
  const present = {
    SENDWRIGHT_PUBLIC_URL: 'https://mail.own.example',
    SENDWRIGHT_ACME: 'yes',
    SENDWRIGHT_ACME_EMAIL: 'me@own.example',
    SENDWRIGHT_DELIVERY: 'smtp://user:secret@relay.example:587',
    SENDWRIGHT_SMTP_PORT: '26',
    SENDWRIGHT_DATABASE_URL: 'postgres://user:secret@db.example/x',
  }
  const { answers } = await gatherAnswers(readFlags(['--yes']), present, parts)
  assert.deepEqual(answers, {
    host: 'mail.own.example',
    https: 'acme',
    acmeEmail: 'me@own.example',
    tls: null,
    trustedProxies: '',
    delivery: present.SENDWRIGHT_DELIVERY,
    smtpPort: 26,
    databaseUrl: present.SENDWRIGHT_DATABASE_URL,
    dataFolder: null,
  })
})

test('SMTP gets port 25 where this user may open it, else the default', async () => {
  const flags = readFlags([...HOST, '--delivery', 'direct'])
  assert.equal((await gatherAnswers(flags, {}, parts)).answers.smtpPort, 25)
  for (const state of ['taken', 'forbidden'] as const)
    assert.equal(
      (await gatherAnswers(flags, {}, { ...parts, portState: async () => state })).answers.smtpPort,
      2525,
    )
})
