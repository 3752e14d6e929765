/** Checks of captured mail: its HTML, its links, its authentication; searches in its text, and tags by hand. */
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { addAccount } from '../support/accounts.ts'
import { eventually, ownAddress, startTestService, type TestService } from '../support/service.ts'

const INBOX = '/sendwright/v1/inbox'

async function captured(service: TestService, form: Record<string, string>): Promise<string> {
  assert.equal((await service.send(form)).status, 200)
  return eventually('it is captured', async () => {
    const { body } = await service.call(
      'GET',
      `${INBOX}?subject=${encodeURIComponent(form['subject'] ?? '')}`,
    )
    return body.items[0]?.id as string | undefined
  })
}

/** A web server at an address of its own; `calls`: method and path of each. */
async function startSite(t: TestContext) {
  const calls: string[] = []
  const server = createServer((request, response) => {
    calls.push(`${request.method} ${request.url}`)
    assert.equal(request.headers.authorization ?? request.headers.cookie, undefined)
    const [status, location] = ({
      '/moved': [302, '/page'],
      '/loop': [302, '/loop'],
      '/inside': [302, 'http://192.168.7.7/'],
      '/absent': [404],
      '/page': [200],
      '/image.png': [200],
      '/no-head': [request.method === 'HEAD' ? 405 : 200],
    }[request.url ?? ''] ?? [500]) as [number, string?]
    response.writeHead(status, location === undefined ? {} : { location })
    response.end('x'.repeat(100_000))
  })
  const host = ownAddress()
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  t.after(() => server.close())
  return { url: `http://${host}:${(server.address() as AddressInfo).port}`, host, calls }
}

test('links and images are called on request: redirects are followed and shown, private addresses are not called', async (t) => {
  const site = await startSite(t)
  const service = await startTestService(t, { SENDWRIGHT_ALLOW_NETWORKS: `${site.host}/32` })
  const paths = ['/page', '/moved', '/loop', '/inside', '/absent', '/no-head']
  const html = [
    ...paths.map((path) => `<a href="${site.url}${path}">link</a>`),
    `<img src="${site.url}/image.png" alt=""><a href="http://192.168.7.7/secret">inside</a>`,
    `<a href="${service.url}/c/${'a'.repeat(30)}">ours</a><a href="mailto:a@example.org">mail</a>`,
  ].join('')
  const id = await captured(service, { subject: 'Links', html, 'o:tracking': 'no' })
  assert.equal(site.calls.length, 0, 'nothing is called by itself')
  const { status, body } = await service.call('POST', `${INBOX}/${id}/link-check`)
  assert.equal(status, 200)
  type Item = {
    url: string
    kind: string
    state: string
    status: number
    reason: string
    redirects: string[]
  }
  const of = (end: string) => (body.items as Item[]).find(({ url }) => url.endsWith(end)) as Item
  assert.equal(body.items.length, 9)
  assert.equal(body.left_out, 0)
  const states = [...paths, '/image.png', '/secret'].map((path) => [path, of(path).state, of(path).status])
  assert.deepEqual(states, [
    ['/page', 'ok', 200],
    ['/moved', 'ok', 200],
    ['/loop', 'failed', 302],
    ['/inside', 'not called', null],
    ['/absent', 'failed', 404],
    ['/no-head', 'ok', 200],
    ['/image.png', 'ok', 200],
    ['/secret', 'not called', null],
  ])
  assert.deepEqual(of('/moved').redirects, [`${site.url}/page`])
  assert.deepEqual(of('/inside').redirects, ['http://192.168.7.7/'])
  assert.equal(of('/loop').reason, 'too many redirects')
  assert.match(of('/secret').reason, /address not allowed/)
  assert.match(of('a'.repeat(30)).reason, /counted as a visit/)
  assert.equal(of('/image.png').kind, 'image')
  assert.deepEqual(
    site.calls.filter((call) => call.endsWith('/no-head')),
    ['HEAD /no-head', 'GET /no-head'],
  )
  assert.equal(site.calls.filter((call) => call.endsWith('/page')).length, 2)
  const stranger = addAccount(service)
  for (const path of ['html-check', 'authentication'])
    assert.equal((await service.call('GET', `${INBOX}/${id}/${path}`, { key: stranger.key })).status, 404)
  assert.equal((await service.call('POST', `${INBOX}/${id}/link-check`, { key: stranger.key })).status, 404)
})

test('the html, and what receivers would say of the sender, are explained', async (t) => {
  const service = await startTestService(t)
  const html = '<div style="display:flex">Hello</div>'
  const id = await captured(service, { subject: 'Checked', html })
  const found = await service.call('GET', `${INBOX}/${id}/html-check`)
  const [flex] = found.body.findings.filter(({ feature }: { feature: string }) => feature === 'display:flex')
  assert.ok(flex.unsupported_in.includes('Outlook (Windows)'))
  const plain = await captured(service, { subject: 'Plain' })
  assert.deepEqual((await service.call('GET', `${INBOX}/${plain}/html-check`)).body.findings, [])
  const { body } = await service.call('GET', `${INBOX}/${id}/authentication`)
  const names = body.checks.map(({ name }: { name: string }) => name)
  assert.deepEqual(names.slice(0, 3), ['spf', 'dkim', 'dmarc'])
  assert.match(body.checks[1].sentence, /sandbox domain/)
})

test('captured mail is found by its text and files, and gets tags by hand', async (t) => {
  const service = await startTestService(t)
  const id = await captured(service, {
    subject: 'First',
    html: '<style>p { color: red }</style><p>The <b>Kingfisher</b> flies</p>',
    text: '',
    'o:tag': 'news',
  })
  await captured(service, { subject: 'Second', text: 'Nothing about birds' })
  const found = async (query: string) =>
    (await service.call('GET', `${INBOX}?${query}`)).body.items.map(
      ({ subject }: { subject: string }) => subject,
    )
  assert.deepEqual(await found('q=kingfisher'), ['First'])
  assert.deepEqual(await found('body=BIRDS'), ['Second'])
  assert.deepEqual(await found('body=color'), [])
  assert.deepEqual(await found('body=b_rds'), [])
  for (const name of ['body', 'q'])
    assert.equal((await service.call('GET', `${INBOX}?${name}=${'a'.repeat(201)}`)).status, 400)
  assert.deepEqual(await found('tag=news'), ['First'])
  assert.deepEqual(await found('tag=new'), [])
  const set = await service.call('PUT', `${INBOX}/${id}/tags`, {
    json: { tags: ['checked', 'a "b"', 'checked'] },
  })
  assert.deepEqual(set.body.tags, ['checked', 'a "b"'])
  assert.deepEqual(await found('tag=a%20%22b%22'), ['First'])
  assert.deepEqual(await found('tag=news'), [])
  const many = { tags: Array.from({ length: 21 }, (_, i) => `${i}`) }
  for (const json of [many, { tags: [''] }, { tags: 'a' }, {}])
    assert.equal((await service.call('PUT', `${INBOX}/${id}/tags`, { json })).status, 400)
  assert.equal((await service.call('PUT', `${INBOX}/absent/tags`, { json: { tags: [] } })).status, 404)
})
