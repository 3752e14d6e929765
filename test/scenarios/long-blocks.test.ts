/**
 * Large mail designed to be slow, sent through the service and read: the main thread never works on it for long
 * without a break, so that other calls are answered meanwhile.
 */
// Slow: it sends a whole process more than anyone does, and measures it meanwhile.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { longestBlock } from '../support/block-probe.ts'
import { HANG_MS } from '../support/hang.ts'
import { ownAddress } from '../support/service.ts'
import { AUTHORIZATION, startProcess } from '../support/service-process.ts'
import { temporaryFolder } from '../support/stores.ts'

const BLOCK_MAX_MS = 200
const MB = 1_000_000

const filled = (unit: string, bytes: number) => Buffer.alloc(bytes - (bytes % unit.length), unit)
const HEAD = 'From: a@example.com\r\nTo: b@example.org\r\nSubject: s\r\nMIME-Version: 1.0\r\n'
const mime = (fields: string, body: Buffer) => Buffer.concat([Buffer.from(`${HEAD}${fields}\r\n\r\n`), body])
const MULTIPART = 'Content-Type: multipart/mixed; boundary=b'

interface Case {
  name: string
  form: () => Record<string, string | File>
}

const asMime = (make: () => Buffer) => () => ({ message: new File([new Uint8Array(make())], 'm.eml') })
const asField = (field: string, make: () => Buffer) => () => ({
  from: 'a@example.com',
  subject: 's',
  [field]: make().toString(),
})

const CASES: Case[] = [
  { name: 'a text of a million lines of dashes', form: asField('text', () => filled('-- \n', 5 * MB)) },
  { name: 'a text of line ends and dashes', form: asField('text', () => filled('\r\n--', 5 * MB)) },
  { name: 'html of paragraphs without end', form: asField('html', () => filled('<p>', 4 * MB)) },
  { name: 'one line', form: asMime(() => mime('X: y', filled('x', 6 * MB))) },
  {
    name: 'a multipart of short lines',
    form: asMime(() =>
      mime(MULTIPART, Buffer.concat([Buffer.from('--b\r\n\r\n'), filled('\r\n--bx', 5 * MB)])),
    ),
  },
  {
    name: 'another character set',
    form: asMime(() =>
      mime(
        'Content-Type: text/plain; charset=iso-2022-jp\r\nContent-Transfer-Encoding: 8bit',
        filled('x\r\n', 5 * MB),
      ),
    ),
  },
]

async function start(t: TestContext) {
  const folder = await temporaryFolder(t)
  const probe = join(folder, 'probe.json')
  const service = await startProcess(ownAddress(), { SENDWRIGHT_DATA: join(folder, 'data') }, { probe })
  t.after(() => service.end('SIGKILL'))
  const { url, domain, child } = service
  const pid = child.pid as number
  const call = async (path: string, init: RequestInit = {}) => {
    const answer = await fetch(url + path, {
      ...init,
      headers: { authorization: AUTHORIZATION, ...(init.headers as Record<string, string>) },
      signal: AbortSignal.timeout(HANG_MS),
    })
    return { status: answer.status, bytes: Buffer.from(await answer.arrayBuffer()) }
  }
  const json = async (path: string) => JSON.parse((await call(path)).bytes.toString())
  const measured = async (what: string, run: () => Promise<void>) => {
    const longestMs = await longestBlock({ pid, probe }, BLOCK_MAX_MS, run)
    t.diagnostic(`${what}: ${Math.round(longestMs)} ms`)
    assert.ok(longestMs < BLOCK_MAX_MS, `${what}: the main thread was busy for ${Math.round(longestMs)} ms`)
  }
  return { call, json, measured, domain }
}

async function newest(json: (path: string) => Promise<{ items: { id: string }[] }>, before: string) {
  const until = performance.now() + HANG_MS
  for (;;) {
    const { items } = await json('/sendwright/v1/inbox?limit=1')
    if (items[0] && items[0].id !== before) return items[0].id
    assert.ok(performance.now() < until, 'the mail never came to the inbox')
    await sleep(50)
  }
}

test('no large mail blocks the main thread for long', async (t) => {
  const { call, json, measured, domain } = await start(t)
  // Loading and compiling once is not measured.
  const small = new URLSearchParams({ from: 'a@example.com', to: 'b@example.org', subject: 's', text: 't' })
  await call(`/v3/${domain}/messages`, { method: 'POST', body: small })
  let last = await newest(json, '')
  await call(`/sendwright/v1/inbox/${last}`)
  for (const { name, form } of CASES) {
    const body = new FormData()
    body.set('to', 'b@example.org')
    for (const [field, value] of Object.entries(form())) body.set(field, value)
    const path = body.has('message') ? `/v3/${domain}/messages.mime` : `/v3/${domain}/messages`
    await measured(`${name}: accepted, delivered and captured`, async () => {
      assert.equal((await call(path, { method: 'POST', body })).status, 200)
      last = await newest(json, last)
    })
    const { storage_key: key } = await json(`/sendwright/v1/inbox/${last}`)
    const stored = `/v3/domains/${domain}/messages/${key}`
    await measured(`${name}: stored`, async () => assert.equal((await call(stored)).status, 200))
    await measured(`${name}: stored, as MIME`, async () => {
      const headers = { accept: 'message/rfc2822' }
      assert.equal((await call(stored, { headers })).status, 200)
    })
    await measured(`${name}: in the inbox`, async () => {
      assert.equal((await call(`/sendwright/v1/inbox/${last}`)).status, 200)
      await call(`/sendwright/v1/inbox/${last}/attachments/0`)
    })
  }
})
