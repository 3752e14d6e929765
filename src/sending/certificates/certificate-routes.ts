/** Certificates of tracking hosts over HTTP (tracking.md K5-K7), and the answers to an authority's challenges. */

import { NotFound } from '../../base/process/errors.ts'
import { either, media } from '../../base/shape.ts'
import type { Clock } from '../../base/time/clock.ts'
import { jsonReply, textReply } from '../../platform/http/answer/reply.ts'
import { TOO_MANY } from '../../platform/http/openapi.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import { TOKEN } from '../../protocols/acme/order.ts'
import type { CertificateStore } from './certificate-store.ts'
import {
  type CertificateParts,
  readCertificate,
  renewCertificate,
  requestCertificate,
} from './certificates.ts'
import { CONFLICT, ORDERED, RUNNING, TRACKING_CERTIFICATE, UNKNOWN } from './shapes.ts'

const PATH = '/v2/x509/{host}'
const api = operationsOf({ tag: 'Tracking', auth: { area: 'domains' }, rateLimit: 'domains' })
export function certificateRoutes(parts: CertificateParts): Operation[] {
  return [
    api.get(`${PATH}/status`, {
      id: 'readTrackingCertificate',
      summary: "State of a tracking host's certificate",
      answers: { 200: TRACKING_CERTIFICATE, 404: UNKNOWN },
      handler: ({ path, caller }) => readCertificate(parts, caller.accountId, path.host),
    }),
    api.post(PATH, {
      id: 'requestTrackingCertificate',
      summary: 'Order a certificate for a tracking host',
      answers: { 202: ORDERED, 404: UNKNOWN, 409: CONFLICT },
      async handler({ path, caller }) {
        await requestCertificate(parts, caller.accountId, path.host)
        return started(path.host)
      },
    }),
    api.put(PATH, {
      id: 'renewTrackingCertificate',
      summary: 'Order a new certificate in place of one that has expired',
      answers: {
        202: ORDERED,
        404: UNKNOWN,
        409: CONFLICT,
        429: either('An order is in progress, or too many calls', RUNNING, TOO_MANY),
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
  return api.get('/.well-known/acme-challenge/{token}', {
    rateLimit: 'default',
    id: 'answerAcmeChallenge',
    tag: 'Tracking host',
    summary: 'Answer to the challenge of a certificate authority',
    auth: 'public',
    answers: { 200: media('text/plain', 'The key authorization') },
    async handler({ path }) {
      const answer = TOKEN.test(path.token)
        ? await certificates.answerTo(path.token, Math.floor(clock.now()))
        : null
      if (answer === null) throw new NotFound()
      return textReply(answer)
    },
  })
}
