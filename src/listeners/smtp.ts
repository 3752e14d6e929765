/** Builds the SMTP ports: submission by clients that log in, reception from the others. */
import type { AccountsArea } from '../accounts/area.ts'
import { createLoginPlaces } from '../accounts/login-places.ts'
import { createFaultLog } from '../base/fault-log.ts'
import { classifyAddress } from '../base/ip.ts'
import type { Core } from '../core.ts'
import { createLoginGuard } from '../inbound/login-guard.ts'
import { type AddressReader, createReception, type MailReader } from '../inbound/reception.ts'
import { type SessionParts, SMTP_LIMITS } from '../inbound/session.ts'
import { type SmtpListener, startSmtpListener } from '../inbound/smtp-listener.ts'
import { createSubmission } from '../inbound/submission.ts'
import { createTlsIdentity } from '../inbound/tls-identity.ts'
import { acceptSubmitted, submittingDomain } from '../messages/acceptance/submitted.ts'
import type { MessagesArea } from '../messages/area.ts'

export interface SmtpUses {
  accounts: AccountsArea
  messages: MessagesArea
  /** Of all areas. */
  readers: readonly AddressReader[]
  mailReader: MailReader | undefined
  /** Whether mail to that host is for this service. */
  isMailHost(host: string): Promise<boolean>
}

export function startSmtp(
  { config, log, clock, store, spool, bodiesIn, limiter }: Core,
  { accounts, messages: { accept }, readers, mailReader, isMailHost }: SmtpUses,
): Promise<SmtpListener> {
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
        attempts: accounts.failedAttempts,
        places: createLoginPlaces(store, clock),
        check: auditedLogins(accounts),
        clock,
      }),
      submission: createSubmission({
        stillValid: accounts.credentials.stillValid,
        sendingDomain: async (login) => (await submittingDomain(accept, login)).name,
        limiter,
        submit: (mail) => acceptSubmitted(accept, mail),
      }),
      reception: createReception({
        readers,
        mailReader,
        isOwnDomain: isMailHost,
        clock,
        unlimited: config.rateLimit === null,
      }),
      largeBodies: bodiesIn,
      blobs: spool,
      clock,
      log,
      faults: createFaultLog(clock),
    },
  })
}

/** Wrong logins are noted in the audit log of the account that the login belongs to. */
function auditedLogins({ credentials, failedSignIns }: AccountsArea): SessionParts['authenticate'] {
  return async (user, password, remoteAddress) => {
    const login = await credentials.authenticate(user, password)
    if (login === null)
      failedSignIns.note({ remoteAddress, way: 'smtp', known: await credentials.known(user) })
    return login
  }
}
