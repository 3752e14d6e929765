/** Puts the SMTP ports together. */
import type { Credentials } from '../accounts/credentials.ts'
import type { FailedSignIns } from '../accounts/failed-sign-ins.ts'
import { createLoginPlaces } from '../accounts/login-places.ts'
import { createFaultLog } from '../base/fault-log.ts'
import { classifyAddress } from '../base/ip.ts'
import type { FailedAttempts } from '../http/failed-attempts.ts'
import type { RateLimiter } from '../http/rate-limit.ts'
import { type SmtpListener, startSmtpListener } from '../inbound/listener.ts'
import { createLoginGuard } from '../inbound/login-guard.ts'
import { type SessionParts, SMTP_LIMITS } from '../inbound/session.ts'
import { createSubmission } from '../inbound/submission.ts'
import { createTlsIdentity } from '../inbound/tls-identity.ts'
import { acceptSubmitted, submittingDomain } from '../messages/submitted.ts'
import type { Core } from './core.ts'
import { guarded, type Mail } from './mail.ts'

/** The SMTP ports: submission by clients that log in, reception from the others. */
export function startSmtp(
  { config, log, clock, store, space, spool, bodiesIn }: Core,
  { sending, credentials }: Mail,
  limiter: RateLimiter,
  failedAttempts: FailedAttempts,
  reception: SessionParts['reception'],
  failedSignIns: Pick<FailedSignIns, 'note'>,
): Promise<SmtpListener> {
  const accept = {
    ...sending.accept,
    store: guarded(store, space),
    headerPrefixes: [config.headerPrefix, ...config.headerPrefixAliases],
  }
  return startSmtpListener({
    host: config.smtpHost,
    port: config.smtpPort,
    implicitTlsPort: config.smtpsPort,
    connectionsPerAddressMax: config.smtpConnectionsPerIpMax,
    session: {
      hostname: config.hostname,
      limits: {
        ...SMTP_LIMITS,
        messagesMax: config.smtpMessagesPerConnectionMax,
        idleMs: config.smtpIdleMs,
      },
      authWithoutTls: (address) =>
        config.smtpAuthWithoutTls === 'anyone' ||
        (config.smtpAuthWithoutTls === 'loopback' && classifyAddress(address) === 'loopback'),
      secureContext: createTlsIdentity({
        files: config.smtpTls,
        dataFolder: config.dataFolder,
        hostname: config.hostname,
        minVersion: config.smtpTlsMinVersion,
        clock,
        log,
      }),
      ...createLoginGuard({
        attempts: failedAttempts,
        places: createLoginPlaces(store, clock),
        check: auditedLogins(credentials, failedSignIns),
        clock,
      }),
      submission: createSubmission({
        stillValid: credentials.stillValid,
        sendingDomain: async (login) => (await submittingDomain(accept, login)).name,
        limiter,
        submit: (mail) => acceptSubmitted(accept, mail),
      }),
      reception,
      largeBodies: bodiesIn,
      blobs: spool,
      clock,
      log,
      faults: createFaultLog(clock),
    },
  })
}

/** Wrong logins stand in the audit log of whom the login belongs to. */
function auditedLogins(
  credentials: Credentials,
  failedSignIns: Pick<FailedSignIns, 'note'>,
): SessionParts['authenticate'] {
  return async (user, password, remoteAddress) => {
    const login = await credentials.authenticate(user, password)
    if (login === null)
      failedSignIns.note({ remoteAddress, way: 'smtp', known: await credentials.known(user) })
    return login
  }
}
