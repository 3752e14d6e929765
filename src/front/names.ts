/** What a request says of the pod that it is for, the strongest name first. Pure. */
import type { IncomingHttpHeaders } from 'node:http'
import { bytesToId } from '../base/ids.ts'
import { splitPlainForm } from '../platform/http/listening/direct-arrival.ts'
import { hostName } from '../platform/http/request/origin.ts'
import { asBasic, basicSecret, cookieValue, SESSION_COOKIE } from '../platform/http/rights/auth.ts'
import { podNamedBy } from '../platform/store/pods/pod.ts'
import type { Name } from './directory.ts'

/** A secret as its holder is found by it (people/keys/api-keys.ts). */
export type KeyDigest = (secret: string) => string

/** The account in the token of an unsubscribe link (sending/tracking/links/tokens.ts). */
export type LinkedAccount = (token: string) => string | undefined

interface Head {
  method: string
  url: string
  headers: IncomingHttpHeaders
}

/** Paths of calls without credentials, which name someone in their body. */
const NAMING = new Set([
  ...['/sendwright/v1/session', '/sendwright/v1/password-resets'],
  ...['/sendwright/v1/password-resets/redeem', '/sendwright/v1/invitations/accept'],
])
/** `/v3/{domain}/messages`, `/v4/domains/{domain}`, `/tls-reports/{domain}` and so on. */
const IN_PATH =
  /^\/(?:v[1-5]\/(?:domains\/)?|sendwright\/v1\/(?:domains|tls-reports)\/)([^/]+\.[^/]+)(?:\/|$)/

/**
 * What may begin with the name of a pod (`withPod`): a token or id in the path of a link, the signature of one, and the
 * state that comes back from a provider of sign-ins (RFC 6749 §4.1.2).
 */
const TOKEN = /(?:\/|[?&](?:sig|state)=)([a-z][a-z0-9_]{0,39}\.)([\w-]{16,})(?=[/?&#]|$)/
/** Tokens of opens and clicks have an id after their first byte. */
const ID_AT = 1
const ID_END = 17
/** Links to lists and shared tests have nothing but an id. */
const LINK_ID_LENGTH_MAX = 32

/** Whether the body has to be read to find the pod. */
export const namesInBody = ({ method, url, headers }: Head): boolean =>
  method === 'POST' && headers.authorization === undefined && NAMING.has(pathOf(url))

export function namesInHead(
  { url, headers }: Head,
  digest: KeyDigest,
  linkedAccount: LinkedAccount = () => undefined,
): Name[] {
  const names: Name[] = []
  const { authorization } = headers
  const secret = authorization === undefined ? undefined : basicSecret(asBasic(authorization))
  if (secret !== undefined) names.push({ kind: 'key', value: digest(secret) })
  // A header of credentials hides the cookie, as for nodes.
  if (authorization === undefined) names.push(...namedPod(cookieValue(headers, SESSION_COOKIE)))
  const domain = IN_PATH.exec(pathOf(url))?.[1]
  if (domain !== undefined) names.push({ kind: 'domain', value: decoded(domain).toLowerCase() })
  const [, pod, token] = TOKEN.exec(url) ?? []
  if (token !== undefined) names.push(...namesInLink(token, linkedAccount), ...namedPod(pod))
  const host = hostName(headers.host)
  if (host !== undefined) names.push({ kind: 'host', value: host }, { kind: 'domain', value: host })
  return names
}

/** Names in a body with `email`, `key` or the `token` of a link, as JSON or a form. */
export function namesIn(body: Buffer, contentType: string, digest: KeyDigest): Name[] {
  const { email, key, token } = fieldsOf(body, contentType)
  if (typeof token === 'string') return namedPod(token)
  if (typeof email === 'string') return [{ kind: 'user', value: email.trim().toLowerCase() }]
  return typeof key === 'string' ? [{ kind: 'key', value: digest(key) }] : []
}

/** Whose link it is may have moved from the pod that it names. Nothing is verified: nodes do that. */
function namesInLink(token: string, linkedAccount: LinkedAccount): Name[] {
  const account = linkedAccount(token)
  if (account !== undefined) return [{ kind: 'account', value: account }]
  const bytes = Buffer.from(token, 'base64url')
  const id = bytes.length >= ID_END ? bytesToId(bytes.subarray(ID_AT, ID_END)) : null
  return [
    ...(id === null ? [] : [{ kind: 'link', value: id } as const]),
    ...(token.length <= LINK_ID_LENGTH_MAX ? [{ kind: 'link', value: token } as const] : []),
  ]
}

function namedPod(text: string | undefined): Name[] {
  const pod = text === undefined ? null : podNamedBy(text)
  return pod === null ? [] : [{ kind: 'pod', value: pod }]
}

/** Names that the address of RCPT TO stands for. */
export function namesOfAddress(address: string): Name[] {
  const domain = address.slice(address.lastIndexOf('@') + 1).toLowerCase()
  return [
    { kind: 'domain', value: domain },
    { kind: 'host', value: domain },
  ]
}

function fieldsOf(body: Buffer, contentType: string): Record<string, unknown> {
  if (/^application\/x-www-form-urlencoded/i.test(contentType))
    return Object.fromEntries(new URLSearchParams(body.toString()))
  if (/^multipart\//i.test(contentType)) return Object.fromEntries(splitPlainForm(body, contentType) ?? [])
  try {
    const value: unknown = JSON.parse(body.toString())
    return typeof value === 'object' && value !== null ? { ...value } : {}
  } catch {
    return {}
  }
}

/** Also of a target in absolute form (RFC 9112 §3.2.2). */
const pathOf = (url: string): string => url.replace(/^https?:\/\/[^/?]*/i, '').replace(/\?.*$/s, '')

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
