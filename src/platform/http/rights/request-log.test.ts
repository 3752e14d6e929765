/** What the log of a key's calls keeps of an error text. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { message } from '../../../base/shape.ts'
import type { Exchange } from '../exchange.ts'
import { operation } from '../operation.ts'
import { textParam } from '../request/inputs.ts'
import { Fields, Params } from '../request/params.ts'
import { notedCall } from './request-log.ts'

const spec = operation({
  method: 'POST',
  path: '/v3/{domain_name}/things',
  id: 'addThing',
  tag: 'Things',
  summary: 'Add',
  auth: { area: 'domains', access: 'write' },
  params: { url: textParam('Where'), 'o:tag': textParam('Tag') },
  answers: { 200: message('Added') },
  handler: async () => ({ message: 'Added' }),
})
const holder = { accountId: 'a', keyId: 'k', kind: 'user', role: 'admin' } as const

/** @param document what was sent as JSON */
function kept(refusal: string, document: Record<string, unknown> = {}): string | null {
  const exchange = { method: 'POST', status: 400, refusal, id: 'r', path: {}, startedAt: 0 }
  const params = new Params({ query: new Fields(), body: new Fields(), document })
  const who = { presented: holder, caller: null, remoteAddress: '192.0.2.1' }
  return notedCall(spec, exchange as unknown as Exchange, params, who).message
}

test('an error text loses what could be a secret, wherever it stands, and keeps its own words', () => {
  for (const secret of [
    'sk_live_9aF3kQ',
    'AKIAIOSFODNN7EXAMPLE',
    'key-3ax6xnjp29jd6fds4gc373sgvjxteol0',
    'https://user:secret@hooks.example.com/T0/B0?token=abc',
    'mail.secret.example',
    'eyJhbGciOiJIUzI1NiJ9.e30.abc',
    'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
    'deadbeefcafe0123',
    'SecretOfTheUser',
  ])
    for (const text of [
      `refused ${secret}`,
      `refused: ${secret}.`,
      `refused (${secret}), try again`,
      `token=${secret}`,
    ])
      assert.doesNotMatch(kept(text) ?? '', new RegExp(secret.slice(0, 6)), text)
  assert.equal(kept('no such hunter here', { login: { password: ['hunter'] } }), 'no such {...} here')
  for (const text of [
    'Missing mandatory parameter: o:tag',
    'the queue has 10,000 messages already: a domain may have at most 20 of them, 2.5% of all',
    "'url' must not be empty: it's the address of POST /v3/domains",
    'title must have 1 to 100 characters (RFC 5322)',
  ])
    assert.equal(kept(text), text)
})
