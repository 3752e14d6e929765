import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { createTestClock } from '../../../test/support/clock.ts'
import type { AcmeAnswer, AcmeExchange, AcmeRequest } from './http.ts'
import { type AcmeAccounts, createIssuer } from './order.ts'

const BASE = 'https://acme.example'
const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()

function accountsOf(url: string | null): AcmeAccounts {
  return {
    get: async () => ({ key, url, contact: [], contactChanged: false }),
    registered: async () => {},
    forgotten: async () => {},
  }
}

const answer = (body: unknown, status = 200, headers: Record<string, string> = {}): AcmeAnswer => ({
  status,
  headers: new Headers({ 'replay-nonce': 'n', ...headers }),
  body: JSON.stringify(body),
})

const DIRECTORY = answer({
  newNonce: `${BASE}/nonce`,
  newAccount: `${BASE}/account`,
  newOrder: `${BASE}/new-order`,
})

/** Orders from an authority that answers signed requests with the entries of `script` in turn. */
async function orderFrom(script: readonly AcmeAnswer[], url: string | null = `${BASE}/1`) {
  const left = [...script]
  const requests: AcmeRequest[] = []
  const exchange: AcmeExchange = async (request) => {
    requests.push(request)
    if (request.method === 'GET') return DIRECTORY
    return request.method === 'HEAD' ? answer('') : (left.shift() ?? answer({}, 500))
  }
  const issuer = createIssuer({
    directory: `${BASE}/`,
    accounts: accountsOf(url),
    clock: createTestClock(),
    exchange,
  })
  const published: string[][] = []
  const outcome = await issuer.issue(
    'email.example.com',
    async (...pair) => void published.push(pair),
    new AbortController().signal,
  )
  return { outcome, requests, published }
}

const order = answer({ status: 'pending', authorizations: [`${BASE}/a`], finalize: `${BASE}/f` }, 201, {
  location: `${BASE}/o`,
})
const challenge = { type: 'http-01', url: `${BASE}/c`, token: 'abcdefghijklmnop' }
const authorization = (status: string, rest: object = {}) =>
  answer({
    status,
    identifier: { type: 'dns', value: 'email.example.com' },
    challenges: [challenge],
    ...rest,
  })

test('requests are signed for their URL with the account, and never repeat a nonce of another answer', async () => {
  const { outcome, requests, published } = await orderFrom([
    order,
    authorization('pending'),
    answer(challenge),
    authorization('invalid', { challenges: [{ ...challenge, error: { detail: 'no\n\u0007 way' } }] }),
  ])
  assert.deepEqual(outcome, {
    kind: 'failed',
    why: 'The certificate authority could not validate email.example.com: no way',
    retryAfterMs: 0,
  })
  assert.match(published[0]?.[1] ?? '', /^abcdefghijklmnop\.[\w-]{43}$/)
  for (const { url, body } of requests.filter(({ method }) => method === 'POST')) {
    const { protected: header } = JSON.parse(body as string) as { protected: string }
    const read = JSON.parse(Buffer.from(header, 'base64url').toString()) as Record<string, unknown>
    assert.deepEqual(read, { alg: 'ES256', nonce: 'n', url, kid: `${BASE}/1` })
  }
})

const HOSTILE: [name: string, script: AcmeAnswer[], why: RegExp][] = [
  [
    'another host in the authorization',
    [order, authorization('pending', { identifier: { value: 'x' } })],
    /another host/,
  ],
  ['no challenge that we can do', [order, authorization('pending', { challenges: [] })], /no usable http-01/],
  ['an order without addresses', [answer({}, 201)], /another host/],
  ['addresses that are none', [order, answer({}), answer({})], /another host/],
  [
    'a certificate that is none',
    [
      order,
      authorization('valid'),
      answer({}),
      answer({ status: 'valid', certificate: `${BASE}/x` }),
      answer('-----BEGIN CERTIFICATE-----'),
    ],
    /no use here/,
  ],
  [
    'an order that ends invalid',
    [order, authorization('valid'), answer({}), answer({ status: 'invalid', error: { detail: 'CAA' } })],
    /gave the order up: CAA/,
  ],
  [
    'nonces that never fit',
    Array.from({ length: 9 }, () =>
      answer({ type: 'urn:ietf:params:acme:error:badNonce', detail: 'again' }, 400),
    ),
    /refused: again/,
  ],
]

for (const [name, script, why] of HOSTILE) {
  test(`an authority that answers with ${name} is a failed order`, async () => {
    const { outcome } = await orderFrom(script)
    assert.equal(outcome.kind, 'failed')
    assert.match(outcome.kind === 'failed' ? outcome.why : '', why)
  })
}

test('whatever JSON an authority answers with, the order ends, with a short text', async () => {
  const any = fc.record({ status: fc.constantFrom(200, 201, 400, 429, 500), body: fc.jsonValue() })
  const shaped = fc.constantFrom(order, authorization('valid'), answer({ status: 'valid' }))
  const one = fc.oneof(
    shaped,
    any.map(({ status, body }) => answer(body, status)),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(one, { maxLength: 6 }), fc.boolean(), async (script, isKnown) => {
      const { outcome } = await orderFrom(script, isKnown ? `${BASE}/1` : null)
      assert.equal(outcome.kind, 'failed')
      assert.ok(outcome.kind === 'failed' && outcome.why.length < 700)
    }),
    { seed: 8555, numRuns: 100 },
  )
})
