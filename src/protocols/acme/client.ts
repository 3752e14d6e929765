/**
 * The envelope of ACME (RFC 8555 §6): every request is a JWS, signed with the account's P-256 key over its URL and
 * a nonce from the server. Reading a resource is a POST with an empty payload. The server reports errors as problem
 * documents. `order.ts` decides which requests are made, and in which order.
 */
import { createHash, createPublicKey, type KeyObject, sign } from 'node:crypto'
import type { AcmeAnswer, AcmeExchange } from './http.ts'

/** The server refused; `type` without the common prefix, '' if the response is no problem document. */
export class AcmeProblem extends Error {
  readonly type: string
  /** The wait that the server asked for, 0 if none. */
  readonly retryAfterMs: number
  constructor(type: string, text: string, retryAfterMs: number) {
    super(text)
    this.type = type
    this.retryAfterMs = retryAfterMs
  }
}

interface Resource {
  /** The URL of a resource created by this request; otherwise ''. */
  location: string
  /** The JSON object of the body; empty for anything else. */
  fields: Readonly<Record<string, unknown>>
  text: string
}

export type AcmeClient = ReturnType<typeof createAcmeClient>

interface AcmeClientOptions {
  directory: string
  /** P-256. */
  key: KeyObject
  /** Null: not registered yet. */
  accountUrl: string | null
  exchange: AcmeExchange
  signal: AbortSignal
  /** Unix milliseconds, for dates in Retry-After. */
  now(): number
}

const PROBLEM = 'urn:ietf:params:acme:error:'
/** A nonce may have been used up before it arrives; a server that reports this repeatedly is broken. */
const NONCE_ATTEMPTS_MAX = 4
const TEXT_LENGTH_MAX = 500

export function createAcmeClient(options: AcmeClientOptions) {
  const { key, exchange, signal } = options
  const jwk = publicJwk(key)
  let accountUrl = options.accountUrl
  let directory: Readonly<Record<string, unknown>> | null = null
  let nonce: string | null = null

  async function urlOf(target: string | { resource: string }): Promise<string> {
    if (typeof target === 'string') return target
    if (directory === null) {
      const answer = await exchange({ url: options.directory, method: 'GET' }, signal)
      if (answer.status !== 200) throw problemOf(answer, options.now())
      directory = fieldsOf(answer.body)
    }
    return urlIn(directory, target.resource)
  }

  async function freshNonce(): Promise<string> {
    const known = nonce
    nonce = null
    if (known !== null) return known
    const answer = await exchange({ url: await urlOf({ resource: 'newNonce' }), method: 'HEAD' }, signal)
    const fresh = answer.headers.get('replay-nonce')
    if (fresh === null) throw problemOf(answer, options.now())
    return fresh
  }

  /** `kid` null: the request contains the key itself. */
  async function send(url: string, payload: object | undefined, kid: string | null): Promise<AcmeAnswer> {
    for (let attempt = 1; ; attempt++) {
      const header = { alg: 'ES256', nonce: await freshNonce(), url, ...(kid === null ? { jwk } : { kid }) }
      const answer = await exchange({ url, method: 'POST', body: jws(key, header, payload) }, signal)
      nonce = answer.headers.get('replay-nonce')
      if (answer.status < 300) return answer
      const problem = problemOf(answer, options.now())
      if (problem.type !== 'badNonce' || attempt === NONCE_ATTEMPTS_MAX) throw problem
    }
  }

  return {
    /** Registers the account, or finds it by its key, and resolves to its URL (§7.3). @throws AcmeProblem */
    async register(contact: readonly string[]): Promise<string> {
      const payload = { termsOfServiceAgreed: true, ...(contact.length > 0 && { contact }) }
      const answer = await send(await urlOf({ resource: 'newAccount' }), payload, null)
      const url = answer.headers.get('location') ?? ''
      if (!URL.canParse(url)) throw new AcmeProblem('', 'The certificate authority names no account.', 0)
      accountUrl = url
      // An existing account keeps its old contact until it is updated (§7.3.2).
      if (answer.status === 200 && contact.length > 0) await send(url, { contact }, url)
      return url
    },
    /** A signed request; without `payload` it reads (§6.3). `target`: a URL, or a name in the directory. */
    async post(target: string | { resource: string }, payload?: object): Promise<Resource> {
      if (accountUrl === null) throw new Error('An ACME account must be registered before its first request')
      const answer = await send(await urlOf(target), payload, accountUrl)
      const location = answer.headers.get('location') ?? ''
      return { location, fields: fieldsOf(answer.body), text: answer.body }
    },
    /** The response to a challenge: the token and the thumbprint of the account's key (§8.1). */
    keyAuthorization: (token: string) => `${token}.${thumbprint(jwk)}`,
  }
}

/** The URL under that name. @throws AcmeProblem if there is none */
export function urlIn(fields: Readonly<Record<string, unknown>>, name: string): string {
  const url = fields[name]
  if (typeof url === 'string' && /^https?:/.test(url) && URL.canParse(url)) return url
  throw new AcmeProblem('', `The certificate authority's answer has no usable "${name}".`, 0)
}

/** Foreign text in one line, truncated to a readable length. */
export function plainText(text: unknown): string {
  const line = String(text)
    .replaceAll(/[\s\p{Cc}]+/gu, ' ')
    .trim()
  return line.length > TEXT_LENGTH_MAX ? `${line.slice(0, TEXT_LENGTH_MAX)}…` : line
}

interface PublicJwk {
  crv: string
  kty: string
  x: string
  y: string
}

function publicJwk(key: KeyObject): PublicJwk {
  const { crv, kty, x, y } = createPublicKey(key).export({ format: 'jwk' })
  if (crv !== 'P-256' || kty === undefined || x === undefined || y === undefined)
    throw new TypeError('An ACME account needs a P-256 key')
  return { crv, kty, x, y }
}

/** RFC 7638 §3: the members in this order, without blanks. */
function thumbprint({ crv, kty, x, y }: PublicJwk): string {
  return createHash('sha256').update(JSON.stringify({ crv, kty, x, y })).digest('base64url')
}

/** Flattened JSON serialization (RFC 7515 §7.2.2), ES256 (RFC 7518 §3.4); no payload is an empty one. */
function jws(key: KeyObject, header: object, payload: object | undefined): string {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const parts = { protected: encode(header), payload: payload === undefined ? '' : encode(payload) }
  const data = Buffer.from(`${parts.protected}.${parts.payload}`)
  const signature = sign('sha256', data, { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')
  return JSON.stringify({ ...parts, signature })
}

function problemOf({ status, headers, body }: AcmeAnswer, now: number): AcmeProblem {
  const { type, detail } = fieldsOf(body)
  const name = typeof type === 'string' && type.startsWith(PROBLEM) ? type.slice(PROBLEM.length) : ''
  const reason = typeof detail === 'string' && detail !== '' ? plainText(detail) : `status ${status}`
  const text = `The certificate authority refused: ${reason}`
  return new AcmeProblem(name, text, retryAfter(headers.get('retry-after'), now))
}

function fieldsOf(body: string): Record<string, unknown> {
  try {
    const parsed: unknown = JSON.parse(body)
    return typeof parsed === 'object' && parsed !== null ? (parsed as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}

/** Seconds or a date (RFC 9110 §10.2.3), as milliseconds from now. */
function retryAfter(header: string | null, now: number): number {
  if (header === null) return 0
  const ms = /^\d{1,9}$/.test(header) ? Number(header) * 1000 : Date.parse(header) - now
  return ms > 0 ? ms : 0
}
