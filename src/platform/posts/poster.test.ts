import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createReceiver } from '../../../test/support/http-receiver.ts'
import { parseCidr } from '../../base/net/ip.ts'
import { systemClock } from '../../base/time/clock.ts'
import { createHttpClient } from './http-client.ts'
import { createPoster } from './post-attempts.ts'

test('a post is taken by 2xx, gone by 406, and otherwise retried', async (t) => {
  const receiver = await createReceiver()
  const allow = [parseCidr('127.0.0.0/8')].flatMap((cidr) => cidr ?? [])
  const client = createHttpClient({ resolve: async () => [], allow, clock: systemClock })
  t.after(async () => {
    client.close()
    await receiver.close()
  })
  const { post } = createPoster(client)
  async function* pieces() {
    yield Buffer.from('From: a@b.c\r\n')
    yield Buffer.from('\r\nBody\r\n')
  }
  const body = { sizeBytes: 21, open: pieces }
  for (const [status, result] of [
    [200, 'taken'],
    [204, 'taken'],
    [406, 'gone'],
    [301, 'retry'],
    [404, 'retry'],
    [500, 'retry'],
  ] as const) {
    receiver.answer = status
    assert.equal(await post(receiver.url, 'application/mime', body), result, String(status))
  }
  assert.equal(receiver.posts[0]?.headers['content-type'], 'application/mime')
  assert.equal(receiver.posts[0]?.raw.toString(), 'From: a@b.c\r\n\r\nBody\r\n')
  assert.equal(await post('http://10.0.0.1/', 'application/mime', body), 'retry')
})
