import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { createAuthority } from '../../../test/support/certificates.ts'
import { createTestClock } from '../../../test/support/clock.ts'
import { type Fetched, fetchPolicy } from './fetch.ts'
import { createStsPolicies, type StoredPolicy } from './policies.ts'
import { namesHost, parseStsPolicy, readStsRecord } from './policy.ts'

/** RFC 8461 §3.1 and §3.2. */
const EXAMPLE =
  'version: STSv1\r\nmode: enforce\r\nmx: mail.example.com\r\nmx: *.example.net\r\nmx: backupmx.example.com\r\nmax_age: 604800\r\n'

test('TXT records', () => {
  assert.equal(readStsRecord(['v=STSv1; id=20160831085700Z;']), '20160831085700Z')
  assert.equal(readStsRecord(['v=spf1 -all', 'v=STSv1;id=1']), '1')
  assert.equal(readStsRecord(['v=STSv1; id=1', 'v=STSv1; id=2']), null, 'two records are none')
  assert.equal(readStsRecord(['v=STSv1; id=has-hyphen']), null)
  assert.equal(readStsRecord([]), null)
})

test('policies', () => {
  const policy = parseStsPolicy(EXAMPLE)
  assert.ok(!('invalid' in policy))
  assert.deepEqual(policy, {
    mode: 'enforce',
    mx: ['mail.example.com', '*.example.net', 'backupmx.example.com'],
    maxAgeSeconds: 604_800,
  })
  for (const [host, named] of [
    ['mail.example.com', true],
    ['MAIL.example.com.', true],
    ['a.example.net', true],
    ['a.b.example.net', false],
    ['example.net', false],
    ['other.example.com', false],
  ] as const) {
    assert.equal(namesHost(policy, host), named, host)
  }
  for (const text of [
    '',
    'version: STSv2\nmode: none\nmax_age: 1',
    'version: STSv1\nmode: enforce\nmax_age: 1',
    'version: STSv1\nmode: none',
  ]) {
    assert.ok('invalid' in parseStsPolicy(text), text)
  }
})

const authority = createAuthority()

async function serve(
  t: TestContext,
  answer: Parameters<typeof createServer>[1],
  name = 'mta-sts.example.com',
) {
  const server: Server = createServer(authority.issue([name]), answer)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return (addresses = ['127.0.0.1'], timeoutMs = 20_000) =>
    fetchPolicy('example.com', {
      port,
      ca: authority.cert,
      timeoutMs,
      addressesOf: async () => addresses,
    })
}

test('fetching: what is accepted and what is not', async (t) => {
  const good = await serve(t, (request, response) => {
    assert.equal(request.url, '/.well-known/mta-sts.txt')
    response.setHeader('content-type', 'text/plain').end(EXAMPLE)
  })
  assert.deepEqual(await good(), { kind: 'text', text: EXAMPLE })
  const none = await good([])
  assert.equal(none.kind, 'failed', 'an address that may not be reached')

  const bad: [string, Parameters<typeof createServer>[1], string?][] = [
    [
      'status 301',
      (_request, response) => response.writeHead(301, { location: 'https://evil.example/' }).end(),
    ],
    [
      'content type "text/html"',
      (_request, response) => response.setHeader('content-type', 'text/html').end(EXAMPLE),
    ],
    [
      'over 65536 bytes',
      (_request, response) => response.setHeader('content-type', 'text/plain').end('x'.repeat(70_000)),
    ],
    ['aborted', () => {}],
    ['altnames', (_request, response) => response.end(EXAMPLE), 'other.example.com'],
  ]
  for (const [why, answer, name] of bad) {
    const fetched = await (await serve(t, answer, name))(undefined, why === 'aborted' ? 1_000 : undefined)
    assert.equal(fetched.kind, 'failed', why)
    assert.ok(fetched.kind === 'failed' && fetched.why.includes(why), `${why}: ${JSON.stringify(fetched)}`)
  }
})

test('a known policy applies while DNS or HTTPS fail, until its max_age ends', async () => {
  const clock = createTestClock()
  const state: { txt: readonly string[] | null; fetched: Fetched; kept: StoredPolicy[]; fetches: number } = {
    txt: ['v=STSv1; id=1'],
    fetched: { kind: 'text', text: EXAMPLE },
    kept: [],
    fetches: 0,
  }
  const make = () =>
    createStsPolicies({
      clock,
      txt: async () => state.txt,
      fetch: async () => {
        state.fetches++
        return state.fetched
      },
      known: async () => state.kept.at(-1) ?? null,
      keep: async (policy) => void state.kept.push(policy),
    })
  let policies = make()
  const mode = async () => (await policies.of('example.com'))?.policy.mode ?? null
  assert.equal(await mode(), 'enforce')
  assert.equal(await mode(), 'enforce')
  assert.equal(state.fetches, 1)

  state.txt = null
  assert.equal(await mode(), 'enforce', 'DNS says nothing')
  policies = make()
  assert.equal(await mode(), 'enforce', 'kept over a restart')
  state.txt = ['v=STSv1; id=2']
  state.fetched = { kind: 'failed', why: 'status 500' }
  assert.equal(await mode(), 'enforce', 'the new one cannot be had')
  const before = state.fetches
  await mode()
  assert.equal(state.fetches, before, 'not asked for again at once')
  await clock.advance(5 * 60_000 + 1)
  state.fetched = { kind: 'text', text: EXAMPLE.replace('enforce', 'testing') }
  assert.equal(await mode(), 'testing')
  state.txt = []
  await clock.advance(604_800_000)
  assert.equal(await mode(), null, 'too old, and the record is gone')
})
