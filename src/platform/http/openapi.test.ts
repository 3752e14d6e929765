import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startServer } from '../../../test/support/http-server.ts'
import { anyJson, named, nothing, object, text } from '../../base/shape.ts'
import { operation } from './operation.ts'
import { filesParam, otherParam } from './request/inputs.ts'

const upload = operation({
  method: 'POST',
  path: '/v3/{domain_name}/things',
  aliases: ['/v2/{domain_name}/things'],
  id: 'createThing',
  tag: 'Things',
  summary: 'Make a thing; the answer carries X-Service-Key-Id',
  deprecated: true,
  auth: { area: 'messages:send', access: 'write', domain: 'domain_name' },
  plainText401: true,
  multipartOnly: true,
  rateLimit: 'sending',
  params: {
    domain_name: otherParam('A sending domain'),
    to: otherParam('Recipients', { required: true, repeated: true, example: 'a@b.c' }),
    state: otherParam('State', { values: ['on', 'off'], default: 'on' }),
    attachment: filesParam('Files'),
    pretty: otherParam('Ignored', { in: 'query', type: 'boolean' }),
  },
  answers: { 200: named('Thing', 'Made', {}) },
  handler: async () => ({}),
})
const query = operation({
  method: 'POST',
  path: '/v1/query',
  id: 'query',
  tag: 'Things',
  summary: 'Ask',
  auth: { area: 'events', access: 'read' },
  webhooks: { answered: named('Answered', 'The answer, later', { text: text('The text') }) },
  body: object('The question', {}),
  answers: { 200: anyJson('Answer'), 204: nothing('None') },
  handler: async () => ({}),
})

interface Described {
  operationId: string
  'x-alias-of'?: string
  deprecated?: boolean
  security?: unknown[]
  parameters: Array<{ name: string; in: string; required: boolean; schema: object }>
  requestBody?: {
    content: Record<string, { schema: { required?: string[]; properties: Record<string, unknown> } }>
  }
  responses: Record<string, { content?: Record<string, unknown> }>
}
interface Description {
  openapi: string
  info: { version: string; 'x-release'?: string }
  paths: Record<string, Record<string, Described>>
  webhooks: Record<string, { post: Described }>
  components: { schemas: Record<string, unknown>; securitySchemes: Record<string, unknown> }
}

async function described(): Promise<Description> {
  await using server = await startServer([], { headerPrefix: 'X-Mailgun-' })
  return server.server.describe() as unknown as Description
}

async function describedThings(): Promise<Description> {
  await using server = await startServer([upload, query], { headerPrefix: 'X-Mailgun-' })
  const response = await server.fetch('/openapi.json', { key: '' })
  assert.equal(response.headers.get('content-type'), 'application/json; charset=utf-8')
  return (await response.json()) as Description
}

test('the description is OpenAPI 3.1 of version 0.0.0 with basicAuth', async () => {
  const { openapi, info, components } = await described()
  assert.match(openapi, /^3\.1\.\d$/)
  assert.equal(info.version, '0.0.0')
  assert.match(info['x-release'] ?? '', /^\d+\.\d+\.\d+/)
  assert.deepEqual(components.securitySchemes['basicAuth'], {
    type: 'http',
    scheme: 'basic',
    description: 'User name api, password an API key.',
  })
})

test('an operation is described with parameters, body, errors and its deprecation', async () => {
  const document = await describedThings()
  const post = document.paths['/v3/{domain_name}/things']?.['post'] as Described
  assert.equal(post.operationId, 'createThing')
  assert.equal(post.deprecated, true)
  assert.deepEqual(
    post.parameters.map(({ name, in: place, required }) => [name, place, required]),
    [
      ['domain_name', 'path', true],
      ['pretty', 'query', false],
    ],
  )
  assert.deepEqual(Object.keys(post.requestBody?.content ?? {}), ['multipart/form-data'])
  const form = post.requestBody?.content['multipart/form-data']?.schema
  assert.deepEqual(form?.required, ['to'])
  assert.deepEqual(Object.keys(form?.properties ?? {}), ['to', 'state', 'attachment'])
  assert.deepEqual(form?.properties['to'], {
    type: 'array',
    items: { type: 'string', examples: ['a@b.c'] },
    description: 'Recipients',
  })
  assert.deepEqual(form?.properties['state'], {
    type: 'string',
    enum: ['on', 'off'],
    default: 'on',
    description: 'State',
  })
  const statuses = ['200', '400', '401', '403', '404', '409', '413', '429', '500', '503', '507']
  assert.deepEqual(Object.keys(post.responses), statuses)
  assert.deepEqual(post.responses['401'], { $ref: '#/components/responses/UnauthenticatedText' })
  assert.match(JSON.stringify(post), /X-Mailgun-Key-Id/)
  assert.doesNotMatch(JSON.stringify(document), /X-Service-/)
})

test('aliases are described with an operationId of their own, public operations without security', async () => {
  const { paths } = await describedThings()
  const alias = paths['/v2/{domain_name}/things']?.['post']
  assert.deepEqual([alias?.operationId, alias?.['x-alias-of']], ['createThing_2', 'createThing'])
  assert.deepEqual(paths['/health/live']?.['get']?.security, [])
  assert.deepEqual(Object.keys(paths['/v1/query']?.['post']?.requestBody?.content ?? {}), [
    'application/json',
  ])
  assert.equal(paths['/v1/query']?.['post']?.responses['204']?.content, undefined)
})

test('what the service posts later is described as a webhook', async () => {
  const { webhooks, components } = await describedThings()
  const schema = { $ref: '#/components/schemas/Answered' }
  const { requestBody, security } = webhooks['answered']?.post ?? {}
  assert.deepEqual([requestBody?.content, security], [{ 'application/json': { schema } }, []])
  assert.ok(Object.hasOwn(components.schemas, 'Answered'))
})

test('ids are unique, path parts are described, references of ours lead somewhere', async () => {
  const { paths, components } = await describedThings()
  const all = Object.entries(paths).flatMap(([path, item]) =>
    Object.values(item).map((described) => ({ path, described })),
  )
  const ids = all.map(({ described }) => described.operationId)
  assert.equal(new Set(ids).size, ids.length)
  for (const { path, described } of all) {
    const inPath = described.parameters.filter((param) => param.in === 'path').map((param) => param.name)
    assert.deepEqual(
      inPath,
      [...path.matchAll(/\{([^}]+)\}/g)].map((match) => match[1]),
    )
  }
  const references = [...JSON.stringify(paths).matchAll(/#\/components\/schemas\/(\w+)/g)].map(
    (match) => match[1],
  )
  const unknown = references.filter((name) => !Object.hasOwn(components.schemas, name as string))
  assert.deepEqual(unknown, [])
})
