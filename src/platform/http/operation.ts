/**
 * An operation of the API as one value: path, rights, parameters, answers and the handler. The server makes a route of
 * it, and an entry in the machine description.
 *
 *     const api = operationsOf({ tag: 'Tags', auth: { area: 'events', domain: 'domain_name' }, rateLimit: 'analytics' })
 *     api.get('/v3/{domain_name}/tags', {
 *       id: 'listTags', summary: 'List the tags of a domain',
 *       params: { limit: limitParam(100, 1000) },
 *       answers: { 200: TAG_PAGE, 404: 'Domain not found' },
 *       handler: async ({ input, path, caller }) => tags.page(path.domain_name, input().limit),
 *     })
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { Logger } from 'pino'
import type { MaybePromise } from '../../base/flow/cache.ts'
import { nearestName } from '../../base/nearest-name.ts'
import { BadRequest } from '../../base/process/errors.ts'
import type { JsonSchema, Of, Shape } from '../../base/shape.ts'
import { isPlainObject } from '../../base/values.ts'
import type { Reply } from './answer/reply.ts'
import type { ClientLimit } from './limits/client-limit.ts'
import type { IdempotencyRecord } from './limits/idempotency.ts'
import type { LimitName } from './limits/rate-limit.ts'
import { type BodyLimit, PUBLIC_BODY_LIMIT } from './request/body.ts'
import { type InputOf, type Inputs, isRead, type ParamDoc } from './request/inputs.ts'
import type { Params } from './request/params.ts'
import type { Caller } from './rights/auth.ts'
import type { Requirement } from './rights/rights.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
export type { JsonSchema, ParamDoc }

/** The parts in braces: `/v3/{domain}/tags/{tag}` has `domain` and `tag`. */
export type PathNames<P extends string> = P extends `${string}{${infer Name}}${infer Rest}`
  ? Name | PathNames<Rest>
  : never

/**
 * What an operation answers, by status. A text is the description of an error of the form `{ message }`. Where the answer
 * depends on `Accept`, there are several shapes.
 */
export type Answers = Readonly<Record<number, Shape<unknown> | readonly Shape<unknown>[] | string>>

type BodyOf<A> = A extends string ? { message: string } : A extends readonly unknown[] ? Of<A[number]> : Of<A>

/** What a handler may return: the body of a 200, or a reply with the body of any status. */
export type Returned<R> = (200 extends keyof R ? BodyOf<R[200]> : never) | Reply<BodyOf<R[keyof R]>>

export interface Context<Name extends string, C, Found = unknown, I = unknown, B = unknown> {
  params: Params
  /** Reads the declared parameters. @throws BadRequest for the first bad one */
  input(): I
  /** The JSON body, checked against its shape. @throws BadRequest `Missing mandatory parameter: ...` or `Invalid parameter: ...` */
  document(): B
  /** The body of an operation with `bytesOf`; empty without one. */
  readonly bytes: Buffer
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
  /** As `Arrival.isLocal`. */
  isLocal: boolean
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

/** What one call of `operationsOf` may declare for all of its operations. */
interface CommonDoc {
  tag: string
  deprecated?: boolean
  /** Default `default`. Nothing is counted for `none` and for public operations. */
  rateLimit?: LimitName | 'none'
  /** Pages of other sites may call it: only for public operations that no credentials protect. */
  crossSite?: boolean
}

/** What each operation declares itself. */
interface OwnDoc<R = Answers, I = Inputs, B = unknown> {
  /** Further paths of the same operation; they have the same parts. */
  aliases?: readonly string[]
  /** operationId of the machine description; unique. */
  id: string
  summary: string
  description?: string
  /** `argument`: the handler itself reads `onBehalfOf`; default: the caller becomes that subaccount. */
  onBehalfOf?: 'act' | 'argument'
  /** A browser opens it by a link with a secret: where all should use https, plain HTTP is redirected, and uses nothing up. */
  opensByLink?: boolean
  /** The 401 of the send operations: text/plain `Forbidden`. */
  plainText401?: boolean
  /** The key may be a bearer token too (RFC 6750). */
  bearer?: boolean
  /** Default none. */
  params?: I
  /** For operations that take one JSON document. */
  body?: Shape<B>
  multipartOnly?: boolean
  /** Media types of a body that the handler takes as bytes, as they came; any other is refused. */
  bytesOf?: readonly string[]
  /**
   * With `Accept: text/csv` the answer is a CSV file. Only `description` says so: a second content type would give an answer of
   * generated clients two types.
   */
  alsoCsv?: boolean
  /** For public operations: counts a call before anything is looked up or its body is read. */
  clientLimit?: ClientLimit
  /** Bodies that the service later posts to URLs that this registers, by a name that is unique in the description. */
  webhooks?: Readonly<Record<string, Shape<unknown>>>
  /** The handler commits the answer to a repeated POST with what it creates (`Context.idempotency`). */
  joinsIdempotency?: boolean
  /** Default 4 MiB, and 4 KiB for a public operation, which may have more only where `beforeBody` refuses strangers. */
  bodyLimit?: BodyLimit
  /**
   * How calls are recorded in the audit log. Default: all but GET and access `read` are recorded, with numbers, switches
   * and the names of other parameters. Required for public operations that change something.
   */
  audit?: AuditRule
  answers: R
}

interface OperationDoc<
  P extends string,
  A extends 'public' | Requirement,
  R = Answers,
  I = Inputs,
  B = unknown,
> extends CommonDoc,
    OwnDoc<R, I, B> {
  method: Method
  /** The path with its parts in braces. */
  path: P
  auth: A
}

/** What it does, typed by its path, its auth and what `beforeBody` returns. */
interface Handling<P extends string, A, Found, R, I, B> {
  beforeBody?(context: {
    path: Readonly<Record<PathNames<P>, string>>
    caller: CallerOf<A>
  }): MaybePromise<Found>
  handler(context: Context<PathNames<P>, CallerOf<A>, Found, InputOf<I>, B>): Promise<Returned<R>>
}

type CallerOf<A> = A extends 'public' ? null : Caller

export interface Operation extends Omit<OperationDoc<string, 'public' | Requirement>, 'params'> {
  /** What `inputs` declares, for the description. */
  params: readonly ParamDoc[]
  inputs: Inputs
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
 * @throws Error if the domain of `auth`, an alias or an input does not fit the path, if a public operation takes large
 *   bodies from everybody, or if a public change is not recorded
 */
export function operation<
  const P extends string,
  const A extends 'public' | Requirement,
  Found = undefined,
  const R extends Answers = Answers,
  const I extends Inputs = Inputs,
  B = unknown,
>(spec: OperationDoc<P, A, R, I, B> & Handling<P, A, Found, R, I, B>): Operation {
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
  const isLarge = (spec.bodyLimit?.bytes ?? 0) > PUBLIC_BODY_LIMIT.bytes
  if (auth === 'public' && isLarge && spec.beforeBody === undefined) {
    // Anybody could have it read, as often as they like.
    throw new Error(
      `operation ${spec.id}: public, so beforeBody must let more than ${PUBLIC_BODY_LIMIT.bytes} bytes in`,
    )
  }
  for (const alias of spec.aliases ?? []) {
    if (pathNames(alias).sort().join() !== [...names].sort().join()) {
      throw new Error(`operation ${spec.id}: alias ${alias} has other parts than ${spec.path}`)
    }
  }
  // The handler's type is narrower: exactly the names of its path, a caller by its auth, and the value of its
  // `beforeBody`. The server ensures all three before the call.
  const inputs: Inputs = spec.params ?? {}
  for (const [name, input] of Object.entries(inputs)) {
    // It would be read from the query or the body.
    if (names.includes(name) && (input.in ?? 'path') === 'path' && isRead(input)) {
      throw new Error(`operation ${spec.id}: "${name}" is a part of the path, so otherParam describes it`)
    }
  }
  const params = Object.entries(inputs).map(([name, doc]): ParamDoc => ({ ...doc, name }))
  return { ...spec, params, inputs } as unknown as Operation
}

/**
 * `operation` by method for operations that share a tag and whom they are for: GET needs access `read`, the others `write`.
 * An operation may say otherwise of itself.
 */
export function operationsOf<const Auth extends 'public' | Omit<Requirement, 'access'>>({
  auth: common,
  ...doc
}: CommonDoc & { auth: Auth }) {
  const by =
    (method: Method) =>
    <
      const P extends string,
      const A extends 'public' | Requirement = Auth extends 'public' ? 'public' : Requirement,
      Found = undefined,
      const R extends Answers = Answers,
      const I extends Inputs = Inputs,
      B = unknown,
    >(
      path: P,
      own: OwnDoc<R, I, B> & Partial<CommonDoc> & { auth?: A } & Handling<P, A, Found, R, I, B>,
    ): Operation => {
      const access = method === 'GET' ? 'read' : 'write'
      const auth = (common === 'public' ? common : { ...(common as object), access }) as A
      return operation({ ...doc, method, path, auth, ...own })
    }
  return { get: by('GET'), post: by('POST'), put: by('PUT'), patch: by('PATCH'), delete: by('DELETE') }
}

export function pathNames(path: string): string[] {
  return [...path.matchAll(/\{([^}]+)\}/g)].map((match) => match[1] as string)
}

/** Operations that read no upload skip files instead of spooling them. */
export function acceptsFiles(spec: Operation): boolean {
  return spec.params.some((param) => param.type === 'file')
}

/** How an operation says what the audit log keeps of its calls (rights/audit.ts). */
type AuditRule =
  /** Not recorded; the text is the reason. */
  | { exempt: string }
  /** The operation writes its rows itself: with its change in one transaction, or because its caller is known late. */
  | { by: 'operation' }
  | RecordedCall

export interface RecordedCall {
  /** `<thing>.<verb>`; default: of the operation's id, `createDomainKey` being `domain-key.create`. */
  action?: string
  /** Parameters that name what is changed, after the parts of the path. */
  subject?: readonly string[]
  /** Text and JSON parameters whose values are kept. URLs lose user info and query. */
  given?: readonly string[]
  /** Members of the answer that name or count what was made, such as `key.id`. */
  made?: readonly string[]
}

/** Whether a call of the operation is a change, or reads only. */
export function isWriting({ method, auth, audit }: Operation): boolean {
  if (audit !== undefined) return !('exempt' in audit)
  return method !== 'GET' && !(auth !== 'public' && auth.access === 'read')
}

/** How calls of an operation are recorded around its handler; null: not at all, or by the operation itself. */
export function recordedCall(spec: Operation): RecordedCall | null {
  const { audit } = spec
  if (!isWriting(spec) || spec.auth === 'public') return null
  if (audit === undefined) return EVERYTHING_BY_DEFAULT
  return 'by' in audit || 'exempt' in audit ? null : audit
}

const EVERYTHING_BY_DEFAULT: RecordedCall = {}

/**
 * Names of parameters that an operation does not know. A call with such names is carried out without them, and its answer
 * names them; an account may have such calls refused instead (wire-conventions.md rule 8, decision 177). A list of names goes into a header field and into an event of each recipient, and anybody may send 10,000 of them.
 */
const SHOWN_MAX = 10
const SHOWN_LENGTH_MAX = 64
/** In place of the names beyond those. */
const MORE = '...'

interface KnownNames {
  names: ReadonlySet<string>
  /** Beginnings of names that end as the caller likes: `h:<name>` is declared, `h:X-Any` is known. */
  prefixes: readonly string[]
}

const NONE: readonly never[] = []
const KNOWN = new WeakMap<Operation, KnownNames | null>()

/** The unknown names of a call as `shownNames` writes them; none for operations that take a document of any form. */
export function unknownNames(spec: Operation, params: Params): readonly string[] {
  const known = knownNames(spec)
  if (known === null) return NONE
  let unknown: string[] | undefined
  for (const names of [params.names(), params.fileNames()]) {
    for (const name of names) {
      if (isKnown(known, name) || unknown?.includes(name)) continue
      unknown ??= []
      if (unknown.push(name) > SHOWN_MAX) return shownNames(unknown)
    }
  }
  return unknown === undefined ? NONE : shownNames(unknown)
}

/** Whether the operation declares the name. Any name is declared by one that takes a document of any form. */
export function isDeclaredName(spec: Operation, name: string): boolean {
  const known = knownNames(spec)
  return known === null || isKnown(known, name)
}

/** Whether a person has written the name into the description of the operation. */
export function isDescribedName(spec: Operation, name: string): boolean {
  const known = knownNames(spec)
  return known !== null && isKnown(known, name)
}

function knownNames(spec: Operation): KnownNames | null {
  let known = KNOWN.get(spec)
  if (known === undefined) {
    known = declaredNames(spec)
    KNOWN.set(spec, known)
  }
  return known
}

function declaredNames({ params, path, body }: Operation): KnownNames | null {
  const members = body?.schema['properties']
  if (body !== undefined && !isPlainObject(members)) return null
  const declared = [...params.map(({ name }) => name), ...Object.keys(members ?? {}), ...pathNames(path)]
  return {
    names: new Set(declared),
    prefixes: declared.flatMap((name) => /^(.+)<\w+>$/.exec(name)?.[1] ?? []),
  }
}

const isKnown = ({ names, prefixes }: KnownNames, name: string): boolean =>
  names.has(name) || prefixes.some((prefix) => name.length > prefix.length && name.startsWith(prefix))

/**
 * Names of a stranger as they may stand in a header field, an event and a text: at most 10 of at most 64 visible ASCII
 * characters, others and `%`, `,`, `"`, `\` percent-encoded; then `...` if there are more.
 */
export function shownNames(names: readonly string[]): string[] {
  const shown = names.slice(0, SHOWN_MAX).map(shownName)
  return names.length > SHOWN_MAX ? [...shown, MORE] : shown
}

const shownName = (name: string): string =>
  name
    .slice(0, SHOWN_LENGTH_MAX)
    .toWellFormed()
    .replace(/[^!-~]|[%,"\\]/gu, (character) => encodeURIComponent(character))
    .slice(0, SHOWN_LENGTH_MAX)
    .replace(/%.?$/, '')

/** `Unknown parameter: o:trackng (did you mean o:tracking?)`; `unknown` as `unknownNames` returns it. */
export function unknownParameters(spec: Operation, unknown: readonly string[]): BadRequest {
  const known = knownNames(spec)?.names ?? new Set<string>()
  const named = unknown.map((name) => {
    const near = nearestName(name, known)
    return near === null ? name : `${name} (did you mean ${near}?)`
  })
  return new BadRequest(`Unknown parameter${unknown.length === 1 ? '' : 's'}: ${named.join(', ')}`)
}
