/** The machine description, OpenAPI 3.1, made of the registered operations. */
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import { auditNote } from './audit.ts'
import { type FixedAnswer, fixedAnswer } from './fixed-answer.ts'
import { JSON_TYPE } from './listening/arrival.ts'
import { type JsonSchema, type Operation, type ParamDoc, pathNames } from './operation.ts'
import { describeRights } from './rights.ts'

export interface DescriptionOptions {
  baseUrl: string
  /** Stands for `X-Service-` wherever a text or schema names it. */
  headerPrefix: string
  /** Named schemas that operations refer to as `#/components/schemas/<name>`. */
  schemas: Readonly<Record<string, JsonSchema>>
}

const TEXT = { type: 'string' } as const
const COMMON_SCHEMAS: Record<string, JsonSchema> = {
  Message: { type: 'object', required: ['message'], properties: { message: TEXT } },
  Reason: { type: 'object', required: ['Reason'], properties: { Reason: TEXT, message: TEXT } },
  Description: { type: 'object', required: ['Description'], properties: { Description: TEXT } },
  FieldFault: {
    type: 'object',
    required: ['Field'],
    properties: { Field: TEXT, Value: TEXT, message: TEXT },
  },
  TooManyRequests: {
    type: 'object',
    required: ['message'],
    properties: { message: TEXT, 'retry-seconds': { type: 'integer' } },
  },
  Paging: {
    type: 'object',
    required: ['previous', 'first', 'next', 'last'],
    properties: Object.fromEntries(
      ['previous', 'first', 'next', 'last'].map((name) => [name, { type: 'string', format: 'uri' }]),
    ),
  },
}

/** The whole document. `info.version` is 0.0.0 by the contract: the version of the API is in its paths. */
export function describeApi(operations: readonly Operation[], options: DescriptionOptions): JsonSchema {
  const paths: Record<string, Record<string, unknown>> = {}
  for (const spec of operations) {
    for (const path of [spec.path, ...(spec.aliases ?? [])]) {
      const item = paths[path] ?? {}
      paths[path] = item
      item[spec.method.toLowerCase()] = describeOperation(spec, path)
    }
  }
  const document = {
    openapi: '3.1.0',
    info: {
      title: 'Sendwright',
      version: '0.0.0',
      description: 'Email sending and domain management.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: options.baseUrl }],
    tags: [...new Set(operations.map((spec) => spec.tag))].map((name) => ({ name })),
    security: [{ basicAuth: [] }],
    paths,
    components: {
      securitySchemes: {
        basicAuth: { type: 'http', scheme: 'basic', description: 'User name api, password an API key.' },
      },
      schemas: { ...COMMON_SCHEMAS, ...options.schemas },
    },
  }
  return JSON.parse(JSON.stringify(document).replaceAll('X-Service-', options.headerPrefix)) as JsonSchema
}

/** The document as an answer. Quality 11 would take 600 ms for 2 KB less of 15. */
export async function descriptionAnswer(document: JsonSchema): Promise<FixedAnswer> {
  const bytes = Buffer.from(JSON.stringify(document))
  const quality = { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }
  const [br, zipped] = await Promise.all([promisify(brotliCompress)(bytes, quality), promisify(gzip)(bytes)])
  const headers = { 'content-type': JSON_TYPE, 'cache-control': 'no-cache' }
  return fixedAnswer(bytes, headers, { br, gzip: zipped })
}

function describeOperation(spec: Operation, path: string): JsonSchema {
  const parameters = [
    ...pathParameters(spec),
    ...spec.params.filter((param) => placeOf(param, spec) === 'query'),
  ]
  const requestBody = describeBody(spec)
  const audit = auditNote(spec)
  return {
    ...(path === spec.path ? { operationId: spec.id } : {}),
    tags: [spec.tag],
    summary: spec.summary,
    ...(spec.description === undefined ? {} : { description: spec.description }),
    ...(spec.deprecated === true ? { deprecated: true } : {}),
    ...(spec.auth === 'public' ? { security: [] } : {}),
    ...(audit === null ? {} : { 'x-audit': audit }),
    'x-rights': spec.auth === 'public' ? { public: true } : describeRights(spec.auth),
    parameters: parameters.map((param) => describeParameter(param, spec)),
    ...(requestBody === undefined ? {} : { requestBody }),
    responses: describeResponses(spec),
  }
}

function placeOf(param: ParamDoc, spec: Operation): 'path' | 'query' | 'form' {
  if (param.in !== undefined) return param.in
  if (pathNames(spec.path).includes(param.name)) return 'path'
  return spec.method === 'GET' || spec.method === 'DELETE' ? 'query' : 'form'
}

function pathParameters(spec: Operation): ParamDoc[] {
  return pathNames(spec.path).map(
    (name) =>
      spec.params.find((param) => param.name === name && placeOf(param, spec) === 'path') ?? {
        name,
        in: 'path',
        type: 'string',
        description: name.replaceAll('_', ' '),
      },
  )
}

function describeParameter(param: ParamDoc, spec: Operation): JsonSchema {
  const place = placeOf(param, spec)
  return {
    name: param.name,
    in: place,
    description: param.description,
    required: place === 'path' || param.required === true,
    schema: schemaOf(param),
  }
}

function schemaOf(param: ParamDoc): JsonSchema {
  const types: Record<ParamDoc['type'], JsonSchema> = {
    string: { type: 'string' },
    integer: { type: 'integer' },
    number: { type: 'number' },
    boolean: { type: 'boolean' },
    date: { type: 'string', description: 'RFC 2822 date or Unix seconds' },
    json: { type: 'string', contentMediaType: 'application/json' },
    file: { type: 'string', contentMediaType: 'application/octet-stream' },
  }
  const one = {
    ...types[param.type],
    ...(param.values === undefined ? {} : { enum: param.values }),
    ...(param.default === undefined ? {} : { default: param.default }),
    ...(param.example === undefined ? {} : { examples: [param.example] }),
  }
  return param.repeated === true ? { type: 'array', items: one } : one
}

function describeBody(spec: Operation): JsonSchema | undefined {
  if (spec.body !== undefined) {
    const { description, schema } = spec.body
    return { description, content: { 'application/json': { schema } } }
  }
  const fields = spec.params.filter((param) => placeOf(param, spec) === 'form')
  if (fields.length === 0) return undefined
  const required = fields.filter((param) => param.required === true).map((param) => param.name)
  const properties = Object.fromEntries(
    fields.map((param) => [param.name, { ...schemaOf(param), description: param.description }]),
  )
  const schema = { type: 'object', properties, ...(required.length === 0 ? {} : { required }) }
  const media = spec.multipartOnly
    ? ['multipart/form-data']
    : ['multipart/form-data', 'application/x-www-form-urlencoded', 'application/json']
  return {
    required: required.length > 0,
    content: Object.fromEntries(media.map((type) => [type, { schema }])),
  }
}

function describeResponses(spec: Operation): JsonSchema {
  const responses: Record<string, JsonSchema> = {}
  for (const [status, response] of Object.entries(spec.responses)) {
    const { description, schema, contentType = 'application/json' } = response
    const bodiless = status === '204' || status.startsWith('3')
    const media = { [contentType]: schema === undefined ? {} : { schema } }
    responses[status] = { description, ...(bodiless ? {} : { content: media }) }
  }
  const addMissing = (
    status: number,
    description: string,
    schema: string,
    contentType = 'application/json',
  ) => {
    const content = {
      [contentType]: { schema: schema === '' ? TEXT : { $ref: `#/components/schemas/${schema}` } },
    }
    responses[status] ??= { description, content }
  }
  addMissing(400, 'Bad parameter', 'Message')
  if (spec.auth !== 'public') {
    if (spec.plainText401 === true) addMissing(401, 'Authentication failed', '', 'text/plain')
    else addMissing(401, 'Authentication failed', 'Message')
    addMissing(403, 'The role lacks the right', 'Message')
    if (spec.rateLimit !== 'none') addMissing(429, 'Rate limit exceeded', 'TooManyRequests')
  }
  addMissing(500, 'Internal error', 'Message')
  return responses
}
