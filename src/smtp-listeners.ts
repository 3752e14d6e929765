/** Builds the SMTP ports: submission by clients that log in, reception from the others. */

import { createFaultLog } from './base/process/fault-log.ts'
import type { Core } from './core.ts'
import { SCHEDULE_MAX_MS, scheduleMaxMs } from './mail/accept/decide.ts'
import { acceptSubmitted, submittingDomain } from './mail/accept/submitted.ts'
import type { MessagesArea } from './mail/messages/area.ts'
import type { AccountsArea } from './people/access/area.ts'
import { isClosed, maySend } from './people/accounts/account-directory.ts'
import { createLoginPlaces } from './people/sign-in/login-places.ts'
import { createLoginGuard } from './receiving/sessions/login-guard.ts'
import { type AddressReader, createReception, type MailReader } from './receiving/sessions/reception.ts'
import { Refusal } from './receiving/sessions/replies.ts'
import { type SessionParts, serveClient } from './receiving/sessions/session.ts'
import { sessionSettings } from './receiving/sessions/session-settings.ts'
import {
  SMTP_CONNECTIONS_MAX,
  type SmtpListener,
  startSmtpListener,
} from './receiving/sessions/smtp-listener.ts'
import { createSubmission } from './receiving/sessions/submission.ts'
import { createTlsIdentity } from './receiving/sessions/tls-identity.ts'
import type { CertificatesArea } from './sending/certificates/area.ts'

interface SmtpUses {
  accounts: AccountsArea
  certificates: Pick<CertificatesArea, 'mailContexts'>
  messages: MessagesArea
  /** Readers of all areas. */
  readers: readonly AddressReader[]
  mailReader: MailReader | undefined
  /** Whether mail to that host is for this service. */
  isMailHost(host: string): Promise<boolean>
  /** The account whose domain mail to that host is for; null: none. */
  accountOfMailHost(host: string): Promise<string | null>
}

export function startSmtp(core: Core, uses: SmtpUses): Promise<SmtpListener> {
  const { config, log, clock, store, spool, bodiesIn, limiter } = core
  const { accounts, certificates, readers, mailReader, isMailHost, accountOfMailHost } = uses
  const { accept } = uses.messages
  const session: SessionParts = {
    ...sessionSettings(config, SCHEDULE_MAX_MS),
    secureContext: certificates.mailContexts(
      { minVersion: config.smtpTlsMinVersion },
      createTlsIdentity({
        files: config.smtpTls,
        dataFolder: config.dataFolder,
        hostname: config.hostname,
        minVersion: config.smtpTlsMinVersion,
        clock,
        log,
      }),
    ),
    ...createLoginGuard({
      attempts: accounts.failedAttempts,
      places: createLoginPlaces(store, clock),
      check: checkedLogins(core, accounts),
      clock,
    }),
    submission: createSubmission({
      stillValid: async (login, address) =>
        (await accounts.allowedCallers.allows(login.accountId, address)) &&
        (await accounts.credentials.stillValid(login)),
      async sendingDomain(login) {
        const domain = await submittingDomain(accept, login)
        return { name: domain.name, scheduleMaxMs: scheduleMaxMs(domain) }
      },
      limiter,
      clock,
      submit: (mail) => acceptSubmitted(accept, mail),
    }),
    greeting: null,
    reception: createReception({
      readers,
      mailReader,
      isOwnDomain: isMailHost,
      async isSuspended(domain) {
        const id = await accountOfMailHost(domain)
        const account = id === null ? null : await core.accounts.byId(id)
        return account !== null && account.status !== 'open'
      },
      clock,
      unlimited: config.rateLimit === null,
    }),
    largeBodies: bodiesIn,
    blobs: spool,
    clock,
    log,
    faults: createFaultLog(clock),
  }
  return startSmtpListener({
    host: config.smtpHost,
    port: config.smtpPort,
    implicitTlsPort: config.smtpsPort,
    connectionsPerAddressMax: config.smtpConnectionsPerIpMax,
    connectionsMax: SMTP_CONNECTIONS_MAX,
    balancers: config.smtpBalancers,
    serve: (channel, ...client) => serveClient(channel, session, ...client),
    clock,
    log,
  })
}

/**
 * Wrong logins are noted in the audit log of the account that the login belongs to. A right one from an address that the
 * account does not allow counts as wrong: nobody there must find out passwords. Right ones of an account that may not send
 * are refused without counting as guesses.
 */
function checkedLogins(
  { accounts }: Core,
  { credentials, allowedCallers, failedSignIns }: AccountsArea,
): SessionParts['authenticate'] {
  return async (user, password, remoteAddress) => {
    const found = await credentials.authenticate(user, password)
    const login =
      found !== null && (await allowedCallers.allows(found.accountId, remoteAddress)) ? found : null
    const account = login === null ? null : await accounts.byId(login.accountId)
    if (login === null || isClosed(account)) {
      failedSignIns.note({ remoteAddress, way: 'smtp', known: await credentials.known(user) })
      return null
    }
    if (!maySend(account)) throw new Refusal('535 5.7.8 The subaccount is disabled')
    return login
  }
}
