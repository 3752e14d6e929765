/** The process dies while mail waits for the operator, and while it is released. */
// Slow: it kills whole services.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startRspamd } from '../support/scanners.ts'
import { eventually, ownAddress } from '../support/service.ts'
import { AUTHORIZATION, startProcess } from '../support/service-process.ts'
import { createSink } from '../support/smtp-sink.ts'
import { temporaryFolder } from '../support/stores.ts'

const MESSAGES = 60

test('kill -9 while mail is held and while it is released: none leaves before, none is lost', async (t) => {
  const sink = await createSink({ host: ownAddress() })
  t.after(() => sink.close())
  const rspamd = await startRspamd(t, () => ({ score: 20, action: 'no action' }))
  const host = ownAddress()
  const env = {
    SENDWRIGHT_DATA: await temporaryFolder(t),
    SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
    SENDWRIGHT_SANDBOX_RECIPIENTS: '*',
    SENDWRIGHT_DNS: '127.0.0.1:9',
    SENDWRIGHT_OUTBOUND_CHECK: rspamd.url,
  }
  let service = await startProcess(host, env)
  t.after(() => service.end('SIGKILL'))
  const call = async (method: string, path: string, body?: FormData) => {
    const headers = { authorization: AUTHORIZATION }
    const answer = await fetch(service.url + path, { method, headers, ...(body && { body }) })
    assert.equal(answer.status, 200, path)
    // biome-ignore lint/suspicious/noExplicitAny: a test reaches into bodies freely and asserts on what it finds
    return (await answer.json()) as any
  }
  const killed = async () => {
    await service.end('SIGKILL')
    service = await startProcess(host, env)
  }
  const holds = async () => (await call('GET', '/sendwright/v1/content-holds')).items
  const send = async (number: number) => {
    const form = new FormData()
    const fields = {
      from: `a@${service.domain}`,
      to: `${number}@example.org`,
      subject: 'Offer',
      text: 'Spam.',
    }
    for (const [name, value] of Object.entries(fields)) form.set(name, value)
    await call('POST', `/v3/${service.domain}/messages`, form)
  }

  for (let number = 0; number < MESSAGES; number++) await send(number)
  await killed()
  const [held, ...others] = await eventually('all held', async () => {
    const items = await holds()
    return items[0]?.messages === MESSAGES && items
  })
  assert.deepEqual([others, sink.messages.length], [[], 0])
  assert.deepEqual(await call('POST', `/sendwright/v1/content-holds/${held.id}/release`), {
    messages: MESSAGES,
  })
  await killed()
  await eventually('all delivered', async () => {
    const arrived = new Set(sink.messages.map(({ envelope }) => envelope.to[0]))
    return arrived.size === MESSAGES
  })
  assert.deepEqual(await holds(), [])
})
