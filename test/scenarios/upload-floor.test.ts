/** Uploads below the floor of free space: refused during the upload, over HTTP and SMTP, and nothing of them is kept. */
import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { startTestService, type TestService } from '../support/service.ts'
import { openDialogue, plainLogin } from '../support/smtp-dialogue.ts'

/** More than any disk has. */
const FLOOR = { SENDWRIGHT_FREE_SPACE_MIN: '900000g' }
const MB = 1_000_000

const spooled = ({ config }: TestService) => readdir(join(config.dataFolder, 'spool'))

/** The status of the response to a form whose file never ends. */
function beginUpload(t: TestContext, service: TestService): Promise<string> {
  const { hostname, port } = new URL(service.url)
  const socket = connect(Number(port), hostname)
  t.after(() => socket.destroy())
  const authorization = `Basic ${Buffer.from(`api:${service.key}`).toString('base64')}`
  socket.write(
    [
      `POST /v3/${service.domain}/messages HTTP/1.1`,
      `Host: ${hostname}`,
      `Authorization: ${authorization}`,
      'Content-Type: multipart/form-data; boundary=b',
      `Content-Length: ${20 * MB}`,
      '',
      '--b',
      'Content-Disposition: form-data; name="attachment"; filename="a"',
      '',
      '',
    ].join('\r\n'),
  )
  socket.write(Buffer.alloc(5 * MB, 'x'))
  return new Promise((resolve, reject) => {
    socket.once('data', (bytes) => {
      resolve(bytes.toString('latin1').split('\r\n', 1)[0] as string)
      socket.destroy()
    })
    socket.once('error', reject)
  })
}

test('uploads are refused while in progress, not at their end', async (t) => {
  const service = await startTestService(t, FLOOR)
  const answers = await Promise.all([1, 2, 3].map(() => beginUpload(t, service)))
  for (const answer of answers) assert.match(answer, /^HTTP\/1\.1 507 /)
  assert.deepEqual(await spooled(service), [])
})

test('so is content over SMTP', async (t) => {
  const service = await startTestService(t, FLOOR)
  const password = 'correct-horse'
  const path = `/v3/domains/${service.domain}/credentials/postmaster`
  assert.equal((await service.call('PUT', path, { form: { password } })).status, 200)
  const client = await openDialogue(t, { host: service.config.smtpHost, port: service.service.smtp.port })
  await client.reply()
  await client.say('EHLO client.example')
  const login = plainLogin(`postmaster@${service.domain}`, password)
  assert.match((await client.say(`AUTH PLAIN ${login}`)) ?? '', /^235/)
  await client.say('MAIL FROM:<a@example.com>')
  await client.say('RCPT TO:<b@example.org>')
  await client.say('DATA')
  client.write(`From: a@example.com\r\n\r\n${`${'x'.repeat(98)}\r\n`.repeat(20_000)}.\r\n`)
  assert.match((await client.reply()) ?? '', /^452 4\.3\.1 /)
  assert.match((await client.say('NOOP')) ?? '', /^250/)
  assert.deepEqual(await spooled(service), [])
})
