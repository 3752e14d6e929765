/**
 * Compares every JSON answer with what its operation declares. The runner loads it into each process of a test
 * (`node --import`), services that tests start included, and fails a file whose answers differ. Members that a shape does
 * not have are faults here, though clients must expect them.
 */
import { subscribe } from 'node:diagnostics_channel'
import { appendFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { ErrorObject, ValidateFunction } from 'ajv'
import type { JsonSchema } from '../../src/base/shape.ts'
import type { AnsweredCall } from '../../src/platform/http/answer/reply.ts'
import type { Operation } from '../../src/platform/http/operation.ts'

/** The file that takes the differences, a line each. */
const FAULTS = process.env['SENDWRIGHT_ANSWER_FAULTS']
/** A longer answer is an export. */
const CHECKED_BYTES_MAX = 8 * 1024 * 1024

/** Members under the prefix of a service, which the shapes call `X-Service-`. */
const PREFIXED = /"X-[A-Za-z-]+?-(?=(Tag|Template-Name|Template-Variables)":)/g

type Check = (call: AnsweredCall & { spec: Operation }) => void
let check: Check | undefined

if (FAULTS !== undefined) {
  subscribe('sendwright.answer', (call) => {
    // Loaded at the first answer: most processes give none.
    check ??= createCheck(FAULTS)
    check(call as AnsweredCall & { spec: Operation })
  })
}

function createCheck(faultsFile: string): Check {
  const require = createRequire(import.meta.url)
  const { Ajv2020 } = require('ajv/dist/2020.js') as typeof import('ajv/dist/2020.js')
  const { default: addFormats } = require('ajv-formats') as typeof import('ajv-formats')
  const openapi =
    require('../../src/platform/http/openapi.ts') as typeof import('../../src/platform/http/openapi.ts')
  // The shapes are valid schemas (base/shape.test.ts); to check that again in every process would take longer than all else.
  const ajv = new Ajv2020({
    strict: false,
    verbose: true,
    meta: false,
    validateSchema: false,
    addUsedSchema: false,
    // Most run a few times: to optimise the code takes longer.
    code: { optimize: false },
  })
  addFormats.default(ajv)
  const bySchema = new Map<string, ValidateFunction>()
  const compiled = new Map<string, ValidateFunction | string>()
  const told = new Set<string>()
  const named = new Set<string>()

  function tell(fault: string): void {
    if (told.has(fault)) return
    told.add(fault)
    appendFileSync(faultsFile, `${fault}\n`)
  }

  function validator(spec: Operation, status: number, contentType: string): ValidateFunction | string {
    const key = `${spec.id} ${status} ${contentType}`
    const known = compiled.get(key)
    if (known !== undefined) return known
    const made = compile(spec, status, contentType)
    compiled.set(key, made)
    return made
  }

  function compile(spec: Operation, status: number, contentType: string): ValidateFunction | string {
    const { content, schemas } = openapi.describeAnswer(spec, status) ?? {}
    if (schemas === undefined) return 'the status is not declared'
    const declared = content?.[contentType] ?? content?.['*/*']
    if (declared === undefined) {
      return `the content type ${contentType || '(none)'} is not declared, but ${Object.keys(content ?? {})}`
    }
    if (contentType !== 'application/json' || declared === content?.['*/*']) return ''
    // Most errors are alike, whatever they are called.
    const alike = JSON.stringify({ ...declared.schema, description: '' })
    const known = bySchema.get(alike)
    if (known !== undefined) return known
    addNamed(schemas)
    const made = ajv.compile(closed(declared.schema))
    bySchema.set(alike, made)
    return made
  }

  /** A named schema, which no other shares its name with (openapi.ts), is compiled once for all that refer to it. */
  function addNamed(schemas: Readonly<Record<string, JsonSchema>>): void {
    for (const [name, schema] of Object.entries(schemas)) {
      if (named.has(name)) continue
      named.add(name)
      ajv.addSchema(closed(schema), name)
    }
  }

  return ({ spec, status, contentType, body }) => {
    // Made by a test, of whatever it tries.
    if (spec.tag === 'Test') return
    const type = contentType.split(';', 1)[0]?.trim() ?? ''
    const validate = validator(spec, status, type)
    if (typeof validate === 'string') {
      if (validate !== '') tell(`${spec.id} ${status}: ${validate}`)
      return
    }
    const text = Buffer.isBuffer(body) ? body.toString() : JSON.stringify(body)
    if (text === undefined || text.length > CHECKED_BYTES_MAX) return
    if (validate(JSON.parse(text.replaceAll(PREFIXED, '"X-Service-')))) return
    for (const error of validate.errors ?? []) tell(`${spec.id} ${status}: ${sentence(error)}`)
  }
}

function sentence({ instancePath, message, params, data }: ErrorObject): string {
  const value = JSON.stringify(data)?.slice(0, 200)
  return `${instancePath || 'the answer'} ${message} ${JSON.stringify(params)}: ${value}`
}

const NAMED = '#/components/schemas/'

/** The same schema, whose objects have no members but those that they declare. It refers to others by their bare names. */
function closed(schema: JsonSchema): JsonSchema {
  const { $ref } = schema
  const { properties, items, prefixItems, additionalProperties, anyOf } = schema as Partial<
    Record<string, JsonSchema>
  >
  return {
    ...schema,
    ...(typeof $ref === 'string' && { $ref: $ref.replace(NAMED, '') }),
    ...(items && { items: closed(items) }),
    ...(Array.isArray(prefixItems) && { prefixItems: prefixItems.map(closed) }),
    ...(Array.isArray(anyOf) && { anyOf: anyOf.map(closed) }),
    ...(properties && { properties: eachClosed(properties as Record<string, JsonSchema>) }),
    ...((properties || additionalProperties) && {
      additionalProperties: additionalProperties ? closed(additionalProperties) : false,
    }),
  }
}

const eachClosed = (schemas: Readonly<Record<string, JsonSchema>>) =>
  Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, closed(schema)]))
