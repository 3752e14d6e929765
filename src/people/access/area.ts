/** Accounts: API keys, sessions and sign-in, SMTP credentials, settings, the audit log. */

import type { Area } from '../../area.ts'
import type { Core } from '../../core.ts'
import { createFailedAttempts, type FailedAttempts } from '../../platform/http/limits/failed-attempts.ts'
import type { Authenticator } from '../../platform/http/rights/auth.ts'
import { removeIndexedRows } from '../../platform/store/account-rows.ts'
import { accountFeatureRoutes } from '../accounts/account-features.ts'
import { type AuditLog, createAuditLog } from '../accounts/audit-log.ts'
import { auditRoutes } from '../accounts/audit-routes.ts'
import { createAccountSettings, settingsRoutes } from '../accounts/settings.ts'
import { createUserDirectory, type UserDirectory } from '../accounts/user-directory.ts'
import { createPublicKeys, type Keys, keyRetention, localKey, removeSendingKeys } from '../keys/api-keys.ts'
import { credentialRoutes } from '../keys/credential-routes.ts'
import { type Credentials, createCredentials } from '../keys/credentials.ts'
import { keyRoutes } from '../keys/key-routes.ts'
import { createRequestLog, type RequestLog } from '../keys/request-log.ts'
import { requestRoutes } from '../keys/request-routes.ts'
import { createFailedSignIns, type FailedSignIns } from '../sign-in/failed-sign-ins.ts'
import { createLoginPlaces } from '../sign-in/login-places.ts'
import { createChallenges } from '../sign-in/passkeys/challenges.ts'
import { createPasskeys, type Passkeys } from '../sign-in/passkeys/passkeys.ts'
import {
  createPasswordGuard,
  createPasswordSignIn,
  type PasswordSignIn,
} from '../sign-in/password-sign-in.ts'
import { createSecondFactor, type SecondFactor } from '../sign-in/second-factor.ts'
import { createSessionOpening, type SessionOpening } from '../sign-in/session-opening.ts'
import { createSessions, type Sessions } from '../sign-in/sessions.ts'
import {
  type AllowedCallers,
  auditedAttempts,
  createAllowedCallers,
  createAuthenticator,
} from './authenticator.ts'
import { callerAddressRoutes } from './caller-address-routes.ts'
import { createCallerAddressStore } from './caller-address-store.ts'
import { accountRoutes } from './routes.ts'

export interface AccountsArea extends Area {
  sessions: Sessions
  sessionOpening: SessionOpening
  userDirectory: UserDirectory
  secondFactor: SecondFactor
  passkeys: Passkeys
  passwordSignIn: PasswordSignIn
  credentials: Credentials
  audit: AuditLog
  requestLog: RequestLog
  allowedCallers: AllowedCallers
  failedSignIns: FailedSignIns
  /** Failed logins by SMTP and sign-ins with a password. */
  failedAttempts: FailedAttempts
  /** The same, for HTTP: each is noted in the audit log as well. */
  failedCalls: FailedAttempts
  authenticator: Authenticator
}

/** `isExempt`: addresses whose failed logins and wrong keys do not count. Default: loopback. */
export function accountsArea(
  core: Core,
  keys: Keys,
  isExempt: ((address: string) => boolean) | undefined,
): AccountsArea {
  const { config, store, sealer, clock, log, accounts, domains, firstAccountId } = core
  const sessions = createSessions(store, sealer, clock)
  const credentials = createCredentials(store, sealer, clock)
  const audit = createAuditLog({
    store,
    clock,
    log,
    retentionDays: config.auditRetentionDays,
    bytesMax: config.auditRetentionBytes,
  })
  const requestLog = createRequestLog(store, clock, config.requestLogDays)
  const failedSignIns = createFailedSignIns({ store, clock, log, firstAccountId })
  const failedAttempts = createFailedAttempts(clock, isExempt)
  const sessionOpening = createSessionOpening(sessions, audit)
  const userDirectory = createUserDirectory(store)
  const secondFactor = createSecondFactor(store, sealer, clock)
  const guard = createPasswordGuard(failedAttempts, createLoginPlaces(store, clock, 'user_places'))
  const passkeys = createPasskeys({
    ...{ store, clock, secondFactor, userDirectory, publicUrl: config.publicUrl },
    challenges: createChallenges(sealer, clock),
  })
  const passwordSignIn = createPasswordSignIn({
    ...{ store, clock, userDirectory, secondFactor, passkeys, guard, failedAttempts, failedSignIns },
  })
  const removeKeys = removeSendingKeys(store)
  const publicKeys = createPublicKeys(store, sealer, clock)
  const callerAddresses = createCallerAddressStore(store)
  const allowedCallers = createAllowedCallers(callerAddresses, accounts, clock, store.changes)
  const settings = createAccountSettings(core)
  return {
    sessions,
    sessionOpening,
    userDirectory,
    secondFactor,
    passkeys,
    passwordSignIn,
    credentials,
    audit,
    requestLog,
    allowedCallers,
    failedSignIns,
    failedAttempts,
    failedCalls: auditedAttempts(failedAttempts, failedSignIns),
    authenticator: createAuthenticator({
      ...{ accounts, keys, publicKeys, sessions, allowedCallers, firstAccountId },
      local: localKey(sealer),
    }),
    operations: [
      ...accountRoutes({
        keys,
        sessions,
        sessionOpening,
        passkeys,
        passwordSignIn,
        userDirectory,
        settings,
        allowedCallers,
        failedAttempts,
        audit,
        failedSignIns,
        publicUrl: config.publicUrl,
        accounts,
        firstAccountId,
      }),
      ...keyRoutes({
        ...{ keys, publicKeys, userDirectory, clock, pod: store.pod },
        ownsDomain: async (accountId, name) => (await domains.byName(name))?.accountId === accountId,
      }),
      ...requestRoutes({ requestLog, keys, baseUrl: config.publicUrl, headerPrefix: config.headerPrefix }),
      ...settingsRoutes(settings),
      ...accountFeatureRoutes(store, accounts),
      ...callerAddressRoutes({ stored: callerAddresses, allowed: allowedCallers, accounts, clock }),
      ...credentialRoutes(credentials, domains),
      ...auditRoutes(store, config.publicUrl),
    ],
    jobs: [audit.retention, keyRetention(store, clock), ...requestLog.jobs],
    async domainDeleted(domain) {
      await removeKeys(domain)
      await credentials.forgetDomain(domain)
    },
    async accountDeleted(accountId, signal) {
      await removeIndexedRows(
        core,
        'idempotency_keys',
        ['account_id', 'key'],
        'account_id',
        accountId,
        signal,
      )
      for (const table of ['sessions', 'login_links'] as const)
        await removeIndexedRows(core, table, ['digest'], 'account_id', accountId, signal)
      await removeIndexedRows(core, 'api_keys', ['id'], 'account_id', accountId, signal)
      await requestLog.write()
      for (const column of ['account_id', 'acted_for'] as const)
        await removeIndexedRows(core, 'key_requests', ['id'], column, accountId, signal)
      for (const table of ['account_settings', 'public_keys', 'caller_addresses'] as const)
        await store.db.deleteFrom(table).where('account_id', '=', accountId).execute()
    },
    async stop() {
      await failedSignIns.close()
      // What was noted since the last write; without a database it is lost.
      await requestLog.write().catch(() => {})
    },
  }
}
