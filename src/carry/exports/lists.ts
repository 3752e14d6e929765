/**
 * The lists that can be exported, and how they are read: by their own operations, as a client of the API would, with the
 * role of whoever asked for the export (exports.md section 2).
 */
import type { Logger } from 'pino'
import { isPlainObject } from '../../base/values.ts'
import { Reply } from '../../platform/http/answer/reply.ts'
import type { Context, JsonSchema, Operation } from '../../platform/http/operation.ts'
import { readInputs } from '../../platform/http/request/inputs.ts'
import { Fields, Params, parseUrlencoded, readDocument } from '../../platform/http/request/params.ts'
import { authorize, type Caller } from '../../platform/http/rights/auth.ts'
import type { Requirement } from '../../platform/http/rights/rights.ts'
import { PathTable } from '../../platform/http/router.ts'
import { readChunk } from '../../protocols/message/mime-message.ts'

/** `link`: `paging.next` leads on; `skip`: the parameter `skip` does; `file`: the operation itself writes CSV. */
interface Listing {
  pages: 'link' | 'skip' | 'file'
  /** Largest page. */
  limit: number
}

/** By id of operation. Each reads without side effects, and its pages are bounded. */
const LISTINGS: Readonly<Record<string, Listing>> = {
  listDomains: { pages: 'skip', limit: 1000 },
  listBounces: { pages: 'link', limit: 1000 },
  listComplaints: { pages: 'link', limit: 1000 },
  listUnsubscribes: { pages: 'link', limit: 1000 },
  listWhitelists: { pages: 'link', limit: 1000 },
  listTemplates: { pages: 'link', limit: 100 },
  listAccountTemplates: { pages: 'link', limit: 100 },
  listLists: { pages: 'skip', limit: 100 },
  pageLists: { pages: 'link', limit: 100 },
  listMembers: { pages: 'skip', limit: 100 },
  pageMembers: { pages: 'link', limit: 100 },
  listRoutes: { pages: 'skip', limit: 1000 },
  listSubaccounts: { pages: 'skip', limit: 1000 },
  listTags: { pages: 'link', limit: 1000 },
  listEvents: { pages: 'link', limit: 300 },
  listEventsPage: { pages: 'link', limit: 300 },
  listLogs: { pages: 'file', limit: 0 },
  readMetrics: { pages: 'file', limit: 0 },
}

export interface Source {
  spec: Operation & { auth: Requirement }
  listing: Listing
  path: Readonly<Record<string, string>>
  /** Path and query of the page. */
  url: string
}

/** @param operations all of the service; read at the first use */
export function createSources(operations: () => readonly Operation[]) {
  let table: PathTable<Operation> | undefined
  const tableOf = () => {
    const made = new PathTable<Operation>()
    // Whom else an operation is for is checked by the dispatch, which is not on this way.
    for (const spec of operations())
      if (LISTINGS[spec.id] !== undefined && spec.auth !== 'public' && spec.auth.only !== 'first')
        for (const path of [spec.path, ...(spec.aliases ?? [])]) made.add(spec.method, path, spec)
    return made
  }
  /** Null: nothing that can be exported. @throws BadRequest for broken escapes */
  return (method: 'GET' | 'POST', url: string): Source | null => {
    table ??= tableOf()
    const found = table.find(method, url.split('?', 1)[0] as string)
    if (found === null) return null
    const { value: spec, path } = found
    return { spec: spec as Source['spec'], listing: LISTINGS[spec.id] as Listing, path, url }
  }
}

interface CallParts {
  caller: Caller
  /** The body of a query by POST; undefined: it is a GET. */
  document: unknown
  log: Logger
  signal: AbortSignal
}

/** Checks right and parameters, and reads nothing. @throws what the operation's own checks throw */
export async function checkCall(source: Source, parts: CallParts): Promise<void> {
  await contextOf(source, parts)
}

/** @throws as the operation */
export async function readPage(source: Source, parts: CallParts): Promise<Page | AsyncIterable<Uint8Array>> {
  const result = await source.spec.handler(await contextOf(source, parts))
  if (!(result instanceof Reply)) return pageOf(source, result)
  const { content } = result
  if (content.kind === 'stream') return content.source
  if (content.kind === 'json') return pageOf(source, content.body)
  if (content.kind !== 'bytes') throw new TypeError(`${source.spec.id} returns no list`)
  return pageOf(source, JSON.parse((await readChunk(content.chunk)).toString()))
}

async function contextOf(source: Source, parts: CallParts): Promise<Context<string, Caller>> {
  const { spec, path, listing } = source
  const { caller, document, log, signal } = parts
  authorize(caller, spec.auth, path)
  const query = queryOf(source.url)
  if (listing.pages !== 'file') query.set('limit', String(listing.limit))
  const params = new Params({ query: parseUrlencoded(String(query)), body: new Fields(), document })
  const input = () => readInputs(spec.inputs, params)
  input()
  return {
    ...{ params, path, caller, input, log, signal, ignored: [], requestId: '', traceparent: undefined },
    document: () => readDocument(spec.body as NonNullable<Operation['body']>, params.json()),
    found: await spec.beforeBody?.({ path, caller }),
    ...{
      remoteAddress: '',
      isSecure: true,
      isLocal: false,
      method: spec.method,
      onBehalfOf: undefined,
      bytes: Buffer.alloc(0),
    },
    headers: listing.pages === 'file' ? { accept: 'text/csv' } : {},
  }
}

export interface Page {
  items: readonly unknown[]
  /** Path and query of the next page; null: there is none. */
  next: string | null
}

function pageOf({ listing, url }: Source, body: unknown): Page {
  const { items, paging, subaccounts } = (isPlainObject(body) ? body : {}) as Record<string, unknown>
  const found = [items ?? subaccounts ?? []].flat()
  if (listing.pages === 'link') {
    const next = isPlainObject(paging) ? String(paging['next'] ?? '') : ''
    return { items: found, next: found.length === 0 || next === '' ? null : localUrl(next) }
  }
  if (found.length < listing.limit) return { items: found, next: null }
  const query = queryOf(url)
  query.set('skip', String(Number(query.get('skip') ?? 0) + found.length))
  return { items: found, next: `${url.split('?', 1)[0]}?${query}` }
}

const queryOf = (url: string) => new URLSearchParams(url.split('?').slice(1).join('?'))

function localUrl(url: string): string {
  const { pathname, search } = new URL(url, 'http://localhost')
  return `${pathname}${search}`
}

/** A column: the members that lead to its values. */
export type Column = readonly string[]

/** Deeper members are one column of JSON. */
const DEPTH_MAX = 3

/** The columns of a list, by the shape that its operation declares. */
export function columnsOf({ spec }: Source): readonly Column[] {
  const answer = [spec.answers[200]].flat()[0]
  if (typeof answer !== 'object') return []
  const { schema, parts } = answer
  const resolved = (of: unknown): JsonSchema => {
    const { $ref } = of as JsonSchema
    return typeof $ref === 'string'
      ? resolved(parts[$ref.slice($ref.lastIndexOf('/') + 1)])
      : (of as JsonSchema)
  }
  const membersOf = (of: unknown) => (resolved(of)['properties'] ?? {}) as Record<string, JsonSchema>
  const { items, subaccounts } = membersOf(schema)
  const columns = new Map<string, Column>()
  const add = (of: unknown, place: Column) => {
    const shape = resolved(of)
    for (const variant of (shape['anyOf'] ?? []) as unknown[])
      if (isRecord(resolved(variant))) add(variant, place)
    for (const [name, member] of Object.entries(membersOf(shape))) {
      const at = [...place, name]
      const inner = resolved(member)
      if (at.length < DEPTH_MAX && isRecord(inner)) add(inner, at)
      else columns.set(at.join('.'), at)
    }
  }
  add(resolved(items ?? subaccounts ?? {})['items'] ?? {}, [])
  return [...columns.values()]
}

const isRecord = ({ properties, anyOf }: JsonSchema) => properties !== undefined || anyOf !== undefined

export function fieldOf(item: unknown, column: Column): string | number | boolean | null {
  const value = column.reduce<unknown>((of, name) => (isPlainObject(of) ? of[name] : undefined), item)
  if (value === undefined || value === null) return null
  return typeof value === 'object' ? JSON.stringify(value) : (value as string | number | boolean)
}
