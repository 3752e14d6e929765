/**
 * Step 2 of a request (dispatch.ts): find the caller by its credentials, check address allowlist and role, and let an
 * account act as its subaccount.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { type MaybePromise, whenKnown } from '../../../base/flow/cache.ts'
import { Forbidden, Unauthenticated } from '../../../base/process/errors.ts'
import type { Exchange } from '../exchange.ts'
import type { FailedAttempts } from '../limits/failed-attempts.ts'
import type { Operation } from '../operation.ts'
import type { OriginPolicy } from '../request/origin.ts'
import type { RemoteAddresses } from '../request/remote-address.ts'
import { type Authenticator, authorize, type Caller, credentialsOf } from './auth.ts'
import type { Requirement } from './rights.ts'

export interface AuthenticationParts {
  authenticator: Authenticator
  failedAttempts: FailedAttempts
  origin: OriginPolicy
  remote: RemoteAddresses
  /** `X-Service-`; headers are written with it. */
  headerPrefix: string
  /** Read as well, never written. */
  headerPrefixAliases: readonly string[]
}

export interface Authentication {
  /** @throws Unauthenticated, Forbidden; TooManyRequests after too many wrong keys */
  authenticate(requirement: Requirement, spec: Operation, exchange: Exchange): Promise<Caller>
  /** For long answers: keys are deleted meanwhile, sessions end. */
  isStillAllowed(spec: Operation, exchange: Exchange): Promise<boolean>
  /** The `<prefix>On-Behalf-Of` id as sent. */
  onBehalfOf(headers: IncomingHttpHeaders): string | undefined
}

export function createAuthentication(parts: AuthenticationParts): Authentication {
  const { authenticator, failedAttempts, origin, remote } = parts
  const keyIdName = `${parts.headerPrefix}Key-Id`.toLowerCase()
  const onBehalfOfNames = [parts.headerPrefix, ...parts.headerPrefixAliases].map((prefix) =>
    `${prefix}On-Behalf-Of`.toLowerCase(),
  )

  /** Null: no credentials, or wrong ones. A wrong key counts as a guess, a session that has ended does not. */
  function callerOf({ headers, arrival }: Exchange, address: string): MaybePromise<Caller | null> {
    const credentials = credentialsOf(headers)
    if (credentials === 'none') return null
    const attempted = (caller: Caller | null) => {
      if (caller === null) failedAttempts.wrongKey(address)
      return caller
    }
    if (credentials === 'wrong') return attempted(null)
    if (credentials.kind === 'session') {
      if (!origin.knowsHost(headers)) throw new Forbidden()
      return authenticator.session(credentials.cookie, true)
    }
    return whenKnown(authenticator.key(credentials.secret, arrival.isLocal), attempted)
  }

  async function actingAs(caller: Caller, subaccountId: string): Promise<Caller> {
    if (caller.kind === 'domain' || caller.kind === 'public') throw new Forbidden()
    const acting = await authenticator.subaccount(caller, subaccountId)
    if (acting === null) throw new Forbidden()
    return acting
  }

  function onBehalfOf(headers: IncomingHttpHeaders): string | undefined {
    for (const name of onBehalfOfNames) if (headers[name]) return String(headers[name])
    return undefined
  }

  return {
    async authenticate(requirement, spec, exchange) {
      const address = remote.address(exchange.arrival)
      const found = callerOf(exchange, address)
      const presented = found instanceof Promise ? await found : found
      if (presented === null) {
        await failedAttempts.delay(address)
        throw new Unauthenticated()
      }
      exchange.setHeader(keyIdName, presented.keyId)
      const allowed = authenticator.addressAllowed(presented, address)
      if ((allowed instanceof Promise ? await allowed : allowed) !== true) {
        throw spec.plainText401 === true ? new Unauthenticated('Forbidden') : new Forbidden()
      }
      authorize(presented, requirement, exchange.path)
      const subaccountId = spec.onBehalfOf === 'argument' ? undefined : onBehalfOf(exchange.headers)
      if (subaccountId === undefined || subaccountId === presented.accountId) return presented
      return actingAs(presented, subaccountId)
    },
    async isStillAllowed({ auth }, { headers, path, arrival }) {
      if (auth === 'public') return true
      const credentials = credentialsOf(headers)
      if (typeof credentials === 'string') return false
      try {
        const caller = await (credentials.kind === 'key'
          ? authenticator.key(credentials.secret, arrival.isLocal)
          : authenticator.session(credentials.cookie, false))
        if (caller === null) return false
        authorize(caller, auth, path)
        return await authenticator.addressAllowed(caller, remote.address(arrival))
      } catch {
        return false
      }
    },
    onBehalfOf,
  }
}
