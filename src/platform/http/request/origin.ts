/**
 * Cross-site requests. Browsers attach cookies and remembered Basic credentials to requests that foreign pages make, so a
 * state-changing request from a foreign page is refused whatever its credentials, and session cookies count only under our
 * own host names (DNS rebinding).
 */
import type { IncomingHttpHeaders } from 'node:http'
import { isIP } from 'node:net'

export interface OriginPolicy {
  /** True: a page of another site makes this request and would change state. */
  refuses(method: string, headers: IncomingHttpHeaders): boolean
  /** True: `Host` is a configured or a loopback name. */
  knowsHost(headers: IncomingHttpHeaders): boolean
  /** Headers that let a configured origin read the answer; undefined where none is configured. */
  corsHeaders(headers: IncomingHttpHeaders): Record<string, string> | undefined
  /** The answer to a configured origin's preflight; undefined for other origins. */
  preflightHeaders(headers: IncomingHttpHeaders): Record<string, string> | undefined
}

export interface OriginOptions {
  /** The configured public addresses: API, tracking, storage. */
  baseUrls: readonly string[]
  /** `cors_origins`, such as `https://app.example.com`. */
  corsOrigins: readonly string[]
}

const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS'])

export function createOriginPolicy(options: OriginOptions): OriginPolicy {
  const own = options.baseUrls.map((url) => new URL(url))
  const ownOrigins = new Set(own.map((url) => url.origin))
  const ownNames = new Set(own.map((url) => url.hostname))
  const allowed = new Set(options.corsOrigins)

  const knowsHost = (headers: IncomingHttpHeaders) => {
    const name = hostName(headers.host)
    return name !== undefined && (ownNames.has(name) || isLoopbackName(name))
  }
  /** Pages that we served ourselves, under any of our names. */
  const isOwnPage = (origin: string, headers: IncomingHttpHeaders) =>
    ownOrigins.has(origin) || (knowsHost(headers) && originHost(origin) === headers.host?.toLowerCase())
  const corsHeaders = (headers: IncomingHttpHeaders) => {
    const { origin } = headers
    if (allowed.size === 0) return undefined
    if (origin === undefined || !allowed.has(origin)) return { vary: 'Origin' }
    return { vary: 'Origin', 'access-control-allow-origin': origin }
  }

  return {
    knowsHost,
    corsHeaders,
    refuses(method, headers) {
      if (SAFE_METHODS.has(method)) return false
      const { origin } = headers
      if (origin !== undefined && allowed.has(origin)) return false
      if (headers['sec-fetch-site'] === 'cross-site') return true
      return origin !== undefined && !isOwnPage(origin, headers)
    },
    preflightHeaders(headers) {
      const { origin } = headers
      if (origin === undefined || !allowed.has(origin)) return undefined
      return {
        ...corsHeaders(headers),
        'access-control-allow-methods': 'GET, POST, PUT, PATCH, DELETE, OPTIONS',
        'access-control-allow-headers': 'Content-Type, x-requested-with, Authorization',
        'access-control-max-age': '600',
      }
    },
  }
}

function originHost(origin: string): string | undefined {
  return URL.canParse(origin) ? new URL(origin).host : undefined
}

/** Name part of a Host header in lower case, IPv6 in brackets; undefined if it is none. */
export function hostName(host: string | undefined): string | undefined {
  const match = /^(\[[0-9a-f:.]+\]|[^:/@?#\s]+)(?::\d{1,5})?$/i.exec(host ?? '')
  return match?.[1]?.toLowerCase()
}

/** `localhost` and its sub-domains never leave the machine (RFC 6761 §6.3). */
function isLoopbackName(name: string): boolean {
  if (name === 'localhost' || name.endsWith('.localhost') || name === '[::1]') return true
  return isIP(name) === 4 && name.startsWith('127.')
}
