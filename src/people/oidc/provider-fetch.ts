/**
 * The requests to the provider, bounded in time and bytes by the service's HTTP client. Addresses of the issuer's own host
 * may be private: the operator named it. Other hosts come from the provider's metadata and must be public, or in
 * the networks that the operator allows.
 */
import { lookup } from 'node:dns/promises'
import type { CustomFetch } from 'openid-client'
import { type Cidr, parseCidr } from '../../base/net/ip.ts'
import type { Clock } from '../../base/time/clock.ts'
import { createHttpClient, type HttpClient, RESPONSE_MAX_BYTES } from '../../platform/posts/http-client.ts'

/** No usable response. The message is for the log. */
export class ProviderUnreachable extends Error {}

export interface ProviderFetch {
  fetch: CustomFetch
  close(): void
}

const EVERYWHERE = ['0.0.0.0/0', '::/0'].map((text) => parseCidr(text) as Cidr)

export function createProviderFetch(parts: {
  issuer: string
  httpClient: HttpClient
  clock: Clock
}): ProviderFetch {
  const { host: ownHost } = new URL(parts.issuer)
  const ownClient = createHttpClient({
    // The system's lookup: the name may be in /etc/hosts, or known to the container's network only.
    resolve: async (host) => (await lookup(host, { all: true })).map(({ address }) => address),
    allow: EVERYWHERE,
    clock: parts.clock,
    requestsMax: 50,
  })
  return {
    async fetch(url, { method, headers, body }) {
      const { host } = new URL(url)
      const client = host === ownHost ? ownClient : parts.httpClient
      const outcome = await client.send({
        url,
        method: method === 'POST' ? 'POST' : 'GET',
        headers,
        ...(body != null && { body: Buffer.from(String(body)) }),
      })
      if (outcome.kind !== 'answered') throw new ProviderUnreachable(`${host}: ${outcome.why}`)
      const { status, contentType } = outcome
      if (outcome.body.byteLength >= RESPONSE_MAX_BYTES)
        throw new ProviderUnreachable(`${host}: response of more than ${RESPONSE_MAX_BYTES} bytes`)
      // Redirects are not followed. Other responses are judged by the library.
      if (status < 200 || status >= 500) throw new ProviderUnreachable(`${host}: status ${status}`)
      const hasBody = status !== 204 && status !== 205 && status !== 304
      return new Response(hasBody ? new Uint8Array(outcome.body) : null, {
        status,
        headers: { 'content-type': contentType },
      })
    },
    close: () => ownClient.close(),
  }
}
