/**
 * Secrets that callers hand in or get made are used in every way they are meant for, with the log at its most
 * talkative; then neither the data folder nor the log has them.
 */
import assert from 'node:assert/strict'
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { type TestContext, test } from 'node:test'
import pino from 'pino'
import { createDnsServer } from '../support/dns-server.ts'
import { createTestDatabase } from '../support/postgres.ts'
import {
  type Answer,
  type CallOptions,
  eventually,
  startTestService,
  TEST_KEY,
  type TestService,
} from '../support/service.ts'
import { createSink } from '../support/smtp-sink.ts'

/** RSAPrivateKey (RFC 8017 A.1.2) begins with the public half: version, modulus and exponent of 2048 bits. */
const PUBLIC_LINES = 6
const NAME = 'planted.example'

function captureLog() {
  let text = ''
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      text += chunk.toString()
      done()
    },
  })
  return { log: pino({ level: 'trace' }, stream), text: () => text }
}

/** Logs in over SMTP with both mechanisms' forms of the secret and resolves the replies. */
async function logIn(host: string, port: number, user: string, password: string): Promise<string> {
  const socket = connect(port, host)
  socket.setEncoding('utf8')
  const plain = Buffer.from(`\0${user}\0${password}`).toString('base64')
  socket.write(`EHLO test\r\nAUTH PLAIN ${plain}\r\nQUIT\r\n`)
  let replies = ''
  for await (const chunk of socket) replies += chunk
  return replies
}

/** A secret as text, and as base64 of any alignment. */
const formsOf = (secret: string) => [
  secret,
  ...[0, 1, 2].map((shift) =>
    Buffer.from(`${' '.repeat(shift)}${secret}`)
      .toString('base64')
      .slice(4, -4),
  ),
]

/** Keys that the service made itself. The one of its own TLS certificate is a file of its own, outside of these. */
const A_PEM = new Map([['a PEM', ['PRIVATE KEY', ...formsOf('-PRIVATE KEY-').slice(1)]]])

/** A number of a JWK: bytes, base64url and hex, of its first half. */
const numberForms = (text: string) => {
  const half = Buffer.from(text, 'base64url').subarray(0, 48)
  return [half, half.toString('base64'), half.toString('base64url'), half.toString('hex')]
}

async function filesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true })
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
}

/** Signs in by link and by key, uses each session, ends one; gives the secrets of both cookies. */
async function signInAndOut(service: TestService, linkToken: string) {
  const cookieOf = (answer: Answer) => /^\w+=([^;]+)/.exec(answer.headers.get('set-cookie') ?? '')?.[1] ?? ''
  const origin = { origin: service.url }
  const byLink = cookieOf(await service.call('GET', `/login/${linkToken}`, { key: null }))
  const signIn = { key: null, headers: origin, form: { key: TEST_KEY } }
  const byKey = cookieOf(await service.call('POST', '/sendwright/v1/session', signIn))
  const as = (secret: string) => ({
    key: null,
    headers: { ...origin, cookie: `sendwright_session=${secret}` },
  })
  assert.equal((await service.call('GET', '/v4/domains', as(byLink))).status, 200)
  assert.equal((await service.call('DELETE', '/sendwright/v1/session', as(byKey))).status, 200)
  assert.equal((await service.call('GET', '/v4/domains', as(byKey))).status, 401)
  return { linkCookie: byLink, keyCookie: byKey }
}

/** Secrets of the caller's in places where they are refused; each may be the right one of another service. */
async function presentWrongSecrets(service: TestService) {
  const made = (mark: string) => `${mark}-${randomBytes(10).toString('hex')}`
  const wrong = { wrongKey: made('Wr1'), wrongSignIn: made('Wr2'), wrongLink: made('Wr3') }
  const inUrls = { inWebhook: made('Wr4'), inArchive: made('Wr5'), inMessage: made('Wr6') }
  const refused = async (method: string, path: string, options: CallOptions, status: number) => {
    const answer = await service.call(method, path, options)
    assert.equal(answer.status, status, `${path}: ${answer.text}`)
  }
  const withUser = (password: string) => `https://user:${password}@hooks.example/in`
  await refused('GET', '/v4/domains', { key: wrong.wrongKey }, 401)
  await refused('POST', '/sendwright/v1/session', { key: null, form: { key: wrong.wrongSignIn } }, 401)
  await refused('GET', `/login/${wrong.wrongLink}`, { key: null }, 404)
  const hook = { url: withUser(inUrls.inWebhook) }
  await refused('POST', '/v1/webhooks', { form: { ...hook, event_types: 'opened' } }, 400)
  await refused('PUT', `/v4/domains/${NAME}`, { form: { archive_to: withUser(inUrls.inArchive) } }, 400)
  const message = { from: `a@${NAME}`, to: 'b@example.org', subject: 's', text: 't' }
  const archived = { ...message, 'o:archive-to': withUser(inUrls.inMessage) }
  await refused('POST', `/v3/${NAME}/messages`, { form: archived }, 400)
  return { ...wrong, ...inUrls }
}

async function plantAndSearch(t: TestContext, url?: string) {
  const dns = await createDnsServer()
  t.after(() => dns.close())
  const { log, text } = captureLog()
  const relay = { user: 'relay-user', password: `Pw4-${randomBytes(10).toString('hex')}` }
  const sink = await createSink({ auth: relay })
  t.after(() => sink.close())
  const service = await startTestService(
    t,
    {
      SENDWRIGHT_DNS: `${dns.host}:${dns.port}`,
      SENDWRIGHT_DELIVERY: `smtp://${relay.user}:${relay.password}@${sink.host}:${sink.port}`,
      SENDWRIGHT_TRANSCRIPTS: 'all',
      ...(url && { SENDWRIGHT_DATABASE_URL: url }),
    },
    { log },
  )
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const pem = privateKey.export({ type: 'pkcs1', format: 'pem' }).toString()
  const password = `Pw1-${randomBytes(10).toString('hex')}`
  const changed = `Pw2-${randomBytes(10).toString('hex')}`
  const login = `Pw3-${randomBytes(10).toString('hex')}`
  const call = async (method: string, path: string, form?: Record<string, string>, key?: string) => {
    const answer = await service.call(method, path, { ...(form && { form }), ...(key && { key }) })
    assert.ok(answer.status < 300, `${method} ${path}: ${answer.status} ${answer.text}`)
    return answer.body
  }
  /** The same call twice under one Idempotency-Key: the answer is stored in between. */
  const twice = async (method: string, path: string, form: Record<string, string>) => {
    const headers = { 'idempotency-key': randomBytes(8).toString('hex') }
    const [first, again] = [
      await service.call(method, path, { form, headers }),
      await service.call(method, path, { form, headers }),
    ]
    assert.equal(again.headers.get('idempotency-replayed'), 'true', again.text)
    assert.equal(again.text, first.text)
    return first.body
  }
  await call('POST', '/v4/domains', { name: NAME, smtp_password: password })
  await call('PUT', `/v4/domains/${NAME}`, { smtp_password: changed })
  await call('POST', '/v1/dkim/keys', { signing_domain: NAME, selector: 'mine', pem })
  for (const { dns_record: record } of (await call('GET', `/v4/domains/${NAME}/keys`)).items)
    dns.set(record.name, 'TXT', [record.value])
  const { sending_dns_records: records } = await call('GET', `/v4/domains/${NAME}`)
  for (const { record_type: type, name, value } of records) if (type === 'TXT') dns.set(name, 'TXT', [value])
  await call('PUT', `/v4/domains/${NAME}/verify`)
  await call('PUT', `/v4/domains/${NAME}/keys/mine/activate`)
  await call('POST', `/v3/domains/${NAME}/credentials`, { login: 'planted', password: login })
  const { key } = await call('POST', '/v1/keys', { role: 'admin', kind: 'user' })
  await call('GET', '/v4/domains', undefined, key.secret)
  await call(
    'POST',
    `/v3/${NAME}/messages`,
    { from: `a@${NAME}`, to: 'b@example.org', subject: 's', text: 't' },
    key.secret,
  )
  const smtp = service.service.smtp.port
  const { smtpHost } = service.config
  assert.match(await logIn(smtpHost, smtp, `planted@${NAME}`, login), /^235 /m)
  assert.match(await logIn(smtpHost, smtp, `postmaster@${NAME}`, changed), /^235 /m)
  await logIn(smtpHost, smtp, `planted@${NAME}`, password)
  const repeated = {
    repeatedKey: (await twice('POST', '/v1/keys', { role: 'basic', kind: 'user' })).key.secret,
    repeatedLogin: (await twice('POST', `/v3/domains/${NAME}/credentials`, { login: 'second' })).credentials[
      `second@${NAME}`
    ],
    repeatedLink: (await twice('POST', '/sendwright/v1/login-links', {})).url.split('/').at(-1),
    signingKey: (await twice('POST', '/v5/accounts/http_signing_key', {})).http_signing_key,
    givenPassword: `Pw5-${randomBytes(10).toString('hex')}`,
  }
  await twice('POST', `/v3/domains/${NAME}/credentials`, { login: 'third', password: repeated.givenPassword })
  const browser = await signInAndOut(service, repeated.repeatedLink)
  await eventually('the message at the relay', async () => sink.messages.length > 0)
  const wrong = await presentWrongSecrets(service)
  // What goes wrong is logged more fully than what goes well.
  await service.call('POST', '/v1/dkim/keys', { form: { signing_domain: NAME, selector: 'mine', pem } })
  await service.call('POST', '/v4/domains', { form: { name: NAME, smtp_password: password } })
  await service.call('PUT', `/v3/domains/${NAME}/credentials/nobody`, { form: { password: login } })
  const body = pem.split('\n').filter((line) => line !== '' && !line.startsWith('-----'))
  const secrets = {
    password,
    changed,
    login,
    key: key.secret as string,
    admin: TEST_KEY,
    relay: relay.password,
    ...repeated,
    ...browser,
    ...wrong,
  }
  for (const [what, secret] of Object.entries(secrets)) assert.ok(secret?.length >= 16, `${what} is a secret`)
  const { d = '', p = '', q = '' } = privateKey.export({ format: 'jwk' })
  const marks = new Map<string, readonly (string | Buffer)[]>([
    ...body.slice(PUBLIC_LINES).map((line, at) => [`private line ${at} of the PEM`, [line]] as const),
    ...Object.entries({ d, p, q }).map(([part, text]) => [`${part} of the key`, numberForms(text)] as const),
    ...Object.entries(secrets).map(([what, secret]) => [what, formsOf(secret)] as const),
  ])
  return { service, marks, text, keyId: key.id as string }
}

function search(where: string, bytes: Buffer, marks: ReadonlyMap<string, readonly (string | Buffer)[]>) {
  for (const [what, forms] of marks)
    for (const form of forms) assert.ok(!bytes.includes(form), `${where} holds ${what}`)
}

test('private key, SMTP passwords and API keys are in no file and in no line of the log', async (t) => {
  const { service, marks, text, keyId } = await plantAndSearch(t)
  const folder = service.config.dataFolder
  const files = await filesBelow(folder)
  assert.ok(files.some((file) => file.endsWith('.db')))
  const all = Buffer.concat(await Promise.all(files.map((file) => readFile(file))))
  const database = files.filter((file) => /\.db(-\w+)?$/.test(file))
  for (const file of database) search(file, await readFile(file), A_PEM)
  assert.ok(all.includes(NAME) && all.includes(keyId), 'the search looks at the files where they would be')
  search('the data folder', all, marks)
  assert.ok(text().length > 0)
  search('the log', Buffer.from(text()), marks)
  search('the log', Buffer.from(text()), A_PEM)
})

test('nor in any row of a PostgreSQL database', async (t) => {
  const database = await createTestDatabase()
  t.after(() => database.drop())
  const { marks, text } = await plantAndSearch(t, database.url)
  const { default: pg } = await import('pg')
  const client = new pg.Client({ connectionString: database.url })
  await client.connect()
  try {
    const { rows } = await client.query("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    const rest: Buffer[] = []
    for (const { tablename } of rows as { tablename: string }[])
      for (const row of (await client.query(`SELECT * FROM "${tablename}"`)).rows as object[])
        for (const value of Object.values(row))
          rest.push(Buffer.isBuffer(value) ? value : Buffer.from(String(value)))
    const all = Buffer.concat(rest)
    assert.ok(all.includes(NAME))
    search('the database', all, marks)
    search('the database', all, A_PEM)
    search('the log', Buffer.from(text()), marks)
  } finally {
    await client.end()
  }
})
