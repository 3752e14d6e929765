/** An example request of an operation: what its snippets send. */
import { type Operation, type Reference, resolved, type Schema } from './description.ts'

/** A value of a form, whose names are unique; `file` is the name of one to send. */
export type FormValue = readonly [name: string, value: string | { file: string }]

export type ExampleBody =
  | { kind: 'form' | 'multipart'; values: readonly FormValue[] }
  | { kind: 'json'; value: unknown }

export interface ExampleRequest {
  method: string
  /** Absolute, with the query string. */
  url: string
  /** Whether it needs an API key. */
  needsKey: boolean
  body?: ExampleBody
}

const EXAMPLE_DOMAIN = 'example.com'
/** Paths whose name is that of a domain. */
const OF_DOMAIN = /\/(?:domains|v3)\/\{name\}/

/** Values that say what a parameter is, by its name. */
const BY_NAME: Readonly<Record<string, string>> = {
  domain: EXAMPLE_DOMAIN,
  domain_name: EXAMPLE_DOMAIN,
  authority_name: EXAMPLE_DOMAIN,
  signing_domain: EXAMPLE_DOMAIN,
  host: 'email.example.com',
  web_prefix: 'email',
  mailfrom_host: 'bounces.example.com',
  address: 'bob@example.org',
  addr: 'bob@example.org',
  member: 'bob@example.org',
  email: 'bob@example.org',
  to: 'bob@example.org',
  from: 'Ann <ann@example.com>',
  list: 'news@example.com',
  list_address: 'news@example.com',
  login: 'ann@example.com',
  spec: 'ann@example.com',
  url: 'https://app.example.com/hook',
  ip: '192.0.2.1',
  selector: 's1',
  tag: 'welcome',
  subject: 'Hello',
  limit: '0.1',
  expression: 'match_recipient(".*@example.com")',
  action: 'forward("https://app.example.com/mail")',
  members: '[{"address":"bob@example.org"}]',
  deliverytime: 'Fri, 01 Jan 2027 09:00:00 +0000',
  timestamp: '1767225600',
  event: 'delivered',
  type: 'delivered',
  file: 'list.csv',
  message: 'message.eml',
}
const BY_TYPE: Readonly<Record<string, unknown>> = { integer: 1, number: 1, boolean: true, object: {} }

/** Stands for the names in an object whose names are free. */
const NAME_OF_MEMBER = 'name'
const DEPTH_MAX = 5 // deeper than any body of the API; ends a schema that refers to itself

/** `values`: replace the examples of path and query parameters, by name. */
export function exampleOf(
  operation: Operation,
  reference: Reference,
  values: Readonly<Record<string, string>> = {},
): ExampleRequest {
  const { method, parameters, rights } = operation
  const exampleFor = (name: string, schema: Schema) =>
    values[name] ?? String(exampleValue(name, schema, reference))
  const path = operation.path.replaceAll(/\{([^}]+)\}/g, (_, name: string) => {
    const parameter = parameters.find((each) => each.in === 'path' && each.name === name)
    const meaning = name === 'name' && OF_DOMAIN.test(operation.path) ? 'domain' : name
    return encodeURIComponent(exampleFor(meaning, parameter?.schema ?? {}))
  })
  const query = new URLSearchParams()
  for (const parameter of parameters)
    if (parameter.in === 'query' && parameter.required)
      query.append(parameter.name, exampleFor(parameter.name, parameter.schema))
  const body = exampleBody(operation, reference)
  return {
    method,
    url: `${reference.baseUrl}${path}${query.size > 0 ? `?${query}` : ''}`,
    needsKey: rights.public !== true,
    ...(body !== undefined && { body }),
  }
}

function exampleBody({ body }: Operation, reference: Reference): ExampleBody | undefined {
  if (body === undefined) return undefined
  const { types } = body
  if (types.length === 1 && types[0] === 'application/json')
    return { kind: 'json', value: exampleValue('', body.schema, reference) }
  const shown = shownNames(body.schema)
  // A form of nothing changes nothing, so without any the first field is shown.
  const names = shown.length > 0 ? shown : Object.keys(body.schema.properties ?? {}).slice(0, 1)
  const values = names.map((name): FormValue => {
    const schema = body.schema.properties?.[name] ?? {}
    const value = String(exampleValue(name, schema.items ?? schema, reference))
    return [name, isFile(schema) ? { file: value } : value]
  })
  const isForm = types.includes('application/x-www-form-urlencoded')
  const hasFile = values.some(([, value]) => typeof value !== 'string')
  return { kind: isForm && !hasFile ? 'form' : 'multipart', values }
}

/** What is required, and what has an example. */
const shownNames = ({ properties = {}, required = [] }: Schema): string[] =>
  Object.keys(properties).filter(
    (name) =>
      required.includes(name) || (properties[name]?.items ?? properties[name])?.examples !== undefined,
  )

const isFile = (schema: Schema): boolean =>
  (schema.items ?? schema).contentMediaType === 'application/octet-stream'

/** A typical answer, with the members that may be absent. */
export const exampleAnswer = (schema: Schema, reference: Reference): unknown =>
  exampleValue('', schema, reference, 0, ({ properties = {} }) => Object.keys(properties))

function exampleValue(
  name: string,
  given: Schema,
  reference: Reference,
  depth = 0,
  namesOf = shownNames,
): unknown {
  const schema = resolved(given, reference)
  const inside = (inner: string, part: Schema) => exampleValue(inner, part, reference, depth + 1, namesOf)
  const known = schema.examples?.[0] ?? schema.enum?.[0] ?? schema.default
  if (known !== undefined && known !== null && known !== '') return known
  const type = [schema.type ?? 'string'].flat()[0] ?? 'string'
  if (type === 'array')
    return depth < DEPTH_MAX
      ? (schema.prefixItems ?? (schema.items ? [schema.items] : [])).map((one) => inside(name, one))
      : []
  if (type === 'object' && schema.properties && depth < DEPTH_MAX)
    return Object.fromEntries(
      namesOf(schema).map((inner) => [inner, inside(inner, schema.properties?.[inner] ?? {})]),
    )
  if (schema.anyOf?.[0] !== undefined && depth < DEPTH_MAX) return inside(name, schema.anyOf[0])
  if (type === 'object' && schema.additionalProperties && depth < DEPTH_MAX)
    return { [NAME_OF_MEMBER]: inside('', schema.additionalProperties) }
  if (type === 'string') {
    if (BY_NAME[name] !== undefined) return BY_NAME[name]
    if (schema.contentMediaType === 'application/json') return '{}'
    if (isFile(schema)) return 'file.bin'
    return name === '' ? 'text' : name.toUpperCase().replaceAll(/[^A-Z0-9]+/g, '_')
  }
  return BY_TYPE[type] ?? null
}
