import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { type ApiDescription, fieldsOf, readDescription, searchOperations } from './description.ts'
import { type ExampleRequest, exampleAnswer, exampleOf } from './example.ts'
import { LANGUAGES, snippetOf } from './snippets.ts'

const AWKWARD = `It's "50%" \\ $HOME \`x\` #{y}`

const form: ExampleRequest = {
  method: 'PUT',
  url: 'https://mail.example.com/v3/lists/a%40example.com?limit=1',
  needsKey: true,
  body: { kind: 'form', values: [['name', AWKWARD]] },
}
const json: ExampleRequest = {
  ...form,
  body: { kind: 'json', value: { text: AWKWARD, list: [1, true, null] } },
}
const multipart: ExampleRequest = {
  ...form,
  method: 'POST',
  needsKey: false,
  body: {
    kind: 'multipart',
    values: [
      ['name', AWKWARD],
      ['file', { file: 'list.csv' }],
    ],
  },
}

test('every language has method, URL and values; a key only where one is needed', () => {
  for (const [language] of LANGUAGES) {
    for (const request of [form, json, multipart]) {
      const code = snippetOf(language, request)
      assert.ok(code.includes(request.url), code)
      assert.match(code, new RegExp(`\\b${request.method}\\b`, 'i'))
      assert.equal(code.includes('API_KEY'), request.needsKey, code)
    }
    assert.match(snippetOf(language, multipart), /list\.csv/)
  }
})

test('curl sends values as they stand', () => {
  for (const [request, expected] of [
    [form, ['--user', 'api:secret', '--data-urlencode', `name=${AWKWARD}`]],
    [multipart, ['--form-string', `name=${AWKWARD}`, '--form', 'file=@list.csv']],
    [json, ['--user', 'api:secret', '--header', 'Content-Type: application/json', '--data', jsonText(json)]],
  ] as const) {
    const script = `curl() { printf '%s\\0' "$@"; }\n${snippetOf('curl', request)}`
    const { stdout } = spawnSync('sh', ['-c', script], { encoding: 'utf8', env: { API_KEY: 'secret' } })
    assert.deepEqual(stdout.split('\0').slice(0, -1), ['--request', request.method, request.url, ...expected])
  }
})

const jsonText = ({ body }: ExampleRequest) =>
  body?.kind === 'json' ? JSON.stringify(body.value, null, 2) : ''

const DESCRIPTION: ApiDescription = {
  info: { title: 'Test' },
  servers: [{ url: 'https://mail.example.com/' }],
  components: {
    responses: {},
    schemas: { Node: { properties: { next: { $ref: '#/components/schemas/Node' } } } },
  },
  paths: {
    '/v3/{domain}/tags': {
      get: {
        operationId: 'listTags',
        tags: ['Tags'],
        summary: 'List tags',
        'x-rights': { public: true },
        parameters: [
          { name: 'domain', in: 'path', required: true, schema: { type: 'string' } },
          { name: 'kind', in: 'query', required: true, schema: { type: 'string', enum: ['a b', 'c'] } },
          { name: 'limit', in: 'query', schema: { type: 'integer' } },
        ],
        responses: {},
      },
    },
    '/v1/nodes': {
      post: {
        operationId: 'makeNode',
        tags: ['Nodes'],
        summary: 'Make a node',
        'x-rights': { roles: ['admin'] },
        parameters: [],
        requestBody: {
          content: {
            'application/json': {
              schema: {
                required: ['node', 'names'],
                type: 'object',
                properties: {
                  node: { $ref: '#/components/schemas/Node' },
                  names: { type: 'array', items: { type: 'string', examples: ['Ann'] } },
                  other: { type: 'string' },
                },
              },
            },
          },
        },
        responses: {},
      },
    },
  },
}

test('an example fills in the path, what is required, and what has an example', () => {
  const reference = readDescription(DESCRIPTION)
  const list = reference.byId.get('listTags')
  assert.ok(list)
  assert.deepEqual(exampleOf(list, reference, { domain: 'a/b.example' }), {
    method: 'GET',
    url: 'https://mail.example.com/v3/a%2Fb.example/tags?kind=a+b',
    needsKey: false,
  })
  const make = reference.byId.get('makeNode')
  assert.ok(make)
  const { body } = exampleOf(make, reference)
  assert.equal(body?.kind, 'json')
  assert.deepEqual(Object.keys(body.value as object), ['node', 'names'])
  assert.deepEqual((body.value as { names: unknown }).names, ['Ann'])
})

test('an answer is shown with all members, alternatives and free names', () => {
  const reference = readDescription(DESCRIPTION)
  const schema = {
    type: 'object',
    properties: {
      items: {
        type: 'array',
        items: { type: 'object', properties: { id: { type: 'string', examples: ['a'] } } },
      },
      by: { type: 'object', additionalProperties: { type: 'integer' } },
      next: { anyOf: [{ type: 'string', examples: ['later'] }, { type: 'null' }] },
    },
  }
  assert.deepEqual(exampleAnswer(schema, reference), { items: [{ id: 'a' }], by: { name: 1 }, next: 'later' })
  const fields = fieldsOf(schema, reference).map(({ name, type }) => `${name}: ${type}`)
  assert.deepEqual(fields, [
    'items: object, repeatable',
    'items[].id: string',
    'by: object of integer',
    'next: string or null',
  ])
})

test('a schema that refers to itself ends', () => {
  const reference = readDescription(DESCRIPTION)
  const schema = reference.byId.get('makeNode')?.body?.schema
  assert.ok(schema)
  const names = fieldsOf(schema, reference).map(({ name }) => name)
  assert.ok(names.includes('node.next.next') && names.includes('names') && names.length < 20, names.join())
})

test('a search finds operations by words of path, name, summary and tag', () => {
  const reference = readDescription(DESCRIPTION)
  const found = (text: string) =>
    searchOperations(reference, text).flatMap(({ operations }) => operations.map(({ id }) => id))
  assert.deepEqual(found(''), ['makeNode', 'listTags'])
  assert.deepEqual(found('tags LIST'), ['listTags'])
  assert.deepEqual(found('post v1'), ['makeNode'])
  assert.deepEqual(found('nothing'), [])
})
