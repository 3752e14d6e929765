import assert from 'node:assert/strict'
import { after, before, describe, type TestContext, test } from 'node:test'
import { createTestClock } from '../../../test/support/clock.ts'
import { type Answer, startTestService, type TestService } from '../../../test/support/service.ts'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const NOW = Date.parse('2026-06-01T12:00:00Z')
const STAMP = 'Mon, 01 Jun 2026 12:00:00 UTC'
const MJML =
  '<mjml><mj-body><mj-section><mj-column><mj-text>Hi {{name}}</mj-text></mj-column></mj-section></mj-body></mjml>'

/** One service for a group of tests; each test has its own templates. */
function serviceOf(): () => TestService {
  let service: TestService
  const ends: (() => unknown)[] = []
  before(async () => {
    const context = { after: (end: () => unknown) => ends.push(end) } as unknown as TestContext
    service = await startTestService(
      context,
      { SENDWRIGHT_MAX_TEMPLATE_KB: '100' },
      { clock: createTestClock(NOW) },
    )
  })
  after(async () => {
    for (const end of ends) await end()
  })
  return () => service
}

const get = serviceOf()
const scopes = {
  domain: () => `/v3/${get().domain}/templates`,
  account: () => '/v4/templates',
}

for (const [level, rootOf] of Object.entries(scopes)) {
  describe(`${level} templates`, () => {
    const call = (method: string, path: string, form?: Record<string, string>): Promise<Answer> =>
      get().call(method, rootOf() + path, form && { form })
    const ok = async (method: string, path: string, form?: Record<string, string>) => {
      const answer = await call(method, path, form)
      assert.equal(answer.status, 200, `${method} ${path}: ${answer.text}`)
      return answer.body
    }
    const fails = async (status: number, message: string, ...args: Parameters<typeof call>) => {
      const answer = await call(...args)
      assert.deepEqual([answer.status, answer.body], [status, { message }])
    }
    const make = (name: string, form: Record<string, string> = {}) =>
      ok('POST', '', { name, template: 'x', ...form })
    const tags = async (name: string) => {
      const { template } = await ok('GET', `/${name}/versions`)
      return template.versions.map((version: { tag: string; active: boolean }) =>
        version.active ? `*${version.tag}` : version.tag,
      )
    }

    test('a template with content is stored with an active version', async () => {
      const body = await ok('POST', '', {
        name: 'Order Paid',
        description: 'receipt',
        createdBy: 'me',
        template: '<p>Hi {{name}}</p>',
        comment: 'first',
        headers: '{"subject": "Order {{order}}"}',
      })
      const { id, version, ...rest } = body.template
      assert.equal(body.message, 'template has been stored')
      assert.match(id, UUID)
      assert.match(version.id, UUID)
      assert.deepEqual(rest, {
        name: 'order paid',
        description: 'receipt',
        createdBy: 'me',
        createdAt: STAMP,
      })
      assert.deepEqual(version, {
        tag: 'initial',
        template: '<p>Hi {{name}}</p>',
        engine: 'handlebars',
        mjml: '',
        createdAt: STAMP,
        comment: 'first',
        active: true,
        id: version.id,
        parsedhandlebar: null,
        headers: { Subject: 'Order {{order}}' },
      })
      const plain = await ok('GET', '/ORDER%20paid')
      assert.deepEqual(plain, { template: { id, ...rest } })
      assert.deepEqual(await ok('GET', `/${id}?active=yes`), { template: { id, ...rest, version } })
      assert.deepEqual(await ok('GET', `/${id}/versions/INITIAL`), { template: { id, ...rest, version } })
      const { template, headers, ...summary } = version
      const listed = await ok('GET', `/order%20paid/versions`)
      assert.deepEqual(listed.template, { id, ...rest, versions: [summary] })
      await ok('DELETE', `/${id}`)
    })

    test('samples for previews belong to the version: stored, replaced, copied, cleared', async () => {
      const sampleOf = async (name: string, tag: string) =>
        (await ok('GET', `/${name}/versions/${tag}`)).template.version.sample
      const { template } = await make('sampled', { sample: '{"name": "Ada", "lines": [{"n": 1}]}' })
      assert.deepEqual(template.version.sample, { name: 'Ada', lines: [{ n: 1 }] })
      await ok('POST', '/sampled/versions', { tag: 'two', template: 'y', sample: '{"a": {"__b": null}}' })
      assert.deepEqual(await sampleOf('sampled', 'two'), { a: { __b: null } })
      await ok('PUT', '/sampled/versions/two', { sample: '{"a": "é"}' })
      assert.deepEqual(await sampleOf('sampled', 'two'), { a: 'é' })
      await ok('PUT', '/sampled/versions/two', { comment: 'new' })
      await ok('PUT', '/sampled/versions/two/copy/three')
      assert.deepEqual(await sampleOf('sampled', 'three'), { a: 'é' })
      await ok('PUT', '/sampled/versions/two', { sample: '{}' })
      assert.equal(await sampleOf('sampled', 'two'), undefined)
      const put = (sample: string) => ['PUT', '/sampled/versions/two', { sample }] as const
      for (const sample of ['[]', '"x"', '{']) await fails(400, 'Invalid parameter: sample', ...put(sample))
      const large = JSON.stringify({ a: 'é'.repeat(32 * 1024) })
      await fails(400, 'sample is too large, max size is 64KB', ...put(large))
      await ok('DELETE', '/sampled')
    })

    test('a template without content has no versions, and its first one is active in any case', async () => {
      const { template } = await ok('POST', '', {
        name: 'bare',
        tag: 'ignored',
        comment: 'x',
        engine: 'none',
      })
      assert.equal('version' in template, false)
      assert.equal('version' in (await ok('GET', '/bare?active=yes')).template, false)
      assert.deepEqual(await tags('bare'), [])
      const form = { tag: 'V1', template: 'one', active: 'no' }
      const added = await ok('POST', '/bare/versions', form)
      assert.equal(added.message, 'new version of the template has been stored')
      assert.deepEqual([added.template.version.tag, added.template.version.active], ['v1', true])
      await ok('POST', '/bare/versions', { tag: 'v2', template: 'two' })
      assert.deepEqual(await tags('bare'), ['*v1', 'v2'])
      await ok('POST', '/bare/versions', { tag: 'v3', template: 'three', active: 'true' })
      assert.deepEqual(await tags('bare'), ['v1', 'v2', '*v3'])
    })

    test('updating changes what is given and nothing else', async () => {
      await make('upd', { comment: 'c', headers: '{"From": "a@example.com"}', description: 'd' })
      const version = async () => (await ok('GET', '/upd/versions/initial')).template.version
      const original = await version()
      const updated = await ok('PUT', '/upd/versions/Initial', { comment: 'new' })
      assert.deepEqual(updated, {
        message: 'version has been updated',
        template: { name: 'upd', version: { tag: 'initial' } },
      })
      assert.deepEqual(await version(), { ...original, comment: 'new' })
      await ok('PUT', '/upd/versions/initial', { template: 'changed' })
      assert.deepEqual(await version(), { ...original, comment: 'new', template: 'changed' })
      await ok('PUT', '/upd/versions/initial', { headers: '{}' })
      assert.equal('headers' in (await version()), false)
      await ok('POST', '/upd/versions', { tag: 'two', template: 'x' })
      await ok('PUT', '/upd/versions/two', { active: 'yes' })
      assert.deepEqual(await tags('upd'), ['initial', '*two'])
      await ok('PUT', '/upd/versions/two', { active: 'no' })
      assert.deepEqual(await tags('upd'), ['initial', '*two'], 'the active one stays active')
      const described = await ok('PUT', '/upd', { description: '', name: 'ignored' })
      assert.deepEqual(described, { message: 'template has been updated', template: { name: 'upd' } })
      assert.equal((await ok('GET', '/upd')).template.description, '')
    })

    test('deleting the active version makes the newest that remains active', async () => {
      await make('del', { tag: 'a' })
      for (const tag of ['b', 'c']) await ok('POST', '/del/versions', { tag, template: tag })
      const deleted = await ok('DELETE', '/del/versions/A')
      assert.deepEqual(deleted, {
        message: 'version has been deleted',
        template: { name: 'del', version: { tag: 'a' } },
      })
      assert.deepEqual(await tags('del'), ['b', '*c'])
      await ok('DELETE', '/del/versions/b')
      await ok('DELETE', '/del/versions/c')
      assert.deepEqual(await tags('del'), [])
    })

    test('copying a version takes everything over; the copy is inactive, an overwritten one stays as it was', async () => {
      await make('cp', { tag: 'a', template: 'A', comment: 'ca', headers: '{"Subject": "s"}' })
      const copied = await ok('PUT', '/cp/versions/a/copy/B')
      const { id, ...view } = copied.version
      assert.equal(copied.message, 'version has been copied')
      assert.match(id, UUID)
      assert.deepEqual(view, {
        tag: 'b',
        template: 'A',
        engine: 'handlebars',
        createdAt: STAMP,
        comment: 'ca',
      })
      assert.deepEqual(copied.template, copied.version)
      assert.deepEqual(await tags('cp'), ['*a', 'b'])
      await ok('PUT', '/cp/versions/b', { template: 'B' })
      await ok('PUT', '/cp/versions/b/copy/a?comment=over')
      const { version } = (await ok('GET', '/cp/versions/a')).template
      assert.deepEqual(
        [version.template, version.comment, version.active, version.headers],
        ['B', 'over', true, { Subject: 's' }],
      )
    })

    test('renaming', async () => {
      await make('old name')
      const renamed = await ok('PUT', '/old%20name/rename/New')
      assert.deepEqual(renamed, { message: 'template has been renamed', template: { name: 'new' } })
      await fails(404, 'template not found', 'GET', '/old%20name')
      await make('other')
      await fails(400, "template with name 'other' already exists", 'PUT', '/new/rename/OTHER')
      await fails(400, 'Invalid parameter: name is invalid', 'PUT', `/new/rename/${'n'.repeat(257)}`)
      await ok('PUT', '/new/rename/new')
    })

    test('MJML is kept as source and stored as HTML, until other content takes its place', async () => {
      const made = await make('mj', { template: MJML, engine: 'mjml' })
      const { version } = made.template
      assert.deepEqual([version.engine, version.mjml], ['handlebars', MJML])
      assert.match(version.template, /^<!doctype html>.*Hi \{\{name\}\}/s)
      await ok('POST', '/mj/versions', { tag: 'field', mjml: MJML.replace('Hi', 'Hello') })
      assert.match((await ok('GET', '/mj/versions/field')).template.version.template, /Hello \{\{name\}\}/s)
      await ok('PUT', '/mj/versions/field', { mjml: MJML })
      assert.equal((await ok('GET', '/mj/versions/field')).template.version.template, version.template)
      await ok('PUT', '/mj/versions/field', { template: '<p></p>' })
      assert.equal((await ok('GET', '/mj/versions/field')).template.version.mjml, '')
      const include = MJML.replace('<mj-section>', '<mj-include path="/etc/passwd" /><mj-section>')
      await fails(
        400,
        'Invalid parameter: template mj-include is not supported',
        'PUT',
        '/mj/versions/field',
        { mjml: include },
      )
      const broken = MJML.replaceAll('mj-text', 'mj-nothing')
      await fails(
        400,
        "Invalid parameter: template line 1: Element mj-nothing doesn't exist or is not registered",
        ...(['POST', '', { name: 'mj2', template: broken, engine: 'mjml' }] as const),
      )
    })

    test('versions are paged by tag in the order of their making', async () => {
      await make('pages', { tag: 'c' })
      for (const tag of ['a', 'd', 'b']) await ok('POST', '/pages/versions', { tag, template: 'x' })
      const base = `${get().url}${rootOf()}/pages/versions`
      const page = async (query: string) => {
        const body = await ok('GET', `/pages/versions?${query}`)
        return {
          tags: body.template.versions.map(({ tag }: { tag: string }) => tag).join(''),
          paging: body.paging,
        }
      }
      const all = (await page('')).tags
      const [one, two, three] = all
      assert.deepEqual(await page('limit=2'), {
        tags: all.slice(0, 2),
        paging: {
          previous: `${base}?page=previous&p=${one}&limit=2`,
          first: `${base}?limit=2`,
          next: `${base}?page=next&p=${two}&limit=2`,
          last: `${base}?page=last&limit=2`,
        },
      })
      assert.equal((await page(`page=next&p=${two}&limit=2`)).tags, all.slice(2))
      assert.equal((await page(`page=next&p=${all[3]}`)).tags, '')
      assert.equal((await page(`page=prev&p=${three}&limit=1`)).tags, two)
      assert.equal((await page('page=last&limit=1')).tags, all[3])
      assert.equal((await page('page=&limit=&p=')).tags, all)
    })

    test('the 41st version is refused, as new version and as copy', async () => {
      await make('many')
      const add = (tag: string) => call('POST', '/many/versions', { tag, template: 'x' })
      for (let n = 2; n <= 40; n++) assert.equal((await add(`v${n}`)).status, 200)
      const refusal = 'templates are limited to 40 versions'
      await fails(400, refusal, 'POST', '/many/versions', { tag: 'v41', template: 'x' })
      await fails(400, refusal, 'PUT', '/many/versions/v2/copy/v41')
      await ok('PUT', '/many/versions/v2/copy/v3')
    })

    const FAULTS: [status: number, message: string, ...args: Parameters<typeof call>][] = [
      [400, 'Missing mandatory parameter: name', 'POST', '', { template: 'x' }],
      [400, 'Invalid parameter: name is invalid', 'POST', '', { name: 'a/b' }],
      [400, 'Invalid parameter: name is invalid', 'POST', '', { name: 'a\tb' }],
      [400, 'Invalid parameter: name is invalid', 'POST', '', { name: '..' }],
      [400, 'Invalid parameter: name is invalid', 'POST', '', { name: 'n'.repeat(257) }],
      [400, 'Invalid parameter: tag is invalid', 'POST', '', { name: 'f', template: 'x', tag: 'a/b' }],
      [400, "template with name 'there' already exists", 'POST', '', { name: 'THERE' }],
      [
        400,
        'Invalid parameter: engine go is not supported',
        'POST',
        '',
        { name: 'f', template: 'x', engine: 'go' },
      ],
      [400, 'Invalid parameter: headers', 'POST', '', { name: 'f', template: 'x', headers: '[' }],
      [400, 'Invalid parameter: headers', 'POST', '', { name: 'f', template: 'x', headers: '["a"]' }],
      [400, 'Invalid parameter: headers', 'POST', '', { name: 'f', template: 'x', headers: '{"From": 1}' }],
      [
        400,
        'Invalid parameter: header Bcc is not supported',
        'POST',
        '',
        { name: 'f', template: 'x', headers: '{"Bcc": "x"}' },
      ],
      [
        400,
        'Invalid parameter: template header Subject: line 1: partials are not supported',
        'POST',
        '',
        { name: 'f', template: 'x', headers: '{"Subject": "{{> x}}"}' },
      ],
      [
        400,
        'Invalid parameter: template line 2: unknown helper "foo"',
        'POST',
        '',
        { name: 'f', template: 'a\n{{#foo bar}}{{/foo}}' },
      ],
      [400, 'Invalid parameter: template holds a NUL character', 'POST', '', { name: 'f', template: 'a\0b' }],
      [
        400,
        'Invalid parameter: comment is invalid',
        'POST',
        '',
        { name: 'f', template: 'x', comment: 'c'.repeat(4001) },
      ],
      [
        400,
        'template is too large, max size is 100KB',
        'POST',
        '',
        { name: 'f', template: 'é'.repeat(51_201) },
      ],
      [400, 'Missing mandatory parameter: template', 'POST', '/there/versions', { tag: 'x' }],
      [400, 'Missing mandatory parameter: tag', 'POST', '/there/versions', { template: 'x' }],
      [400, 'version initial already exists', 'POST', '/there/versions', { template: 'x', tag: 'Initial' }],
      [
        400,
        'Invalid parameter: engine x is not supported',
        'POST',
        '/there/versions',
        { template: 'x', tag: 'e', engine: 'x' },
      ],
      [
        400,
        'Invalid format for parameter active: maybe',
        'POST',
        '/there/versions',
        { template: 'x', tag: 'e', active: 'maybe' },
      ],
      [
        400,
        'template is too large, max size is 100KB',
        'PUT',
        '/there/versions/initial',
        { template: 'x'.repeat(102_401) },
      ],
      [400, 'No fields are provided to update', 'PUT', '/there', { name: 'x' }],
      [400, 'No fields are provided to update', 'PUT', '/there/versions/initial', { engine: 'x' }],
      [400, 'Invalid parameter: tag is invalid', 'PUT', `/there/versions/initial/copy/${'t'.repeat(257)}`],
      [400, 'Invalid parameter: pivot ', 'GET', '?page=next'],
      [400, 'Invalid parameter: pivot ', 'GET', '/there/versions?page=previous'],
      [400, 'Invalid format for parameter page: nowhere', 'GET', '?page=nowhere'],
      [400, 'Invalid format for parameter limit: 0', 'GET', '?limit=0'],
      [404, 'template not found', 'GET', '/nowhere'],
      [404, 'template not found', 'PUT', '/nowhere', { description: 'x' }],
      [404, 'template not found', 'DELETE', '/nowhere'],
      [404, 'template not found', 'PUT', '/nowhere/rename/x'],
      [404, 'template not found', 'GET', '/nowhere/versions'],
      [404, 'template not found', 'POST', '/nowhere/versions', { template: 'x', tag: 'x' }],
      [404, 'template not found', 'GET', '/nowhere/versions/initial'],
      [404, 'template version not found', 'GET', '/there/versions/none'],
      [404, 'template version not found', 'PUT', '/there/versions/none', { comment: 'x' }],
      [404, 'template version not found', 'DELETE', '/there/versions/none'],
      [404, 'template version not found', 'PUT', '/there/versions/none/copy/x'],
    ]
    test('each fault has its own answer and leaves nothing behind', async () => {
      await make('there')
      const before = (await call('GET', '')).text
      for (const fault of FAULTS) await fails(...fault)
      assert.equal((await call('GET', '')).text, before)
      assert.deepEqual(await tags('there'), ['*initial'])
    })

    test('the 101st template is refused; a limit over 100 is cut; all are deleted at once', async () => {
      await ok('DELETE', '')
      for (let n = 1; n <= 100; n++) await ok('POST', '', { name: `t${String(n).padStart(3, '0')}` })
      await fails(400, 'template limit of 100 reached', 'POST', '', { name: 'one more' })
      assert.equal((await ok('GET', '?limit=1000')).items.length, 100)
      assert.match((await ok('GET', '?limit=1000')).paging.first, /\?limit=100$/)
      await ok('DELETE', '/t050')
      const after050 = await ok('GET', '?page=next&p=t050&limit=1')
      assert.equal(after050.items[0].name, 't051', 'a page begins at a name that is gone')
      assert.deepEqual(await ok('DELETE', ''), { message: 'templates have been deleted' })
      assert.deepEqual((await ok('GET', '')).items, [])
    })

    test('without a key, and with a wrong one', async () => {
      for (const key of [null, 'key-that-is-not-ours']) {
        const answer = await get().call('GET', rootOf(), { key })
        assert.deepEqual([answer.status, answer.body], [401, { message: 'Invalid private key' }])
      }
    })

    test('a key that may only read changes nothing', async () => {
      await make('guarded')
      const made = await get().call('POST', '/v1/keys', { form: { role: 'basic', kind: 'user' } })
      const key = made.body.key.secret as string
      const one = `${rootOf()}/guarded`
      const version = `${one}/versions/initial`
      for (const path of [rootOf(), one, `${one}/versions`, version]) {
        assert.equal((await get().call('GET', path, { key })).status, 200, path)
      }
      const form = { name: 'x', template: 'x', tag: 'x', description: 'x', comment: 'x' }
      for (const [method, path] of [
        ['POST', rootOf()],
        ['DELETE', rootOf()],
        ['PUT', one],
        ['DELETE', one],
        ['PUT', `${one}/rename/x`],
        ['POST', `${one}/versions`],
        ['PUT', version],
        ['DELETE', version],
        ['PUT', `${version}/copy/x`],
      ] as const) {
        assert.equal((await get().call(method, path, { form, key })).status, 403, `${method} ${path}`)
      }
      assert.deepEqual(await tags('guarded'), ['*initial'])
    })
  })
}

test('an unknown domain has no templates', async () => {
  const answer = await get().call('GET', '/v3/nowhere.example/templates')
  assert.deepEqual([answer.status, answer.body], [404, { message: 'domain not found' }])
})

test('templates of the account and of a domain are apart', async () => {
  const name = 'apart'
  for (const root of [scopes.domain(), scopes.account()]) {
    assert.equal((await get().call('POST', root, { form: { name } })).status, 200)
  }
  await get().call('DELETE', `${scopes.account()}/${name}`)
  assert.equal((await get().call('GET', `${scopes.domain()}/${name}`)).status, 200)
})

describe('copying an account template', () => {
  const copy = (json: unknown) => get().call('PUT', '/v4/templates/origin/copy', { json })
  before(async () => {
    const form = { name: 'origin', description: 'd', template: 'A', tag: 'a', sample: '{"name": "Ada"}' }
    await get().call('POST', '/v4/templates', { form })
    await get().call('POST', '/v4/templates/origin/versions', {
      form: { tag: 'b', template: 'B', active: 'yes' },
    })
  })

  test('goes to domains and accounts of the caller; what fails is listed, the rest is done', async () => {
    const { domain, service } = get()
    const account_id = service.first.accountId
    const requests = [
      { account_id, name: 'Into Domain', domain },
      { account_id, name: 'origin' },
      { account_id: 'nobody', name: 'x' },
      { account_id, name: 'x', domain: 'nowhere.example' },
    ]
    const answer = await copy({ requests, source_versions: [] })
    assert.deepEqual(answer.body, {
      message: 'template has been copied',
      failed_copies: [
        { account_id, name: 'origin', error: "template with name 'origin' already exists" },
        { account_id: 'nobody', name: 'x', error: 'account not found' },
        { account_id, name: 'x', domain: 'nowhere.example', error: 'domain not found' },
      ],
    })
    const copied = await get().call('GET', `${scopes.domain()}/into%20domain?active=yes`)
    assert.deepEqual([copied.body.template.version.tag, copied.body.template.version.template], ['b', 'B'])
    const versions = await get().call('GET', `${scopes.domain()}/into%20domain/versions`)
    assert.equal(versions.body.template.versions.length, 2)
  })

  test('of some versions makes the newest of them active', async () => {
    const account_id = get().service.first.accountId
    const answer = await copy({ requests: [{ account_id, name: 'only a' }], source_versions: ['A'] })
    const ofCopy = await get().call('GET', '/v4/templates/only%20a/versions/a')
    assert.deepEqual(ofCopy.body.template.version.sample, { name: 'Ada' })
    assert.deepEqual(answer.body.failed_copies, [])
    const { body } = await get().call('GET', '/v4/templates/only%20a?active=yes')
    assert.equal(body.template.version.tag, 'a')
  })

  test('answers each fault of the request', async () => {
    const faults: [json: unknown, status: number, message: string][] = [
      [{}, 400, 'Missing mandatory parameter: requests'],
      [{ requests: [] }, 400, 'Invalid parameter: requests'],
      [{ requests: [{ name: 'x' }] }, 400, 'Missing mandatory parameter: requests[0].account_id'],
      [
        { requests: [{ account_id: 'x', name: 'y', domain: 1 }] },
        400,
        'Invalid parameter: requests[0].domain',
      ],
      [{ requests: [{ account_id: 'x', name: 'a/b' }] }, 400, 'Invalid parameter: name is invalid'],
      [
        { requests: [{ account_id: 'x', name: 'y' }], source_versions: [1] },
        400,
        'Invalid parameter: source_versions[0]',
      ],
      [
        { requests: [{ account_id: 'x', name: 'y' }], source_versions: ['z'] },
        404,
        'template version not found',
      ],
    ]
    for (const [json, status, message] of faults) {
      const answer = await copy(json)
      assert.deepEqual([answer.status, answer.body], [status, { message }])
    }
    const unknown = await get().call('PUT', '/v4/templates/nowhere/copy', {
      json: { requests: [{ account_id: 'x', name: 'y' }] },
    })
    assert.deepEqual([unknown.status, unknown.body], [404, { message: 'template not found' }])
  })
})

test('on PostgreSQL a template is stored, versioned, chosen and rendered', async (t) => {
  const service = await startTestService(t, {}, { database: 'postgres' })
  const root = `/v3/${service.domain}/templates`
  const form = { name: 'Ünïcode', template: '<p>Grüße {{name}}</p>', headers: '{"Subject": "S {{name}}"}' }
  assert.equal((await service.call('POST', root, { form })).status, 200)
  await service.call('POST', `${root}/ünïcode/versions`, {
    form: { tag: 'v2', template: 'two', active: 'yes' },
  })
  await service.call('PUT', `${root}/ünïcode/versions/initial/copy/v2`)
  const json = { domain: service.domain, template: 'ÜNÏCODE', variables: { name: 'Ö' } }
  const { body } = await service.call('POST', '/sendwright/v1/templates/render', { json })
  assert.deepEqual([body.subject, body.html], ['S Ö', '<p>Grüße Ö</p>'])
  assert.equal((await service.call('DELETE', root)).status, 200)
})
