import assert from 'node:assert/strict'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { createAuthority } from '../../../test/support/certificates.ts'
import { createTestClock } from '../../../test/support/clock.ts'
import { createMarkAuthority, LOGO } from '../../../test/support/mark-certificates.ts'
import { parseCidr } from '../../base/net/ip.ts'
import { systemClock } from '../../base/time/clock.ts'
import { createHttpClient, type HttpClient } from '../../platform/posts/http-client.ts'
import type { BimiRecord } from '../../protocols/bimi/record.ts'
import { createBimiCheck } from './bimi.ts'
import { judgeBimi } from './judge-bimi.ts'

const REJECT = { record: 'v=DMARC1; p=reject', policy: 'reject' } as const
const recordOf = (logo: string, certificate = ''): BimiRecord => ({
  logo,
  certificate,
  avatar: 'brand',
  wrongTags: [],
})

/** An https server of the host, and a client that trusts it and may reach it. */
async function serve(t: TestContext, host: string, files: Record<string, string | Buffer>, allowed = true) {
  const authority = createAuthority()
  const asked: string[] = []
  const server = createServer(authority.issue([host]), ({ url = '' }, response) => {
    asked.push(url)
    const file = files[url]
    if (url === '/moved') response.writeHead(302, { location: '/logo.svg' })
    else if (file === undefined) response.writeHead(404)
    response.end(file)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const cidr = parseCidr('127.0.0.0/8')
  assert.ok(cidr)
  const httpClient = createHttpClient({
    resolve: async () => ['127.0.0.1'],
    allow: allowed ? [cidr] : [],
    clock: systemClock,
    ca: [authority.cert],
  })
  t.after(() => {
    httpClient.close()
    server.close()
  })
  const base = `https://${host}:${(server.address() as AddressInfo).port}`
  return { base, asked, httpClient }
}

const marks = createMarkAuthority()

test('logo and certificate are fetched and judged', async (t) => {
  const mark = { packedLogo: gzipSync(LOGO), logo: LOGO }
  const bad = Buffer.from(LOGO.toString().replace('<rect', '<script/><rect'))
  const { base, httpClient } = await serve(t, 'logos.test', {
    '/logo.svg': LOGO,
    '/logo.svgz': gzipSync(LOGO),
    '/bad.svg': bad,
    '/large.svg': Buffer.alloc(40_000, ' '),
    '/huge.svg': Buffer.alloc(100_000, ' '),
    '/mark.pem': marks.issue({ ...mark, names: ['shop.example'] }) + marks.middle,
    '/other.pem': marks.issue({ ...mark, names: ['other.example'] }) + marks.middle,
  })
  const check = createBimiCheck({ httpClient, clock: systemClock, roots: [marks.root] })
  const cases: [logo: string, certificate: string, passed: boolean, sentence: RegExp][] = [
    ['logo.svg', '', true, /complete\. Gmail and Apple/],
    ['logo.svg', 'mark.pem', true, /complete, and its certificate is valid until \d{4}-\d\d-\d\d\.$/],
    ['logo.svgz', 'mark.pem', true, /complete/],
    ['bad.svg', '', false, /SVG Tiny PS\): it has the element script\.$/],
    [
      'bad.svg',
      'other.pem',
      false,
      /element script; and the mark certificate.*not name the domain; its logo is another file/,
    ],
    ['large.svg', '', false, /over 32 KB/],
    ['huge.svg', '', false, /cannot be fetched: it is over 64 KB/],
    ['absent.svg', '', false, /cannot be fetched: status 404/],
    ['moved', '', false, /cannot be fetched: status 302/],
    ['logo.svg', 'absent.pem', false, /mark certificate in a= cannot be fetched: status 404/],
    ['logo.svg', 'logo.svg', false, /not accepted: it is no PEM/],
  ]
  for (const [logo, certificate, passed, sentence] of cases) {
    const a = certificate === '' ? '' : `${base}/${certificate}`
    const evidence = await check(recordOf(`${base}/${logo}`, a), ['shop.example'])
    const text = `v=BIMI1; l=${base}/${logo}; a=${a}`
    const finding = judgeBimi({ at: 'shop.example', texts: [text] }, REJECT, evidence)
    assert.match(finding.sentence, sentence)
    assert.equal(finding.passed, passed, finding.sentence)
  }
})

test('nothing in a private network is fetched', async (t) => {
  const { base, asked, httpClient } = await serve(t, 'inside.test', { '/logo.svg': LOGO }, false)
  const evidence = await createBimiCheck({ httpClient, clock: systemClock })(recordOf(`${base}/logo.svg`), [])
  assert.match(evidence?.logoProblem ?? '', /address not allowed/)
  assert.deepEqual(asked, [])
})

test('results are kept for a day, failures for minutes, and equal questions are asked once', async () => {
  const clock = createTestClock()
  let answers = 0
  let isUp = false
  const send: HttpClient['send'] = async () => {
    answers += 1
    return isUp
      ? {
          kind: 'answered',
          status: 200,
          reason: '',
          contentType: '',
          retryAfter: '',
          body: LOGO,
          durationMs: 1,
        }
      : { kind: 'failed', why: 'connection refused', durationMs: 1 }
  }
  const check = createBimiCheck({ httpClient: { send }, clock })
  const ask = () => check(recordOf('https://a.example/l.svg'), ['a.example'])
  await Promise.all([ask(), ask(), ask()])
  assert.equal(answers, 1)
  isUp = true
  assert.equal((await ask())?.logoProblem, 'connection refused')
  await clock.advance(301_000)
  assert.deepEqual((await ask())?.logoFaults, [])
  await clock.advance(86_000_000)
  await ask()
  assert.equal(answers, 2)
  await clock.advance(500_000)
  await ask()
  assert.equal(answers, 3)
  await check(recordOf('https://a.example/new.svg'), ['a.example'])
  assert.equal(answers, 4)
})
