/**
 * Bodies that are small on the wire and expensive in memory or processing. Each is refused without blocking the main
 * thread, while another client gets its responses, and leaves nothing behind.
 */
// Slow: it sends a whole process more than anyone does, and measures it meanwhile.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, type TestContext, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { longestBlock } from '../support/block-probe.ts'
import { COLLECTING, collectedBytes } from '../support/collect-on-signal.ts'
import { HANG_MS } from '../support/hang.ts'
import { ownAddress } from '../support/service.ts'
import { AUTHORIZATION, type ServiceProcess, startProcess } from '../support/service-process.ts'
import { temporaryFolder } from '../support/stores.ts'

const BLOCK_MAX_MS = 200
const GROWTH_MAX_BYTES = 100 * 2 ** 20
const MIB = 2 ** 20

let service: ServiceProcess
let probe: string
let sendingKey: string
let restBytes: number
const ends: (() => Promise<unknown> | unknown)[] = []

before(async (t) => {
  const context = Object.assign(Object.create(t as TestContext), {
    after: (end: () => Promise<void>) => ends.unshift(end),
  })
  const folder = await temporaryFolder(context)
  probe = join(folder, 'blocks')
  service = await startProcess(
    ownAddress(),
    { ...COLLECTING, SENDWRIGHT_DATA: join(folder, 'data') },
    { probe },
  )
  ends.unshift(() => service.end('SIGKILL'))
  sendingKey = await makeSendingKey()
  // Modules and code loaded by the first requests stay in memory.
  const text = 'text '.repeat(20_000)
  for (let call = 0; call < 20; call++) {
    const body = new URLSearchParams({
      from: 'a@example.com',
      to: `b${call}@example.org`,
      subject: 'S',
      text,
    })
    assert.equal((await send({ body })).status, 200)
  }
  restBytes = await collectedBytes(service.child.pid as number, Number.POSITIVE_INFINITY)
})

after(async () => {
  for (const end of ends) await end()
})

interface Attack {
  body: NonNullable<RequestInit['body']>
  headers?: Record<string, string>
  status: number
  message?: RegExp
}

const JSON_TYPE = { 'content-type': 'application/json' }
const FORM_TYPE = { 'content-type': 'application/x-www-form-urlencoded' }
const MULTIPART_TYPE = { 'content-type': 'multipart/form-data; boundary=b' }
const PACKED = { 'content-encoding': 'gzip' }

/** `{"<name>":[{},{},...]}` of some size. */
const members = (name: string, sizeBytes: number) =>
  Buffer.concat([Buffer.from(`{"${name}":[`), Buffer.alloc(sizeBytes, '{},'), Buffer.from('{}]}')])
const field = (name: string, value: Buffer, type = '') =>
  Buffer.concat([
    Buffer.from(`--b\r\nContent-Disposition: form-data; name="${name}"\r\n${type}\r\n`),
    value,
    Buffer.from('\r\n'),
  ])
const END = Buffer.from('--b--\r\n')

/** With a sending key. */
const ATTACKS: Record<string, () => Attack> = {
  '18 million members, packed into 52 kB, one of them named by an escape': () => ({
    body: gzipSync(members('\\u0041', 52 * MIB)),
    headers: { ...JSON_TYPE, ...PACKED },
    status: 400,
    message: /^Invalid json: more than 100000 values$/,
  }),
  'lists in lists, 50 million deep': () => ({
    body: gzipSync(Buffer.alloc(50 * MIB, '[')),
    headers: { ...JSON_TYPE, ...PACKED },
    status: 400,
    message: /^Invalid json: nested too deeply$/,
  }),
  'the maximum number of values, each under its own name': () => ({
    body: JSON.stringify({ a: distinctNames(90_000) }),
    headers: JSON_TYPE,
    status: 400,
    message: /^from parameter is missing$/,
  }),
  'as many names at the top as there may be, and one more': () => ({
    body: JSON.stringify(distinctNames(10_001)),
    headers: JSON_TYPE,
    status: 400,
    message: /^Invalid json: more than 10000 names$/,
  }),
  'a text of 25 MiB, half of it escapes': () => ({
    body: gzipSync(Buffer.from(JSON.stringify({ html: '"\n\u0001a'.repeat(2_200_000) }))),
    headers: { ...JSON_TYPE, ...PACKED },
    status: 400,
    message: /^from parameter is missing$/,
  }),
  'a JSON body larger than any message': () => ({
    body: gzipSync(Buffer.concat([Buffer.from('{"html":"'), Buffer.alloc(40 * MIB, 'a'), Buffer.from('"}')])),
    headers: { ...JSON_TYPE, ...PACKED },
    status: 413,
    message: /^request size exceeds 26MiB limit$/,
  }),
  'a form of 50 million separators': () => ({
    body: gzipSync(Buffer.alloc(50 * MIB, '&')),
    headers: { ...FORM_TYPE, ...PACKED },
    status: 400,
    message: /more than 10000 parameters$/,
  }),
  'a form with a value of 50 million blanks': () => ({
    body: gzipSync(Buffer.concat([Buffer.from('html='), Buffer.alloc(50 * MIB, '+')])),
    headers: { ...FORM_TYPE, ...PACKED },
    status: 400,
    message: /^from parameter is missing$/,
  }),
  'a form with a value of 17 million escapes, not UTF-8': () => ({
    body: gzipSync(Buffer.concat([Buffer.from('html='), Buffer.alloc(51 * MIB, '%C3')])),
    headers: { ...FORM_TYPE, ...PACKED },
    status: 400,
    message: /^from parameter is missing$/,
  }),
  'a form with a value of 50 million percent signs': () => ({
    body: gzipSync(Buffer.concat([Buffer.from('html='), Buffer.alloc(50 * MIB, '%')])),
    headers: { ...FORM_TYPE, ...PACKED },
    status: 400,
    message: /^from parameter is missing$/,
  }),
  'recipient-variables of 8 million values in a form': () => ({
    body: gzipSync(Buffer.concat([...GOOD, field('recipient-variables', members('\\u0041', 24 * MIB)), END])),
    headers: { ...MULTIPART_TYPE, ...PACKED },
    status: 400,
    message: /^'recipient-variables' parameter is not a valid JSON$/,
  }),
  'a text of 25 MiB of umlauts': () => ({
    body: gzipSync(
      Buffer.concat([
        field('html', Buffer.alloc(25 * MIB, 'ä'), 'Content-Type: text/html; charset=utf-8\r\n'),
        END,
      ]),
    ),
    headers: { ...MULTIPART_TYPE, ...PACKED },
    status: 400,
    message: /^from parameter is missing$/,
  }),
  'two texts of 25 MB in other charsets than UTF-8': () => ({
    body: gzipSync(
      Buffer.concat([
        field('html', Buffer.alloc(25 * MIB, 0xe4), 'Content-Type: text/html; charset=iso-8859-1\r\n'),
        field('text', Buffer.alloc(25 * MIB, 0xa4), 'Content-Type: text/plain; charset="GBK"\r\n'),
        END,
      ]),
    ),
    headers: { ...MULTIPART_TYPE, ...PACKED },
    status: 400,
    message: /^from parameter is missing$/,
  }),
  'recipient-variables of one text of 6 MiB, most of it escapes': () => ({
    body: gzipSync(
      Buffer.concat([...GOOD.slice(0, -1), field('recipient-variables', Buffer.from(ONE_VARIABLE)), END]),
    ),
    headers: { ...MULTIPART_TYPE, ...PACKED },
    status: 400,
    message: /^Need at least one of/,
  }),
  'the same in JSON': () => ({
    body: gzipSync(`{"from":"a@example.com","to":"b@example.org","recipient-variables":${ONE_VARIABLE}}`),
    headers: { ...JSON_TYPE, ...PACKED },
    status: 400,
  }),
  'recipient-variables in lists in lists': () => ({
    body: gzipSync(Buffer.concat([...GOOD, field('recipient-variables', Buffer.alloc(24 * MIB, '[')), END])),
    headers: { ...MULTIPART_TYPE, ...PACKED },
    status: 400,
    message: /^'recipient-variables' parameter is not a valid JSON$/,
  }),
  'a million parts': () => ({
    body: gzipSync(Buffer.concat([Buffer.alloc(50 * MIB, field('a', Buffer.from('b'))), END])),
    headers: { ...MULTIPART_TYPE, ...PACKED },
    status: 400,
    message: /more than 10000 parameters$/,
  }),
  'boundaries and nothing else': () => ({
    body: gzipSync(Buffer.concat([Buffer.alloc(48 * MIB, '--b\r\n'), END])),
    headers: { ...MULTIPART_TYPE, ...PACKED },
    status: 400,
  }),
  'beginnings of boundaries': () => ({
    body: gzipSync(Buffer.concat([field('html', Buffer.alloc(48 * MIB, '\r\n--')), END])),
    headers: { ...MULTIPART_TYPE, ...PACKED },
    status: 400,
  }),
  'a part whose header never ends': () => ({
    body: gzipSync(Buffer.concat([Buffer.from('--b\r\n'), Buffer.alloc(50 * MIB, 'X-A: b\r\n')])),
    headers: { ...MULTIPART_TYPE, ...PACKED },
    status: 400,
  }),
  'a text of NULs under an Idempotency-Key': () => ({
    body: gzipSync(
      Buffer.concat([field('html', Buffer.alloc(24 * MIB)), field('text', Buffer.alloc(24 * MIB)), END]),
    ),
    headers: { ...MULTIPART_TYPE, ...PACKED, 'idempotency-key': 'nul' },
    status: 400,
    message: /^from parameter is missing$/,
  }),
}

const ONE_VARIABLE = JSON.stringify({ 'b@example.org': { x: '"\n\u0001ä'.repeat(MIB / 2) } })

const GOOD = [
  field('from', Buffer.from('a@example.com')),
  field('to', Buffer.from('b@example.org')),
  field('subject', Buffer.from('S')),
  field('text', Buffer.from('T')),
]

/** Without a login. */
const PUBLIC_ATTACKS: Record<string, () => Attack> = {
  'a million members packed into 4 kB': () => ({
    body: gzipSync(members('\\u0041', 3.5 * MIB)),
    headers: { ...JSON_TYPE, ...PACKED },
    status: 400,
    message: /^unable to parse request: unsupported Content-Encoding 'gzip'$/,
  }),
  '120 kB of members, as they are': () => ({
    body: members('\\u0041', 120_000),
    headers: JSON_TYPE,
    status: 413,
    message: /^request size exceeds 4KiB limit$/,
  }),
  '4 MiB of members, as they are': () => ({
    body: members('\\u0041', 4 * MIB - 100),
    headers: JSON_TYPE,
    status: 413,
    message: /^request size exceeds 4KiB limit$/,
  }),
  '4 MiB of members without a length': () => ({
    body: new Blob([members('\\u0041', 4 * MIB - 100)]).stream(),
    headers: JSON_TYPE,
    status: 413,
    message: /^request size exceeds 4KiB limit$/,
  }),
}

for (const [name, attack] of Object.entries(ATTACKS)) {
  test(`with a sending key: ${name}`, () => withstands(attack, send))
}
for (const [name, attack] of Object.entries(PUBLIC_ATTACKS)) {
  test(`without a login: ${name}`, () => withstands(attack, (init) => call('/sendwright/v1/session', init)))
}

test('the process is alive, and has returned the memory', async () => {
  assert.equal(service.child.exitCode, null, service.output())
  const heldBytes = await collectedBytes(service.child.pid as number, restBytes + GROWTH_MAX_BYTES)
  assert.ok(heldBytes < restBytes + GROWTH_MAX_BYTES, `${(heldBytes - restBytes) / MIB} MiB are still held`)
  assert.doesNotMatch(service.output(), /"level":(50|60)/)
})

async function withstands(
  makeAttack: () => Attack,
  run: (init: RequestInit) => Promise<Answer>,
): Promise<void> {
  const process = { pid: service.child.pid as number, probe }
  const longestMs = await longestBlock(process, BLOCK_MAX_MS, () => withstandsOnce(makeAttack(), run))
  assert.ok(longestMs < BLOCK_MAX_MS, `the main thread was busy for ${longestMs} ms`)
}

async function withstandsOnce(attack: Attack, run: (init: RequestInit) => Promise<Answer>): Promise<void> {
  const attacked = run(attack)
  const neighbour = healthUntil(attacked)
  neighbour.catch(() => {}) // also awaited below
  const answer = await attacked.catch((error) => {
    // The others would wait for the same process, each for as long.
    service.child.kill('SIGKILL')
    throw error
  })
  assert.equal(answer.status, attack.status, answer.message)
  if (attack.message) assert.match(answer.message, attack.message)
  assert.ok((await neighbour) > 0)
  assert.equal(service.child.exitCode, null, service.output())
}

/** Calls the service repeatedly; returns the number of responses. Makes at least one call. */
async function healthUntil(done: Promise<unknown>): Promise<number> {
  let isDone = false
  void done.catch(() => {}).then(() => (isDone = true))
  let answered = 0
  do {
    assert.equal((await call('/health', {}, 'GET')).status, 200)
    answered++
  } while (!isDone)
  return answered
}

interface Answer {
  status: number
  message: string
}

async function call(path: string, init: RequestInit, method = 'POST'): Promise<Answer> {
  const signal = AbortSignal.timeout(HANG_MS)
  const answer = await fetch(service.url + path, { method, signal, duplex: 'half', ...init } as RequestInit)
  const body = (await answer.json()) as { message?: string }
  return { status: answer.status, message: body.message ?? '' }
}

function send({ headers, ...init }: RequestInit): Promise<Answer> {
  const authorization = `Basic ${Buffer.from(`api:${sendingKey}`).toString('base64')}`
  return call(`/v3/${service.domain}/messages`, { ...init, headers: { ...headers, authorization } })
}

async function makeSendingKey(): Promise<string> {
  const made = await fetch(`${service.url}/v1/keys`, {
    method: 'POST',
    headers: { authorization: AUTHORIZATION },
    body: new URLSearchParams({ role: 'sending', kind: 'domain', domain_name: service.domain }),
  })
  return ((await made.json()) as { key: { secret: string } }).key.secret
}

const distinctNames = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`name${index}`, 1]))
