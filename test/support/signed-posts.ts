/** Checks webhooks like a receiver. */
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import type { ReceivedPost } from './http-receiver.ts'
import type { TestService } from './service.ts'

const hmac = (key: string, text: string | Buffer) => createHmac('sha256', key).update(text).digest('hex')

export async function signingKey(service: TestService): Promise<string> {
  return (await service.call('GET', '/v5/accounts/http_signing_key')).body.http_signing_key
}

/** Both signatures verify, and the request has the form of webhooks.md. */
export function assertSigned(post: ReceivedPost, key: string): void {
  const { timestamp, token, signature } = post.body.signature
  assert.equal(typeof timestamp, 'string')
  assert.match(timestamp, /^\d{10}$/)
  assert.match(token, /^[0-9a-f]{50}$/)
  assert.equal(signature, hmac(key, timestamp + token))
  assert.equal(post.headers['content-type'], 'application/json')
  assert.equal(post.headers['x-service-webhook-timestamp'], timestamp)
  const covered = Buffer.concat([Buffer.from(`${timestamp}.`), post.raw])
  assert.equal(post.headers['x-service-webhook-signature'], `v1=${hmac(key, covered)}`)
  assert.equal(post.method, 'POST')
  assert.deepEqual(Object.keys(post.body), ['signature', 'event-data'])
}
