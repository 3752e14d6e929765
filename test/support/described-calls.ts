/** Calls of every operation of the OpenAPI description, with plausible parameters. */
import type { DescribedRights } from '../../src/platform/http/rights/auth.ts'
import { type Holdings, RECIPIENT } from './account-holdings.ts'
import type { CallOptions } from './service.ts'

export interface DescribedOperation {
  /** operationId; an alias has that of its operation. */
  id: string
  method: string
  path: string
  rights: DescribedRights | { public: true } | undefined
  query: Field[]
  form: Field[]
  /** How the form is sent. */
  encoding: 'multipart' | 'json'
}

interface Field {
  name: string
  required: boolean
  schema: Schema
}

interface Schema {
  type?: string
  enum?: string[]
  contentMediaType?: string
  items?: Schema
  properties?: Record<string, Schema>
  required?: string[]
}

interface Entry {
  operationId: string
  'x-alias-of'?: string
  parameters: { name: string; in: string; required: boolean; schema: Schema }[]
  requestBody?: { content: Record<string, { schema: Schema }> }
  'x-rights'?: DescribedOperation['rights']
}

export function operationsOf(paths: Record<string, Record<string, Entry>>): DescribedOperation[] {
  const entries = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, entry]) => ({ path, method: method.toUpperCase(), entry })),
  )
  return entries.map(({ path, method, entry }) => {
    const [media = '', body] = Object.entries(entry.requestBody?.content ?? {})[0] ?? []
    const { properties = {}, required = [] } = body?.schema ?? {}
    return {
      id: entry['x-alias-of'] ?? entry.operationId,
      method,
      path,
      rights: entry['x-rights'],
      query: entry.parameters.filter((one) => one.in === 'query'),
      form: Object.entries(properties).map(([name, schema]) => ({
        name,
        schema,
        required: required.includes(name),
      })),
      encoding: media === 'application/json' ? 'json' : 'multipart',
    }
  })
}

/** The name of a path part among the holdings; some mean different things in different paths. */
function holdingOf(name: string, { path }: DescribedOperation): string {
  if (path.includes('/rename/') && name === 'name') return 'old_template'
  if (path.includes('/templates/') && name === 'name') return 'template'
  if (path.includes('/versions/') && name === 'tag') return 'version'
  if (path.includes('/scheduled/') && name === 'message_id') return 'scheduled'
  if (path.includes('/alerts/send/') && name === 'name') return 'alert'
  if (path.includes('/thresholds/limits/')) return 'limit'
  if (path.includes('/aggregates/') && name === 'type') return 'aggregate'
  if (path.includes('/rate-limits/') && name === 'name') return 'rate_limit'
  if (path.includes('/relays/') && name === 'name') return 'relay'
  if (path.includes('/dns-providers/')) return 'dns_provider'
  if (path.includes('/event-sinks/')) return 'event_sink'
  if (path.includes('/dns-changes/') && name === 'id') return 'dns_change'
  if (path.includes('/validate/preview/')) return 'preview'
  if (name !== 'id') return name
  if (path.includes('/alerts/settings/')) return 'setting'
  if (path.includes('/exports/')) return 'export'
  const [place] = ['inbox', 'attempt', 'deliver', 'backup'].filter((word) => path.includes(word))
  return place === 'deliver' ? 'delivery' : (place ?? name)
}

const pathNames = (path: string) => [...path.matchAll(/\{([^}]+)\}/g)].map((match) => match[1] as string)

/** Parameters that name a thing of the account, where they are required or the operation is listed. */
const REFERENCES: Record<string, readonly string[]> = {
  createDomainKey: ['signing_domain'],
  deleteDomainKey: ['signing_domain', 'selector'],
  listDomainKeys: ['signing_domain'],
  renderTemplate: ['domain'],
  checkMessage: ['domain'],
  replayWebhooks: ['domain'],
  listWebhookAttempts: ['domain'],
  listInbox: ['domain'],
  readTagStats: ['tag'],
  readTag: ['tag'],
  updateTag: ['tag'],
  deleteTag: ['tag'],
  readTagAggregate: ['tag'],
  updateAccountTag: ['tag'],
  deleteAccountTag: ['tag'],
  listScheduled: ['domain'],
}

/** They make what their path names, whatever it is called in other accounts. */
const NAMED_BY_CALLER: readonly string[] = [
  'createValidationJob',
  'createValidationPreview',
  'putDnsProvider',
  'putEventSink',
]

/** Whether the call names something that belongs to an account. */
export const isReferring = ({ id, path }: DescribedOperation) =>
  (pathNames(path).length > 0 && !NAMED_BY_CALLER.includes(id)) || REFERENCES[id] !== undefined

/** Whether it names something inside another thing, and the two accounts have different ones. */
export function isNested(operation: DescribedOperation, own: Holdings, foreign: Holdings): boolean {
  const inner = pathNames(operation.path)
    .slice(1)
    .filter((name) => !name.startsWith('new_'))
  const names = inner.map((name) => holdingOf(name, operation))
  return names.some((name) => own[name] !== foreign[name])
}

/** Values of parameters that the description does not suggest, by operation and name; `body`: the whole document. */
export type Given = Record<string, (own: Holdings) => Record<string, string | boolean | object>>

export interface Call {
  method: string
  path: string
  options: CallOptions
}

/** `outer`: the holdings for the first part of the path, default the same. */
export function callOf(
  operation: DescribedOperation,
  holdings: Holdings,
  given: Given,
  outer: Holdings = holdings,
): Call {
  const { method, id, encoding } = operation
  const [first] = pathNames(operation.path)
  const path = operation.path.replaceAll(/\{([^}]+)\}/g, (_, name: string) =>
    encodeURIComponent((name === first ? outer : holdings)[holdingOf(name, operation)] ?? 'x'),
  )
  const special = given[id]?.(holdings) ?? {}
  const valuesOf = (fields: readonly Field[]) =>
    Object.fromEntries(
      fields.flatMap(({ name, required, schema }) => {
        const isNamed = REFERENCES[id]?.includes(name) === true
        const value =
          special[name] ?? (isNamed ? holdings[name] : required ? plausible(name, schema) : undefined)
        return value === undefined ? [] : [[name, value] as const]
      }),
    )
  const query = new URLSearchParams(valuesOf(operation.query) as Record<string, string>)
  const body = valuesOf(operation.form)
  const options: CallOptions =
    special['body'] !== undefined
      ? { json: special['body'] }
      : Object.keys(body).length === 0
        ? {}
        : encoding === 'json'
          ? { json: body }
          : { form: body as NonNullable<CallOptions['form']> }
  return { method, path: query.size === 0 ? path : `${path}?${query}`, options }
}

function plausible(name: string, schema: Schema): string | File {
  const { type, enum: words, contentMediaType, items } = schema
  if (items !== undefined) return plausible(name, items)
  if (contentMediaType === 'application/octet-stream')
    return new File(['address\nx@example.org\n'], 'file.csv')
  if (contentMediaType === 'application/json') return '{}'
  if (words !== undefined) return words[0] as string
  if (type === 'boolean') return 'true'
  if (type === 'integer' || type === 'number') return '1'
  return name === 'address' || name === 'to' ? RECIPIENT : 'text'
}
