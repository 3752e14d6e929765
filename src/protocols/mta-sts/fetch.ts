/**
 * Fetches a policy file over HTTPS (RFC 8461 §3.3): the certificate must verify, redirects are not followed, time
 * and size are bounded. The address comes from the given resolver, so that a name that points into a private
 * network cannot reach anything there.
 */
import type { LookupAddress } from 'node:dns'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { isIPv6 } from 'node:net'

interface FetchOptions {
  /** Addresses of a host that may be connected to; rejects or returns none if there are none. */
  addressesOf(host: string): Promise<readonly string[]>
  /** Default 443. */
  port?: number | undefined
  /** Trusted roots; default the runtime's. */
  ca?: string | undefined
  timeoutMs?: number | undefined
}

export type Fetched = { kind: 'text'; text: string } | { kind: 'failed'; why: string }

const TIMEOUT_MS = 20_000 // RFC 8461 §3.3 suggests one minute; mail waits meanwhile
const SIZE_BYTES_MAX = 64 * 1024 // from the same section

/** Never rejects. */
export function fetchPolicy(domain: string, options: FetchOptions): Promise<Fetched> {
  const host = `mta-sts.${domain}`
  return new Promise((resolve) => {
    const fail = (why: string) => resolve({ kind: 'failed', why })
    const outgoing = request(
      {
        host,
        port: options.port ?? 443,
        path: '/.well-known/mta-sts.txt',
        headers: { accept: 'text/plain', 'user-agent': 'Sendwright' },
        signal: AbortSignal.timeout(options.timeoutMs ?? TIMEOUT_MS),
        agent: false,
        ...(options.ca === undefined ? {} : { ca: options.ca }),
        lookup: (_host, lookUp, done) => {
          options.addressesOf(host).then(
            (found) => {
              const all: LookupAddress[] = found.map((address) => ({
                address,
                family: isIPv6(address) ? 6 : 4,
              }))
              const [first] = all
              if (!first) done(new Error(`${host} has no address that may be reached`), '', 4)
              else if (lookUp.all) done(null, all)
              else done(null, first.address, first.family)
            },
            (error) => done(error as Error, '', 4),
          )
        },
      },
      (response) => {
        readText(response).then(resolve, (error) => fail((error as Error).message))
      },
    )
    outgoing.on('error', (error) => fail(error.message))
    outgoing.end()
  })
}

async function readText(response: IncomingMessage): Promise<Fetched> {
  const failed = (why: string): Fetched => {
    response.destroy()
    return { kind: 'failed', why }
  }
  if (response.statusCode !== 200) return failed(`status ${response.statusCode}`)
  const type = response.headers['content-type'] ?? ''
  if (!/^text\/plain\s*(?:;|$)/i.test(type)) return failed(`content type "${type.slice(0, 100)}"`)
  const parts: Buffer[] = []
  let size = 0
  for await (const part of response) {
    size += (part as Buffer).byteLength
    if (size > SIZE_BYTES_MAX) return failed(`over ${SIZE_BYTES_MAX} bytes`)
    parts.push(part as Buffer)
  }
  return { kind: 'text', text: Buffer.concat(parts).toString('utf8') }
}
