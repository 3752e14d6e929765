/** The service answers what the official Python, PHP, Ruby and Go clients and the Terraform provider ask for: their recorded runs, made again. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { startTestService, TEST_KEY } from '../../support/service.ts'
import { type Exchange, type Exchanges, missingIn } from './exchange.ts'
import { LIBRARIES } from './libraries.ts'
import { replay } from './replay.ts'
import { CREATED_DOMAIN, recordedFile, SETTINGS, startDns, startSink } from './scene.ts'

const AUTHORIZATION = `Basic ${Buffer.from(`api:${TEST_KEY}`).toString('base64')}`

for (const [name, { isSmall = false }] of Object.entries(LIBRARIES)) {
  test(`the ${name} client gets what it got when it was tried`, async (t) => {
    const recorded: Exchanges = JSON.parse(await readFile(recordedFile(name), 'utf8'))
    const [sink, dns] = await Promise.all([startSink(), startDns()])
    t.after(() => Promise.all([sink.close(), dns.close()]))
    const { url, domain } = await startTestService(t, {
      ...SETTINGS,
      SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
      SENDWRIGHT_DNS: `${dns.host}:${dns.port}`,
    })
    assert.ok(recorded.exchanges.length > (isSmall ? 60 : 80))
    // Terraform asks for what it has deleted until it is gone.
    const isRight = ({ method, status }: Exchange) =>
      (status >= 200 && status < 300) || (isSmall && method === 'GET' && status === 404)
    assert.ok(recorded.exchanges.every(isRight))
    assert.equal(await replay(recorded, { url, domain, authorization: AUTHORIZATION }), null)
    assert.ok(isSmall || sink.messages.length >= 2)
    const answer = await fetch(`${url}/v4/domains/${CREATED_DOMAIN}`, {
      headers: { authorization: AUTHORIZATION },
    })
    assert.equal(answer.status, 404, 'deleted by the last call')
  })
}

test('what a client would miss', () => {
  const recorded = { message: 'Done', items: [{ id: 'a', active: true }, { url: 'b' }], next: null }
  const found = {
    message: 'Done',
    items: [
      { url: 'c', id: 7 },
      { id: 'd', active: true, more: 1 },
    ],
    next: null,
    total: 2,
  }
  assert.equal(missingIn(found, recorded), null)
  assert.equal(missingIn({ ...found, next: '' }, recorded), 'response.next: string instead of null')
  assert.equal(
    missingIn({ ...found, message: 'done' }, recorded),
    'response.message: "done" instead of "Done"',
  )
  assert.equal(missingIn({ ...found, items: [] }, recorded), 'response.items: empty')
  const items = [{ url: 'c' }, { id: 'd', active: false }]
  assert.equal(missingIn({ ...found, items }, recorded), 'response.items[0].id: undefined instead of string')
})
