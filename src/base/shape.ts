/**
 * A shape describes a JSON value once: as a JSON Schema (draft 2020-12), which the API description prints and checks
 * apply, and as the TypeScript type of the code that makes or reads the value.
 *
 *     const KEY = named('ApiKey', 'A key without its secret', {
 *       id: text('Identifier'),
 *       role: oneOf('What it may do', ['admin', 'sending']),
 *       expires_at: optional(rfc3339('When it ends; absent: never')),
 *     })
 *     type Key = Of<typeof KEY>   // { id: string; role: 'admin' | 'sending'; expires_at?: string }
 *
 * Decision 175.
 */
export type JsonSchema = Readonly<Record<string, unknown>>

declare const TYPE: unique symbol

export interface Shape<T> {
  readonly schema: JsonSchema
  /** The named schemas that `schema` refers to, directly or not. */
  readonly parts: Readonly<Record<string, JsonSchema>>
  /** Set for what is not JSON. */
  readonly contentType?: string
  readonly [TYPE]?: { is: T }
}

/** A member that may be absent. */
export interface Optional<T> extends Shape<T> {
  readonly optional: true
}

export interface ObjectShape<F extends Fields> extends Shape<ObjectOf<F>> {
  /** To take over fields: `object('...', { ...KEY.fields, secret: text('...') })`. */
  readonly fields: F
}

export type Fields = Readonly<Record<string, Shape<unknown>>>

/** The TypeScript type of a shape. */
export type Of<S> = S extends { readonly [TYPE]?: { is: infer T } } ? T : never

type Absent<F> = { [K in keyof F]: F[K] extends Optional<unknown> ? K : never }[keyof F]
type Flat<T> = { readonly [K in keyof T]: T[K] }
type ObjectOf<F> = Flat<{ [K in Exclude<keyof F, Absent<F>>]: Of<F[K]> } & { [K in Absent<F>]?: Of<F[K]> }>

export interface About {
  /** A typical value. */
  example?: unknown
  /** `seconds`, `bytes`, `percent`: where the description does not say it. */
  unit?: string
  default?: unknown
  only?: Bounds
}

/** JSON Schema keywords that narrow a value. All but the formats are checked in requests (shape-check.ts). */
export interface Bounds {
  minimum?: number
  maximum?: number
  /** In characters (code points). */
  minLength?: number
  maxLength?: number
  /** ECMAScript with the flag `u`, found anywhere. */
  pattern?: string
  minItems?: number
  maxItems?: number
  maxProperties?: number
  /** The values, where the TypeScript type stays wide: what is stored is plain text. */
  enum?: readonly unknown[]
  /** For readers. */
  format?: 'date' | 'date-time' | 'email' | 'hostname' | 'ipv4' | 'uri' | 'uuid'
}

const NONE: Readonly<Record<string, JsonSchema>> = {}

function make<T>(schema: JsonSchema, description: string, about: About = {}, parts = NONE): Shape<T> {
  const { example, unit, only } = about
  const full = {
    ...schema,
    ...only,
    ...(description !== '' && { description }),
    ...(unit !== undefined && { 'x-unit': unit }),
    ...('default' in about && { default: about.default }),
    ...(example !== undefined && { examples: [example] }),
  }
  return { schema: full, parts }
}

export const text = (description: string, about?: About) =>
  make<string>({ type: 'string' }, description, about)
export const integer = (description: string, about?: About) =>
  make<number>({ type: 'integer' }, description, about)
export const number = (description: string, about?: About) =>
  make<number>({ type: 'number' }, description, about)
export const flag = (description: string, about?: About) =>
  make<boolean>({ type: 'boolean' }, description, about)
/** One of some words, or of some numbers. */
export const oneOf = <const V extends string | number | boolean>(
  description: string,
  values: readonly V[],
  about?: About,
) => make<V>({ type: typeof values[0], enum: values }, description, about)
/** Always the same. */
export const constant = <const V extends string | number | boolean>(description: string, value: V) =>
  oneOf(description, [value])
/** Null and nothing else; beside another shape use `nullable`. */
export const nothingNull = (description: string) => make<null>({ type: 'null' }, description)
/** Any JSON value: only what callers choose themselves, such as variables. */
export const anyJson = (description: string, about?: About) => make<unknown>({}, description, about)

/** RFC 3339 in UTC. */
export const rfc3339 = (description: string, about?: About) =>
  text(description, { example: '2026-01-31T12:00:00Z', ...about, only: { format: 'date-time' } })
/** RFC 1123 with the zone `GMT`. */
export const gmtDate = (description: string, about?: About) =>
  text(description, { example: 'Sat, 31 Jan 2026 12:00:00 GMT', ...about })
/** RFC 1123 with the zone `UTC`. */
export const utcDate = (description: string, about?: About) =>
  text(description, { example: 'Sat, 31 Jan 2026 12:00:00 UTC', ...about })
/** RFC 2822 with the zone `+0000` or `-0000`. */
export const mailDate = (description: string, about?: About) =>
  text(description, { example: 'Sat, 31 Jan 2026 12:00:00 +0000', ...about })
/** Seconds since 1970, with a fraction where the description says so. */
export const unixSeconds = (description: string, about?: About) =>
  number(description, { unit: 'Unix seconds', example: 1769860800, ...about })

export const list = <T>(description: string, items: Shape<T>, about?: About) =>
  make<readonly T[]>({ type: 'array', items: items.schema }, description, about, items.parts)

/** A list of a fixed length. */
export const tuple = <const S extends readonly Shape<unknown>[]>(description: string, ...items: S) =>
  make<{ readonly [K in keyof S]: Of<S[K]> }>(
    {
      type: 'array',
      prefixItems: items.map(({ schema }) => schema),
      minItems: items.length,
      maxItems: items.length,
    },
    description,
    {},
    partsOf(items),
  )

/** An object whose names are free and whose values are alike. */
export const map = <T>(description: string, values: Shape<T>, about?: About) =>
  make<Readonly<Record<string, T>>>(
    { type: 'object', additionalProperties: values.schema },
    description,
    about,
    values.parts,
  )

/** An object with these members and no others. */
export function object<const F extends Fields>(
  description: string,
  fields: F,
  about?: About,
): ObjectShape<F> {
  const entries = Object.entries(fields)
  const required = entries.filter(([, field]) => !('optional' in field)).map(([name]) => name)
  const schema = {
    type: 'object',
    properties: Object.fromEntries(entries.map(([name, { schema }]) => [name, schema])),
    ...(required.length > 0 && { required }),
  }
  return { ...make<ObjectOf<F>>(schema, description, about, partsOf(Object.values(fields))), fields }
}

/** An object that has a name in the API description, and an interface of that name in generated clients. */
export function named<const F extends Fields>(
  name: string,
  description: string,
  fields: F,
  about?: About,
): ObjectShape<F> {
  const { schema, parts } = object(description, fields, about)
  return {
    schema: { $ref: `#/components/schemas/${name}` },
    parts: { ...parts, [name]: schema },
    fields,
  }
}

/** The same shape with another description, for its use in one place; beside a `$ref` it takes precedence. */
export const described = <S extends Shape<unknown>>(description: string, shape: S): S => ({
  ...shape,
  schema: { ...shape.schema, description },
})

/** A member that may be absent; its description says when it is present. */
export const optional = <T>(shape: Shape<T>): Optional<T> => ({ ...shape, optional: true })

/** A value of the shape, or null. A member that may be absent too is `optional(nullable(...))`. */
export const nullable = <T>(shape: Shape<T> & { optional?: never }): Shape<T | null> => {
  const { type, enum: values, description, ...rest } = shape.schema
  if (typeof type !== 'string')
    return either(String(description ?? ''), shape, make<null>({ type: 'null' }, ''))
  const schema = { ...rest, type: [type, 'null'], ...(Array.isArray(values) && { enum: [...values, null] }) }
  return { schema: { ...schema, ...(description !== undefined && { description }) }, parts: shape.parts }
}

/** A value of any of these shapes. */
export function either<const S extends readonly Shape<unknown>[]>(
  description: string,
  ...shapes: S
): Shape<Of<S[number]>> {
  const schema = { anyOf: shapes.map(({ schema }) => schema) }
  return make(schema, description, {}, partsOf(shapes))
}

/** The shape under a name in the API description; objects are `named`. */
export const component = <T>(name: string, { schema, parts }: Shape<T>): Shape<T> => ({
  schema: { $ref: `#/components/schemas/${name}` },
  parts: { ...parts, [name]: schema },
})

/** A shape that refers to itself: `build` gets the reference. */
export const recursive = <T>(name: string, build: (self: Shape<T>) => Shape<T>): Shape<T> =>
  component(name, build({ schema: { $ref: `#/components/schemas/${name}` }, parts: NONE }))

/** What is not JSON: a page, CSV, bytes, a stream of events. */
export interface Media {
  readonly media: true
}
export const media = (contentType: string, description: string): Shape<Media> => ({
  ...make<Media>({ type: 'string' }, description),
  contentType,
})

/** An answer without a body. */
export interface Nothing {
  readonly nothing: true
}
export const nothing = (description: string): Shape<Nothing> => ({
  ...make<Nothing>({}, description),
  contentType: '',
})

const partsOf = (shapes: readonly Shape<unknown>[]): Record<string, JsonSchema> =>
  Object.assign({}, ...shapes.map(({ parts }) => parts))

/** The description, from the named schema where the shape only refers to it. */
export function descriptionOf({ schema, parts }: Shape<unknown>): string {
  const { description, $ref } = schema
  if (typeof description === 'string') return description
  const name = typeof $ref === 'string' ? $ref.slice($ref.lastIndexOf('/') + 1) : ''
  return String(parts[name]?.description ?? '')
}

/** The answer of an operation that only says what it did. */
export const message = (example: string, description = 'Done') =>
  object(description, { message: text('What was done', { example }) })
