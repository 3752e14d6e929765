/**
 * An operation of the API as one value: path, rights, parameters, answers and the handler. The server makes a route of
 * it, and an entry in the machine description.
 *
 *     operation({
 *       method: 'GET', path: '/v3/{domain_name}/tags', id: 'listTags', tag: 'Tags',
 *       summary: 'List the tags of a domain',
 *       auth: { area: 'events', access: 'read', domain: 'domain_name' }, rateLimit: 'analytics',
 *       params: [{ name: 'limit', type: 'integer', description: 'Page size, 1 to 1000', default: 100 }],
 *       responses: { 200: { description: 'A page of tags', schema: { $ref: '#/components/schemas/TagPage' } } },
 *       handler: async ({ params, path, caller }) => ({ items: [] }),
 *     })
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { Logger } from 'pino'
import type { MaybePromise } from '../base/cache.ts'
import type { AuditRule } from './audit-rule.ts'
import type { Caller } from './auth.ts'
import { type BodyLimit, PUBLIC_BODY_LIMIT } from './body.ts'
import type { IdempotencyRecord } from './idempotency.ts'
import type { Params } from './params.ts'
import type { LimitName } from './rate-limit.ts'
import type { Reply } from './reply.ts'
import type { Requirement } from './rights.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
export type JsonSchema = Readonly<Record<string, unknown>>

/** One documented parameter. */
export interface ParamDoc {
  name: string
  /** Default: `path` for a name in the path, `query` for GET and DELETE, else `form`. The handler reads a
   *  parameter from either. */
  in?: 'path' | 'query' | 'form'
  /** `date`: RFC 2822 or Unix seconds. `json`: JSON as text. `file`: an upload, multipart only. */
  type: 'string' | 'integer' | 'number' | 'boolean' | 'date' | 'json' | 'file'
  description: string
  required?: boolean
  repeated?: boolean
  values?: readonly string[]
  default?: string | number | boolean
  /** A value that most calls would give, though it is not required. */
  example?: string
}

export interface ResponseDoc {
  description: string
  /** Of the JSON body; default any object. */
  schema?: JsonSchema
  /** Default `application/json`. */
  contentType?: string
}

/** The parts in braces: `/v3/{domain}/tags/{tag}` has `domain` and `tag`. */
export type PathNames<P extends string> = P extends `${string}{${infer Name}}${infer Rest}`
  ? Name | PathNames<Rest>
  : never

export interface Context<Name extends string, C, Found = unknown> {
  params: Params
  /** Percent-decoded once; a literal `+` is a plus sign. Never empty. */
  path: Readonly<Record<Name, string>>
  /** Null only where `auth` is `public`. */
  caller: C
  /** What `beforeBody` returned; undefined without one. */
  found: Found
  /** Parameters that the operation does not know, as `unknownNames` returns them. */
  ignored: readonly string[]
  requestId: string
  /** Names the span of the request to its children; undefined: it is not traced. */
  traceparent: string | undefined
  remoteAddress: string
  /** The caller speaks TLS to us or to a trusted proxy: cookies get `Secure`. */
  isSecure: boolean
  method: string
  headers: IncomingHttpHeaders
  /** The `<prefix>On-Behalf-Of` id as sent; applied already unless `onBehalfOf` is `argument`. */
  onBehalfOf: string | undefined
  log: Logger
  /** Aborts when the client leaves or the server closes. */
  signal: AbortSignal
  /** Only in a POST under an Idempotency-Key; for operations with `joinsIdempotency`. */
  idempotency?: IdempotencyRecord
}

interface OperationDoc<P extends string, A extends 'public' | Requirement> {
  method: Method
  /** The path with its parts in braces. */
  path: P
  /** Further paths of the same operation; they have the same parts. */
  aliases?: readonly string[]
  /** operationId of the machine description; unique. */
  id: string
  tag: string
  summary: string
  description?: string
  deprecated?: boolean
  auth: A
  /** `argument`: the handler itself reads `onBehalfOf`; default: the caller becomes that subaccount. */
  onBehalfOf?: 'act' | 'argument'
  /** Pages of other sites may call it: only for public operations that no credentials protect. */
  crossSite?: boolean
  /** A browser opens it by a link with a secret: where all should use https, plain HTTP is redirected, and uses nothing up. */
  opensByLink?: boolean
  /** The 401 of the send operations: text/plain `Forbidden`. */
  plainText401?: boolean
  /** Default `default`. Nothing is counted for `none` and for public operations. */
  rateLimit?: LimitName | 'none'
  params: readonly ParamDoc[]
  /** For operations that take one JSON document. */
  body?: { description: string; schema: JsonSchema }
  multipartOnly?: boolean
  /** The handler commits the answer to a repeated POST with what it creates (`Context.idempotency`). */
  joinsIdempotency?: boolean
  /** Default 4 MiB, and 4 KiB for a public operation, which may not have more. */
  bodyLimit?: BodyLimit
  /**
   * How calls are recorded in the audit log. Default: all but GET and access `read` are recorded, with numbers, switches
   * and the names of other parameters. Required for public operations that change something.
   */
  audit?: AuditRule
  responses: Readonly<Record<number, ResponseDoc>>
}

type CallerOf<A> = A extends 'public' ? null : Caller

export interface Operation extends OperationDoc<string, 'public' | Requirement> {
  /**
   * Checks what needs no body (does the domain exist, may it send) before a large one is read. The handler receives what
   * it returns as `found`.
   */
  beforeBody?(context: {
    path: Readonly<Record<string, string>>
    caller: Caller | null
  }): MaybePromise<unknown>
  /** A plain object is the JSON body of a 200. */
  handler(context: Context<string, Caller | null>): Promise<object>
}

/**
 * Types the handler by path, auth and what `beforeBody` returns.
 * @throws Error if the domain of `auth` or an alias does not fit the path, if a public operation takes large bodies, or if
 *   a public change is not recorded
 */
export function operation<const P extends string, const A extends 'public' | Requirement, Found = undefined>(
  spec: OperationDoc<P, A> & {
    beforeBody?(context: {
      path: Readonly<Record<PathNames<P>, string>>
      caller: CallerOf<A>
    }): MaybePromise<Found>
    handler(context: Context<PathNames<P>, CallerOf<A>, Found>): Promise<object | Reply>
  },
): Operation {
  const names = pathNames(spec.path)
  const { auth } = spec
  if (typeof auth === 'object' && auth.domain !== undefined && !names.includes(auth.domain)) {
    throw new Error(`operation ${spec.id}: "${auth.domain}" is no part of ${spec.path}`)
  }
  const isRecorded = spec.audit !== undefined && ('by' in spec.audit || 'exempt' in spec.audit)
  if (auth === 'public' && spec.method !== 'GET' && !isRecorded) {
    // Without a caller only the operation knows the account of a row.
    throw new Error(`operation ${spec.id}: public, so it must say how it is recorded in the audit log`)
  }
  if (auth === 'public' && (spec.bodyLimit?.bytes ?? 0) > PUBLIC_BODY_LIMIT.bytes) {
    throw new Error(`operation ${spec.id}: a public operation takes at most ${PUBLIC_BODY_LIMIT.bytes} bytes`)
  }
  for (const alias of spec.aliases ?? []) {
    if (pathNames(alias).sort().join() !== [...names].sort().join()) {
      throw new Error(`operation ${spec.id}: alias ${alias} has other parts than ${spec.path}`)
    }
  }
  // The handler's type is narrower: exactly the names of its path, a caller by its auth, and the value of its
  // `beforeBody`. The server ensures all three before the call.
  return spec as unknown as Operation
}

export function pathNames(path: string): string[] {
  return [...path.matchAll(/\{([^}]+)\}/g)].map((match) => match[1] as string)
}

/** Operations that read no upload skip files instead of spooling them. */
export function acceptsFiles(spec: Operation): boolean {
  return spec.params.some((param) => param.type === 'file')
}
