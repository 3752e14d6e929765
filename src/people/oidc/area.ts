/** Signing in to the dashboard with an OpenID Connect provider (decision 65). */
import type { Area } from '../../area.ts'
import type { Core } from '../../core.ts'
import type { AccountsArea } from '../access/area.ts'
import type { SystemMail } from '../users/mails.ts'
import { createAttempts } from './attempts.ts'
import { createLinking } from './linking.ts'
import { createProviderFetch } from './provider-fetch.ts'
import { CALLBACK_PATH, oidcRoutes } from './routes.ts'
import { createOidcSignIn } from './sign-in.ts'

export async function oidcArea(core: Core, accounts: AccountsArea, sendMail: SystemMail): Promise<Area> {
  const { config, store, sealer, clock, log, httpClient, firstAccountId: accountId } = core
  const { oidc, publicUrl } = config
  const { userDirectory, failedAttempts, sessionOpening, failedSignIns } = accounts
  const attempts = createAttempts(sealer, clock, store.pod)
  const routes = {
    attempts,
    sessionOpening,
    failedSignIns,
    publicUrl,
    passkeyOrigin: accounts.passkeys.origin,
  }
  if (oidc === null) return { operations: oidcRoutes({ ...routes, signIn: null }) }
  const { createProvider } = await import('./provider.ts')
  const { fetch, close } = createProviderFetch({ issuer: oidc.issuer, httpClient, clock })
  const signIn = createOidcSignIn({
    label: oidc.label,
    provider: createProvider({ oidc, redirectUri: `${publicUrl}${CALLBACK_PATH}`, fetch, clock, log }),
    attempts,
    linking: createLinking({ oidc, store, clock, userDirectory, sendMail, publicUrl, accountId }),
    clock,
    isExempt: failedAttempts.isExempt,
  })
  return { operations: oidcRoutes({ ...routes, signIn }), stop: close }
}
