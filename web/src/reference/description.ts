/** Reads the machine description, `/openapi.json`, into what the reference shows. */

/** JSON Schema, as far as the description uses it. */
export interface Schema {
  $ref?: string
  type?: string | readonly string[]
  description?: string
  format?: string
  enum?: readonly (string | number | null)[]
  default?: unknown
  examples?: readonly unknown[]
  contentMediaType?: string
  items?: Schema
  properties?: Readonly<Record<string, Schema>>
  required?: readonly string[]
  anyOf?: readonly Schema[]
  prefixItems?: readonly Schema[]
  /** Values of an object whose names are free. */
  additionalProperties?: Schema
}

export interface Parameter {
  name: string
  in: string
  description?: string
  required?: boolean
  schema: Schema
}

export interface DescribedResponse {
  description: string
  content?: Readonly<Record<string, { schema?: Schema }>>
}

/** Who may call an operation (`x-rights`). */
export interface Rights {
  public?: boolean
  area?: string
  access?: string
  roles?: readonly string[]
  /** `parent`: no subaccount; `first`: the operator's account. */
  only?: string
  public_key?: boolean
}

interface DescribedOperation {
  operationId: string
  tags: readonly string[]
  summary: string
  description?: string
  deprecated?: boolean
  'x-rights': Rights
  parameters: readonly Parameter[]
  requestBody?: {
    description?: string
    required?: boolean
    content: Readonly<Record<string, { schema: Schema }>>
  }
  /** Responses that many operations share are in the components. */
  responses: Readonly<Record<string, DescribedResponse | { $ref: string }>>
}

/** The document itself. */
export interface ApiDescription {
  info: { title: string; description?: string }
  servers: readonly { url: string }[]
  paths: Readonly<Record<string, Readonly<Record<string, DescribedOperation>>>>
  components: {
    schemas: Readonly<Record<string, Schema>>
    responses: Readonly<Record<string, DescribedResponse>>
  }
}

export interface Body {
  description?: string
  /** Media types that the operation takes, best first. */
  types: readonly string[]
  schema: Schema
}

export interface Operation {
  /** Its operationId; each path of an operation has one. */
  id: string
  tag: string
  /** Upper case. */
  method: string
  /** With parameters in braces. */
  path: string
  summary: string
  description?: string
  deprecated: boolean
  rights: Rights
  parameters: readonly Parameter[]
  body?: Body
  responses: readonly (readonly [status: string, response: DescribedResponse])[]
}

export interface Reference {
  /** Public address of this installation, without a slash at the end. */
  baseUrl: string
  tags: readonly { name: string; operations: readonly Operation[] }[]
  byId: ReadonlyMap<string, Operation>
  schemas: Readonly<Record<string, Schema>>
}

export function readDescription(document: ApiDescription): Reference {
  const byId = new Map<string, Operation>()
  const byTag = new Map<string, Operation[]>()
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const [method, described] of Object.entries(methods)) {
      const operation = readOperation(method.toUpperCase(), path, described, document.components.responses)
      byId.set(operation.id, operation)
      byTag.set(operation.tag, [...(byTag.get(operation.tag) ?? []), operation])
    }
  }
  const tags = [...byTag].map(([name, operations]) => ({ name, operations }))
  return {
    baseUrl: (document.servers[0]?.url ?? '').replace(/\/$/, ''),
    tags: tags.sort((a, b) => a.name.localeCompare(b.name, 'en')),
    byId,
    schemas: document.components.schemas,
  }
}

function readOperation(
  method: string,
  path: string,
  described: DescribedOperation,
  shared: ApiDescription['components']['responses'],
): Operation {
  const { operationId, tags, summary, description, deprecated, parameters, requestBody, responses } =
    described
  const types = Object.keys(requestBody?.content ?? {})
  const schema = requestBody?.content[types[0] ?? '']?.schema
  return {
    id: operationId,
    tag: tags[0] ?? '',
    method,
    path,
    summary,
    ...(description !== undefined && { description }),
    deprecated: deprecated === true,
    rights: described['x-rights'],
    parameters,
    ...(schema !== undefined && {
      body: {
        types,
        schema,
        ...(requestBody?.description !== undefined && { description: requestBody.description }),
      },
    }),
    responses: Object.entries(responses).flatMap(([status, response]) => {
      const known = '$ref' in response ? shared[response.$ref.split('/').at(-1) ?? ''] : response
      return known === undefined ? [] : [[status, known] as const]
    }),
  }
}

/** The operations of each tag that have every word in their path, name, summary or tag; tags without any are left out. */
export function searchOperations(reference: Reference, text: string): Reference['tags'] {
  const words = text.trim().toLowerCase().split(/\s+/).filter(Boolean)
  const isFound = ({ id, method, path, summary, tag }: Operation) => {
    const searched = `${id} ${method} ${path} ${summary} ${tag}`.toLowerCase()
    return words.every((word) => searched.includes(word))
  }
  return reference.tags
    .map(({ name, operations }) => ({ name, operations: operations.filter(isFound) }))
    .filter(({ operations }) => operations.length > 0)
}

/** The schema that a reference names, or the schema itself. */
export const resolved = (schema: Schema, { schemas }: Pick<Reference, 'schemas'>): Schema =>
  (schema.$ref !== undefined && schemas[schema.$ref.split('/').at(-1) ?? '']) || schema

export interface Field {
  /** With the names of the objects around it: `requests[].name`. */
  name: string
  type: string
  required: boolean
  description?: string
  values: readonly string[]
  default?: string
}

const DEPTH_MAX = 5 // deeper than any body of the API; ends a schema that refers to itself

/** The properties of a body, those of inner objects after the object. */
export function fieldsOf(
  schema: Schema,
  reference: Pick<Reference, 'schemas'>,
  prefix = '',
  depth = 0,
): Field[] {
  const { properties = {}, required = [], items, anyOf, additionalProperties } = resolved(schema, reference)
  if (anyOf !== undefined) {
    // What several alternatives have is shown once.
    const fields = anyOf.flatMap((one) => fieldsOf(one, reference, prefix, depth + 1))
    return [...new Map(fields.map((field) => [field.name, field])).values()]
  }
  if (additionalProperties !== undefined && depth < DEPTH_MAX) {
    return fieldsOf(additionalProperties, reference, prefix === '' ? '*' : `${prefix}.*`, depth + 1)
  }
  if (items !== undefined && depth < DEPTH_MAX) return fieldsOf(items, reference, `${prefix}[]`, depth + 1)
  return Object.entries(properties).flatMap(([name, part]): Field[] => {
    const inner = resolved(part, reference)
    const path = prefix === '' ? name : `${prefix}.${name}`
    const below = depth < DEPTH_MAX ? fieldsOf(inner, reference, path, depth + 1) : []
    return [fieldOf(path, inner, required.includes(name), part.description ?? inner.description), ...below]
  })
}

export function fieldOf(name: string, schema: Schema, required: boolean, description?: string): Field {
  const one = schema.items ?? schema
  const words = description ?? schema.description ?? one.description
  return {
    name,
    type: typeOf(schema),
    required,
    ...(words !== undefined && { description: words }),
    values: (one.enum ?? []).map(String),
    ...(one.default !== undefined && { default: JSON.stringify(one.default) }),
  }
}

function typeOf(schema: Schema): string {
  if (schema.$ref !== undefined) return schema.$ref.split('/').at(-1) ?? ''
  if (schema.anyOf !== undefined) return [...new Set(schema.anyOf.map(typeOf))].join(' or ')
  if (schema.additionalProperties !== undefined) return `object of ${typeOf(schema.additionalProperties)}`
  if (schema.items !== undefined) return `${typeOf(schema.items)}, repeatable`
  if (schema.contentMediaType === 'application/octet-stream') return 'file'
  if (schema.contentMediaType === 'application/json') return 'JSON as text'
  return [schema.type ?? 'any'].flat().join(' or ')
}
