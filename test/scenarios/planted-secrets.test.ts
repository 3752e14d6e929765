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
import { startTestService, TEST_KEY } from '../support/service.ts'

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

async function plantAndSearch(t: TestContext, url?: string) {
  const dns = await createDnsServer()
  t.after(() => dns.close())
  const { log, text } = captureLog()
  const service = await startTestService(
    t,
    { SENDWRIGHT_DNS: `${dns.host}:${dns.port}`, ...(url && { SENDWRIGHT_DATABASE_URL: url }) },
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
  await call('POST', '/v4/domains', { name: NAME, smtp_password: password })
  await call('PUT', `/v4/domains/${NAME}`, { smtp_password: changed })
  await call('POST', '/v1/dkim/keys', { signing_domain: NAME, selector: 'mine', pem })
  for (const { dns_record: record } of (await call('GET', `/v4/domains/${NAME}/keys`)).items)
    dns.set(record.name, 'TXT', [record.value])
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
  // What goes wrong is logged more fully than what goes well.
  await service.call('POST', '/v1/dkim/keys', { form: { signing_domain: NAME, selector: 'mine', pem } })
  await service.call('POST', '/v4/domains', { form: { name: NAME, smtp_password: password } })
  await service.call('PUT', `/v3/domains/${NAME}/credentials/nobody`, { form: { password: login } })
  const body = pem.split('\n').filter((line) => line !== '' && !line.startsWith('-----'))
  const secrets = { password, changed, login, key: key.secret as string, admin: TEST_KEY }
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
