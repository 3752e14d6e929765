/** An SMTP listener on a free port, with the parts that a test does not set. */
import pino from 'pino'
import { createFaultLog } from '../../src/base/process/fault-log.ts'
import { systemClock } from '../../src/base/time/clock.ts'
import { openBlobs } from '../../src/platform/store/blobs/blobs.ts'
import { type SessionParts, SMTP_LIMITS, serveClient } from '../../src/receiving/sessions/session.ts'
import {
  type ListenerOptions,
  SMTP_CONNECTIONS_MAX,
  startSmtpListener,
} from '../../src/receiving/sessions/smtp-listener.ts'
import { createTlsIdentity } from '../../src/receiving/sessions/tls-identity.ts'
import { ownAddress } from './service.ts'

/** `folder`: for the certificate, and for contents unless `blobs` is set. The host is one of 127.0.0.0/8. */
export async function startTestListener(
  folder: string,
  session: Partial<SessionParts>,
  options: Partial<ListenerOptions> = {},
) {
  const { clock = systemClock, log = pino({ level: 'silent' }), hostname = 'smtp.example.com' } = session
  const identity = { files: null, dataFolder: folder, hostname, minVersion: 'TLSv1.2' as const, log }
  const host = ownAddress()
  const parts: SessionParts = {
    hostname,
    limits: { ...SMTP_LIMITS, messagesMax: 1_000, idleMs: 20_000 },
    authWithoutTls: () => true,
    secureContext: createTlsIdentity({ ...identity, clock: systemClock }),
    greeting: null,
    authenticate: async () => null,
    loginFailed: async () => {},
    submission: async () => ({ finish: async () => '250 2.0.0 Submitted' }),
    reception: null,
    blobs: session.blobs ?? (await openBlobs(folder)),
    largeBodies: null,
    clock,
    log,
    faults: createFaultLog(systemClock),
    ...session,
  }
  const listener = await startSmtpListener({
    host,
    port: 0,
    implicitTlsPort: 0,
    connectionsPerAddressMax: 1_000,
    connectionsMax: SMTP_CONNECTIONS_MAX,
    serve: (channel, ...client) => serveClient(channel, parts, ...client),
    clock,
    log,
    ...options,
  })
  return { ...listener, host }
}
