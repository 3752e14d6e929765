/** Fetching certificates while their host is slow. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestClock } from '../../../test/support/clock.ts'
import { signerOf } from '../../../test/support/sns.ts'
import { Forbidden, type ServiceError } from '../../base/process/errors.ts'
import type { HttpOutcome } from '../../platform/posts/http-client.ts'
import { createSigningCertificates } from './certificates.ts'

test('while the host of certificates is silent one request is open, a few wait, and a known certificate serves on', async () => {
  const clock = createTestClock(Date.now())
  const { certificate } = signerOf()
  const open: { url: string; answer(outcome: HttpOutcome): void }[] = []
  const certificates = createSigningCertificates({
    clock,
    httpClient: { send: ({ url }) => new Promise((answer) => open.push({ url, answer })) },
  })
  const answered = (body: string): HttpOutcome => ({
    ...{ kind: 'answered', status: 200, reason: '', retryAfter: '', contentType: '', durationMs: 1 },
    body: Buffer.from(body),
  })
  const next = async () => {
    for (;;) {
      const request = open.shift()
      if (request !== undefined) return request
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  const known = certificates.keyAt('known')
  ;(await next()).answer(answered(certificate))
  const key = await known

  const asked = Array.from({ length: 30 }, (_, at) => certificates.keyAt(`other ${at}`))
  const again = certificates.keyAt('other 0')
  const ends = [...asked, again].map((one) =>
    one.then(
      () => 'key',
      (error) => (error as ServiceError).name,
    ),
  )
  assert.equal(await certificates.keyAt('known'), key)
  assert.equal(await ends[25], 'TooManyWaiting')
  for (let failed = 0; failed < 21; failed++) {
    const { answer } = await next()
    assert.equal(open.length, 0)
    answer({ kind: 'failed', why: 'no answer within 10 s', durationMs: 10_000 })
  }
  const names = await Promise.all(ends)
  assert.deepEqual(new Set(names), new Set(['Unavailable', 'TooManyWaiting']))
  assert.equal(names.filter((name) => name === 'Unavailable').length, 21)

  // A day later it is fetched again.
  clock.leap(25 * 3_600_000)
  const later = certificates.keyAt('known')
  const { url, answer } = await next()
  assert.equal(url, 'known')
  answer(answered(certificate))
  // It is valid no longer.
  await assert.rejects(later, Forbidden)
})
