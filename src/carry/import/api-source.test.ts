import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ApiAnswer, ApiClient } from './api-client.ts'
import { createApiSource } from './api-source.ts'
import { type Item, KINDS, type Kind, nameOf } from './entry.ts'

/** A client with these answers by path; everything else is an empty list. */
function clientOf(answers: Record<string, unknown>): ApiClient & { paths: string[] } {
  const paths: string[] = []
  return {
    origin: 'http://source.example',
    paths,
    async call(_, path): Promise<ApiAnswer> {
      paths.push(path)
      const given = answers[path]
      if (typeof given === 'number') return { status: given, body: { message: 'no' }, text: '' }
      const body = (given ?? { items: [], webhooks: {}, tracking: {} }) as Record<string, unknown> | null
      return { status: 200, body, text: '' }
    },
  }
}

async function itemsOf(client: ApiClient, only: Kind[] = [...KINDS]): Promise<Item[]> {
  const items: Item[] = []
  const source = createApiSource(client, { domains: [], kinds: new Set(only) })
  for await (const section of source.sections())
    for await (const page of section.pages(null)) items.push(...page.items)
  return items
}

const domainPages = (...names: string[]) => ({
  '/v4/domains?limit=20&skip=0&sort=name': { items: names.map((name) => ({ name, type: 'custom' })) },
})
const refusals = (items: Item[]) => items.flatMap((item) => (item.entry === null ? [item.reason] : []))

test('of a link to the next page only the query is used', async () => {
  const link = 'https://evil.example/v3/other/bounces?page=next&address=a%40b'
  const client = clientOf({
    ...domainPages('a.example'),
    '/v3/a.example/bounces?limit=1000': { items: [{ address: 'a@b.example' }], paging: { next: link } },
  })
  const [item] = await itemsOf(client, ['bounce'])
  assert.equal(item?.entry && nameOf(item.entry), 'a@b.example of a.example')
  assert.ok(client.paths.includes('/v3/a.example/bounces?page=next&address=a%40b'))
})

test('a list that always has the same next page ends', async () => {
  const page = { items: [{ address: 'a@b.example' }], paging: { next: 'http://x/?page=next' } }
  const client = clientOf({
    ...domainPages('a.example'),
    '/v3/a.example/bounces?limit=1000': page,
    '/v3/a.example/bounces?page=next': page,
  })
  assert.equal((await itemsOf(client, ['bounce'])).length, 2)
})

test('an answer that is no list does not pass for an empty one', async () => {
  const client = clientOf({
    ...domainPages('a.example'),
    '/v3/a.example/bounces?limit=1000': { items: 'none' },
    '/v3/a.example/complaints?limit=1000': { nothing: true },
    '/v3/a.example/unsubscribes?limit=1000': 403,
    '/v3/domains/a.example/webhooks': { webhooks: { clicked: 5 } },
    '/v3/routes?limit=1000&skip=0': 404,
  })
  assert.deepEqual(refusals(await itemsOf(client)), [
    'is not an object',
    'cannot be read: not the expected JSON',
    'cannot be read: not the expected JSON',
    'cannot be read: 403 no',
    'cannot be read: 404 no',
  ])
})

test('a domain or template whose details cannot be read is reported, and the others are taken', async () => {
  const client = clientOf({
    ...domainPages('a.example', 'b.example'),
    '/v4/domains?limit=20&skip=2&sort=name': { items: [] },
    '/v4/domains/a.example': 404,
  })
  const items = await itemsOf(client, ['domain'])
  assert.deepEqual(refusals(items), ['cannot be read: GET /v4/domains/a.example: 404 no'])
  assert.equal(items.length, 2)
})

test('a source that has no end of versions or entries of a page takes bounded memory', async () => {
  const templates = '/v3/a.example/templates'
  const one = `${templates}/t/versions`
  const text = 'x'.repeat(2 ** 20)
  const answers: Record<string, unknown> = {
    ...domainPages('a.example'),
    [`${templates}?limit=10`]: { items: [{ name: 't' }] },
    '/v3/a.example/bounces?limit=1000': {
      items: Array.from({ length: 1_001 }, () => ({ address: 'a@b.example' })),
    },
    [`${one}/v`]: { template: { version: { tag: 'v', template: text } } },
  }
  const endless = clientOf(answers)
  const { call } = endless
  let pages = 0
  endless.call = async (method, path) => {
    if (!path.startsWith(`${one}?`)) return call(method, path)
    pages++
    const next = `https://x.example/?p=${pages}`
    return { status: 200, text: '', body: { template: { versions: [{ tag: 'v' }] }, paging: { next } } }
  }
  assert.deepEqual(refusals(await itemsOf(endless, ['template', 'bounce'])), [
    'has more versions, or longer ones, than a service allows',
    'cannot be read: a page has more than 1000 entries',
  ])
  assert.ok(pages < 60, `${pages} pages of a megabyte were read`)
})
