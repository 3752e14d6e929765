/** Certificates of tracking hosts over HTTP (tracking.md K5-K7), and the answers to an authority's challenges. */
import { TOKEN } from '../acme/order.ts'
import type { Clock } from '../base/clock.ts'
import { NotFound } from '../base/errors.ts'
import { type Operation, operation } from '../http/operation.ts'
import { jsonReply, textReply } from '../http/reply.ts'
import type { CertificateStore } from './certificate-store.ts'
import {
  type CertificateParts,
  readCertificate,
  renewCertificate,
  requestCertificate,
} from './certificates.ts'

const PATH = '/v2/x509/{host}'
const READ = { area: 'domains', access: 'read' } as const
const WRITE = { area: 'domains', access: 'write' } as const
const COMMON = { tag: 'Tracking', rateLimit: 'domains', params: [] } as const
const STARTED = {
  202: { description: 'The order runs in the background; the location shows its state' },
  400: { description: 'The CNAME record of the host is not right, or this server issues no certificates' },
  404: { description: 'Not a tracking host of a domain, or without a certificate' },
} as const

export function certificateRoutes(parts: CertificateParts): Operation[] {
  return [
    operation({
      ...COMMON,
      method: 'GET',
      path: `${PATH}/status`,
      id: 'readTrackingCertificate',
      summary: "State of a tracking host's certificate",
      auth: READ,
      responses: { 200: { description: 'State and certificate' }, 404: { description: 'Never requested' } },
      handler: ({ path, caller }) => readCertificate(parts, caller.accountId, path.host),
    }),
    operation({
      ...COMMON,
      method: 'POST',
      path: PATH,
      id: 'requestTrackingCertificate',
      summary: 'Order a certificate for a tracking host',
      auth: WRITE,
      responses: { ...STARTED, 409: { description: 'There is one, or its order is in progress' } },
      async handler({ path, caller }) {
        await requestCertificate(parts, caller.accountId, path.host)
        return started(path.host)
      },
    }),
    operation({
      ...COMMON,
      method: 'PUT',
      path: PATH,
      id: 'renewTrackingCertificate',
      summary: 'Order a new certificate in place of one that has expired',
      auth: WRITE,
      responses: {
        ...STARTED,
        409: { description: 'The certificate is still valid' },
        429: { description: 'An order is in progress' },
      },
      async handler({ path, caller }) {
        await renewCertificate(parts, caller.accountId, path.host)
        return started(path.host)
      },
    }),
    challengeRoute(parts.certificates, parts.clock),
  ]
}

const started = (host: string) =>
  jsonReply(
    { message: 'Initiated x509 key pair generation', location: `/v2/x509/${host}/status` },
    { status: 202 },
  )

/** Under any Host: a published answer proves only that this service made the order (RFC 8555 §8.3). */
function challengeRoute(certificates: CertificateStore, clock: Clock): Operation {
  return operation({
    method: 'GET',
    path: '/.well-known/acme-challenge/{token}',
    id: 'answerAcmeChallenge',
    tag: 'Tracking host',
    summary: 'Answer to the challenge of a certificate authority',
    auth: 'public',
    params: [],
    responses: { 200: { description: 'The key authorization', contentType: 'text/plain' } },
    async handler({ path }) {
      const answer = TOKEN.test(path.token)
        ? await certificates.answerTo(path.token, Math.floor(clock.now()))
        : null
      if (answer === null) throw new NotFound()
      return textReply(answer)
    },
  })
}
