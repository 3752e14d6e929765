/** With little memory large bodies wait, and are refused if that takes too long; small ones never wait. */
// Slow: it sends a whole process more than anyone does, and measures it meanwhile.
import assert from 'node:assert/strict'
import { readdir, stat } from 'node:fs/promises'
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { createTestClock, type TestClock } from '../support/clock.ts'
import { eventually, startTestService, type TestService } from '../support/service.ts'
import { AUTHORIZATION } from '../support/service-process.ts'
import { type Dialogue, openDialogue, plainLogin } from '../support/smtp-dialogue.ts'

const MB = 1_048_576
const MEMORY_BYTES = 512 * MB
const FILE = Buffer.alloc(18_000_000, 'x')
/** Large enough for the spool. */
const FIRST_BYTES = 300_000
const PASSWORD = 'correct-horse'

/** Longest wait for memory, over HTTP and SMTP. */
const HTTP_WAIT_MS = 30_000
const SMTP_WAIT_MS = 60_000

/** A clock, and what resolves once `begin` has led to a wait of that length: nothing else begins one meanwhile. */
function watchedClock() {
  const clock = createTestClock()
  let begun: number[] = []
  const { setTimer } = clock
  clock.setTimer = (delayMs, run) => {
    begun.push(delayMs)
    return setTimer(delayMs, run)
  }
  async function waiting<T>(ms: number, begin: () => T): Promise<T> {
    begun = []
    const result = begin()
    await eventually('a wait for memory', async () => begun.includes(ms))
    return result
  }
  return { clock, waiting }
}

const start = (t: TestContext, clock: TestClock) =>
  startTestService(t, {}, { clock, memoryBytes: MEMORY_BYTES })

const spooled = async (service: TestService) =>
  (await readdir(join(service.config.dataFolder, 'spool'))).length

const untilSpooled = (service: TestService, count: number) =>
  eventually(`${count} bodies in the spool`, async () => (await spooled(service)) === count)

test('over HTTP', async (t) => {
  const { clock, waiting } = watchedClock()
  const service = await start(t, clock)
  const first = beginUpload(t, service, 'first')
  const second = beginUpload(t, service, 'second')
  await untilSpooled(service, 2)
  const third = await waiting(HTTP_WAIT_MS, () => beginUpload(t, service, 'third'))
  const fourth = await waiting(HTTP_WAIT_MS, () => beginUpload(t, service, 'fourth'))
  assert.equal((await service.send({ subject: 'small' })).status, 200)
  await clock.advance(29_000)
  first.finish()
  assert.equal((await first.answer).status, 200)
  await untilSpooled(service, 2)
  // The fourth has reached its time limit.
  await clock.advance(1_000)
  const refused = await fourth.answer
  assert.deepEqual([refused.status, refused.retryAfter], [503, '10'])
  fourth.abandon()
  second.finish()
  third.finish()
  assert.deepEqual([(await second.answer).status, (await third.answer).status], [200, 200])
})

interface Upload {
  answer: Promise<{ status: number; retryAfter: string | undefined }>
  finish(): void
  abandon(): void
}

/** Starts sending a message with an 18 MB file. */
function beginUpload(t: TestContext, service: TestService, subject: string): Upload {
  const field = (name: string, value: string) =>
    `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`
  const head = Buffer.from(
    [
      field('from', `sender@${service.domain}`),
      field('to', 'alice@example.org'),
      field('subject', subject),
      field('text', 'Hi.'),
      '--b\r\nContent-Disposition: form-data; name="attachment"; filename="f.bin"\r\n\r\n',
    ].join(''),
  )
  const end = Buffer.from('\r\n--b--\r\n')
  const sent: ClientRequest = request(`${service.url}/v3/${service.domain}/messages`, {
    method: 'POST',
    headers: {
      authorization: AUTHORIZATION,
      'content-type': 'multipart/form-data; boundary=b',
      'content-length': head.length + FILE.length + end.length,
    },
  })
  t.after(() => sent.destroy())
  const answer = new Promise<{ status: number; retryAfter: string | undefined }>((resolve, reject) => {
    sent.once('response', (response: IncomingMessage) => {
      response.resume()
      resolve({ status: response.statusCode ?? 0, retryAfter: response.headers['retry-after'] })
    })
    sent.once('error', reject)
  })
  answer.catch(() => {})
  sent.write(Buffer.concat([head, FILE.subarray(0, FIRST_BYTES)]))
  return {
    answer,
    finish: () => void sent.end(Buffer.concat([FILE.subarray(FIRST_BYTES), end])),
    abandon: () => void sent.destroy(),
  }
}

test('over SMTP', async (t) => {
  const { clock, waiting } = watchedClock()
  const service = await start(t, clock)
  const user = `sender@${service.domain}`
  const form = { login: user, password: PASSWORD }
  const made = await service.call('POST', `/v3/domains/${service.domain}/credentials`, { form })
  assert.equal(made.status, 200, made.text)
  const content = Buffer.from(`From: sender@${service.domain}\r\nSubject: large\r\n\r\n${'x'.repeat(70)}\r\n`)
  const part = Buffer.concat([content, Buffer.from(`${'y'.repeat(70)}\r\n`.repeat(20_000))])
  const begin = async (): Promise<Dialogue> => {
    const client = await openDialogue(t, { host: service.config.host, port: 2525 })
    await client.reply()
    await client.say('EHLO client.example')
    const login = `AUTH PLAIN ${plainLogin(user, PASSWORD)}`
    assert.match((await client.say(login)) ?? '', /^235/)
    assert.match((await client.say('MAIL FROM:<>')) ?? '', /^250/)
    assert.match((await client.say('RCPT TO:<alice@example.org>')) ?? '', /^250/)
    assert.match((await client.say('DATA')) ?? '', /^354/)
    client.write(part)
    return client
  }
  const inTurn = await Promise.all([begin(), begin(), begin(), begin()])
  const large = async () => {
    const folder = join(service.config.dataFolder, 'spool')
    const sizes = await Promise.all(
      (await readdir(folder)).map(async (name) => (await stat(join(folder, name))).size),
    )
    return sizes.filter((size) => size > MB).length
  }
  await eventually('four large messages in progress', async () => (await large()) === 4)
  const fifth = await waiting(SMTP_WAIT_MS, begin)
  fifth.write('.\r\n')
  assert.equal((await service.send({ subject: 'small' })).status, 200)
  await clock.advance(SMTP_WAIT_MS)
  assert.match((await fifth.reply()) ?? '', /^451 4\.3\.2 Too many large messages at once/)
  assert.equal(await large(), 4)
  assert.match((await fifth.say('RSET')) ?? '', /^250/, 'the dialogue continues')
  for (const client of inTurn) client.write('.\r\n')
  for (const client of inTurn) assert.match((await client.reply()) ?? '', /^250 2\.0\.0 Queued/)
})
