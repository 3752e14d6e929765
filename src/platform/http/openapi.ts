/** The machine description, OpenAPI 3.1, made of the registered operations. */

import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import { VERSION } from '../../base/process/version.ts'
import {
  described,
  descriptionOf,
  either,
  integer,
  media,
  named,
  optional,
  type Shape,
  text,
} from '../../base/shape.ts'
import { type FixedAnswer, fixedAnswer } from './answer/reply.ts'
import { JSON_TYPE } from './listening/arrival.ts'
import { type Answers, type JsonSchema, type Operation, type ParamDoc, pathNames } from './operation.ts'
import { auditNote } from './rights/audit.ts'
import { describeRights } from './rights/auth.ts'

interface DescriptionOptions {
  baseUrl: string
  /** Stands for `X-Service-` wherever a text or schema names it. */
  headerPrefix: string
}

/** Shapes of errors; each has one text, whose member the contract fixes for each case. */
const ERROR = named('Message', 'What was done, or what is wrong', { message: text('The text') })
export const TOO_MANY = named('TooManyRequests', 'Over a limit', {
  message: text('Which limit'),
  'retry-seconds': optional(integer('Seconds after which a repeat may succeed')),
})
const BAD_PARAMETER = either(
  'Bad parameter',
  ERROR,
  named('Reason', 'A bad parameter', { Reason: text('The text'), message: optional(text('The text')) }),
  named('Description', 'A bad parameter', { Description: text('The text') }),
  named('FieldFault', 'A bad parameter', {
    Field: text('Its name'),
    Value: optional(text('What is wrong with it')),
    message: optional(text('The text')),
  }),
)

/** Answers that many operations share, by their names in `components/responses`. */
const COMMON = {
  BadParameter: BAD_PARAMETER,
  Unauthenticated: 'Authentication failed',
  UnauthenticatedText: media('text/plain', 'Authentication failed'),
  Forbidden: 'The role lacks the right, or the account may not do this now',
  ForeignPage: 'A page of another site calls it, or plain HTTP where https is set',
  NotFound: 'It does not exist, or belongs to another account',
  Repeated: 'The Idempotency-Key was used for another request, or the first call still runs',
  TooLarge: 'The body is too large',
  TooManyRequests: TOO_MANY,
  InternalError: 'Internal error',
  Unavailable: 'The database is away, or the service is too busy',
  DiskFull: 'The disk is full',
} satisfies Record<string, Answers[number]>

/** What any operation may answer, where it does not declare it itself. */
function commonAnswers(spec: Operation): Record<number, keyof typeof COMMON> {
  const { auth, method, body, params } = spec
  const changes = method !== 'GET'
  return {
    400: 'BadParameter',
    ...(auth !== 'public' && {
      401: spec.plainText401 === true ? 'UnauthenticatedText' : 'Unauthenticated',
      403: 'Forbidden',
      ...(spec.rateLimit !== 'none' && { 429: 'TooManyRequests' }),
    }),
    ...(auth === 'public' && changes && spec.crossSite !== true && { 403: 'ForeignPage' }),
    ...(pathNames(spec.path).length > 0 && { 404: 'NotFound' }),
    ...(method === 'POST' && auth !== 'public' && { 409: 'Repeated' }),
    ...(changes && (body !== undefined || params.length > 0) && { 413: 'TooLarge' }),
    500: 'InternalError',
    503: 'Unavailable',
    ...(changes && { 507: 'DiskFull' }),
  }
}

/** The whole document. `info.version` is 0.0.0 by the contract: the version of the API is in its paths; `x-release` is the program's. */
export function describeApi(operations: readonly Operation[], options: DescriptionOptions): JsonSchema {
  const paths: Record<string, Record<string, unknown>> = {}
  for (const spec of operations) {
    const described = describeOperation(spec)
    for (const [i, path] of [spec.path, ...(spec.aliases ?? [])].entries()) {
      const item = paths[path] ?? {}
      paths[path] = item
      // An alias has an id of its own, which generated clients call it by.
      const ids = i === 0 ? {} : { operationId: `${spec.id}_${i + 1}`, 'x-alias-of': spec.id }
      item[spec.method.toLowerCase()] = { ...described, ...ids }
    }
  }
  const document = {
    openapi: '3.1.0',
    info: {
      title: 'Sendwright',
      version: '0.0.0',
      'x-release': VERSION,
      description: 'Email sending and domain management.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: options.baseUrl }],
    tags: [...new Set(operations.map((spec) => spec.tag))].map((name) => ({ name, description: TAGS[name] })),
    security: [{ basicAuth: [] }],
    paths,
    webhooks: describeWebhooks(operations),
    components: {
      securitySchemes: {
        basicAuth: { type: 'http', scheme: 'basic', description: 'User name api, password an API key.' },
        bearerAuth: {
          type: 'http',
          scheme: 'bearer',
          description: 'An API key, where the operation says so.',
        },
      },
      responses: Object.fromEntries(
        Object.entries(COMMON).map(([name, answer]) => [name, describeAnswers(answer)]),
      ),
      schemas: namedSchemas(operations),
    },
  }
  return JSON.parse(JSON.stringify(document).replaceAll('X-Service-', options.headerPrefix)) as JsonSchema
}

/** The named schemas of all shapes. @throws Error for two that share a name */
function namedSchemas(operations: readonly Operation[]): Record<string, JsonSchema> {
  const named: Record<string, JsonSchema> = Object.assign(
    {},
    ...Object.values(COMMON).flatMap((answer) => shapesOf(answer).map(({ parts }) => parts)),
  )
  for (const spec of operations) {
    const answers = Object.values(spec.answers).flatMap(shapesOf)
    const body = spec.body === undefined ? [] : [spec.body]
    for (const { parts } of [...answers, ...body, ...Object.values(spec.webhooks ?? {})]) {
      for (const [name, schema] of Object.entries(parts)) {
        const other = named[name]
        if (other !== undefined && other !== schema && JSON.stringify(other) !== JSON.stringify(schema)) {
          throw new Error(`operation ${spec.id}: another shape is named ${name}`)
        }
        named[name] = schema
      }
    }
  }
  return named
}

/** What the service posts to URLs that clients register. */
function describeWebhooks(operations: readonly Operation[]): JsonSchema {
  const webhooks = operations.flatMap((spec) => Object.entries(spec.webhooks ?? {}))
  return Object.fromEntries(
    webhooks.map(([name, shape]) => {
      const summary = descriptionOf(shape)
      const requestBody = { required: true, content: { 'application/json': { schema: shape.schema } } }
      const responses = { 200: { description: 'Taken; webhooks.md says what follows from others' } }
      return [name, { post: { operationId: name, summary, security: [], requestBody, responses } }]
    }),
  )
}

/** The document as an answer. Quality 11 would take 600 ms for 2 KB less of 15. */
export async function descriptionAnswer(document: JsonSchema): Promise<FixedAnswer> {
  const bytes = Buffer.from(JSON.stringify(document))
  const quality = { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }
  const [br, zipped] = await Promise.all([promisify(brotliCompress)(bytes, quality), promisify(gzip)(bytes)])
  const headers = { 'content-type': JSON_TYPE, 'cache-control': 'no-cache' }
  return fixedAnswer(bytes, headers, { br, gzip: zipped })
}

function describeOperation(spec: Operation): JsonSchema {
  const parameters = [
    ...pathParameters(spec),
    ...spec.params.filter((param) => placeOf(param, spec) === 'query'),
  ]
  const requestBody = describeBody(spec)
  const audit = auditNote(spec)
  return {
    operationId: spec.id,
    tags: [spec.tag],
    summary: spec.summary,
    ...(spec.description === undefined ? {} : { description: spec.description }),
    ...(spec.deprecated === true ? { deprecated: true } : {}),
    ...(spec.auth === 'public' ? { security: [] } : {}),
    ...(spec.bearer === true ? { security: [{ bearerAuth: [] }, { basicAuth: [] }] } : {}),
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
    const { schema } = spec.body
    const description = descriptionOf(spec.body)
    return { description, required: true, content: { 'application/json': { schema } } }
  }
  if (spec.bytesOf !== undefined) {
    const types = spec.bytesOf.map((type) => [type, { schema: { type: 'string', format: 'binary' } }])
    return { required: true, content: Object.fromEntries(types) }
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
  for (const [status, name] of Object.entries(commonAnswers(spec))) {
    responses[status] = { $ref: `#/components/responses/${name}` }
  }
  for (const [status, answer] of Object.entries(spec.answers)) responses[status] = describeAnswers(answer)
  return responses
}

function describeAnswers(answer: Answers[number]): JsonSchema {
  const { description, content } = describeShapes(shapesOf(answer))
  return { description, ...(Object.keys(content).length > 0 && { content }) }
}

const shapesOf = (answer: Answers[number]): readonly Shape<unknown>[] =>
  typeof answer === 'string' ? [described(answer, ERROR)] : [answer].flat()

/** By content type; what has no body has none. */
function describeShapes(shapes: readonly Shape<unknown>[]) {
  const content: Record<string, { schema: JsonSchema }> = {}
  for (const { contentType = 'application/json', schema } of shapes) {
    if (contentType !== '') content[contentType] = { schema }
  }
  return { description: descriptionOf(shapes[0] as Shape<unknown>), content }
}

/** One answer with the named schemas that it needs, to check a given one. Undefined: the operation has no such status. */
export function describeAnswer(spec: Operation, status: number) {
  const name = commonAnswers(spec)[status]
  const answer = spec.answers[status] ?? (name && COMMON[name])
  if (answer === undefined) return undefined
  const shapes = shapesOf(answer)
  const { content } = describeShapes(shapes)
  const schemas: Record<string, JsonSchema> = Object.assign({}, ...shapes.map(({ parts }) => parts))
  if (spec.alsoCsv && status === 200) content['text/csv'] = { schema: {} }
  // No body has no type.
  if (shapes.some(({ contentType }) => contentType === '')) content[''] = { schema: {} }
  return { content, schemas }
}

/** What the groups of operations in the API description are about; each `tag` of an operation is one of them. */
export const TAGS: Readonly<Record<string, string>> = {
  Account: 'The account itself: settings, keys, users, addresses that callers may have.',
  Alerts: 'Notices of events, by mail, webhook or chat.',
  Assistants: 'Tasks for assistants, over the Model Context Protocol.',
  'Audit log': 'Who changed what, and when.',
  Blocklists: 'Domains and addresses that are looked up in blocklists.',
  'Bounce Classification': 'Bounces by reason and by the group that refused.',
  'Captured mail': 'Mail that was recorded instead of being delivered.',
  Credentials: 'Logins for sending by SMTP.',
  DNS: 'Records of domains, written at their DNS providers.',
  'Event sinks': 'Events sent to brokers, warehouses and log collectors.',
  'Domain keys': 'Keys that sign mail (DKIM).',
  DMARC: 'What receivers report about mail in the name of domains.',
  Domains: 'Sending domains, their DNS records and settings.',
  'Dynamic IP pools': 'Pools that domains move between by their reputation.',
  'Email Health Score': 'One figure for how mail fares.',
  Events: 'What happened to each message.',
  Exports: 'Lists as CSV files.',
  'IP pools': 'Groups of addresses that domains send from.',
  'IP warm-ups': 'Plans that raise the volume of a new address step by step.',
  IPs: 'Addresses that mail is sent from.',
  'Inbox placement': 'Where providers put a message: inbox, spam or nowhere.',
  Limits: 'How much of a feature an account may use.',
  Logs: 'Events by filters of any of their fields.',
  'Mailing lists': 'Lists and their members.',
  'Message limits': 'How much an account may send.',
  Messages: 'Sending, and reading what was stored.',
  Metrics: 'Figures by dimensions and time.',
  Queue: 'Deliveries that wait, and the mail servers that they wait for.',
  'Rate limits': 'How many calls and messages a second are taken.',
  Recipients: 'What is known of one address: shown, exported, erased.',
  Relays: 'Servers that take mail for others, and the rules that choose them.',
  Reputation: 'What Gmail and Microsoft say of domains and addresses.',
  Retention: 'What is kept, and for how long.',
  Routes: 'What happens to received mail.',
  Sandbox: 'Who receives mail of a sandbox domain.',
  Standing: 'Accounts and domains that are stopped for what they send, daily budgets and spam traps.',
  Stats: 'Counts by domain and time; Metrics tell more.',
  Subaccounts: 'Accounts below an account, with domains and limits of their own.',
  Suppressions: 'Addresses that get no mail, and those that do in spite of bounces.',
  System: 'The service itself: health, version, backups, export.',
  Tags: 'Words that messages carry, and figures for them.',
  Templates: 'Texts with variables, in versions.',
  Tracking: 'Opens, clicks and unsubscribe links of a domain.',
  'Tracking host': 'Links and pictures in mail, for recipients.',
  Users: 'Signing in to the dashboard.',
  Validation: 'Whether addresses can receive mail.',
  Webhooks: 'Events sent to a URL.',
}
