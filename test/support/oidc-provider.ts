/** A real OpenID Connect provider on a loopback address: whoever types a login is that person. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import Provider from 'oidc-provider'
import { ownAddress } from './service.ts'

export const CLIENT_ID = 'sendwright'
export const CLIENT_SECRET = 'client-secret-of-the-test'

export interface OidcProvider {
  issuer: string
  /** The provider answers from now on. `redirectUri`: of the service. */
  open(redirectUri: string): void
  /** Further claims of a person, by login; default: a verified address that is the login. */
  claims: Map<string, Record<string, unknown>>
  close(): Promise<void>
}

export async function createOidcProvider(): Promise<OidcProvider> {
  const host = ownAddress()
  const server = createServer()
  server.listen(0, host)
  await once(server, 'listening')
  const issuer = `http://${host}:${(server.address() as AddressInfo).port}`
  const claims = new Map<string, Record<string, unknown>>()
  return {
    issuer,
    claims,
    open(redirectUri) {
      const provider = new Provider(issuer, {
        clients: [
          {
            client_id: CLIENT_ID,
            client_secret: CLIENT_SECRET,
            redirect_uris: [redirectUri],
            grant_types: ['authorization_code'],
            response_types: ['code'],
          },
        ],
        claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name', 'groups'] },
        cookies: { keys: ['a-key-of-the-test'] },
        findAccount: (_context, login) => ({
          accountId: login,
          claims: () => ({ sub: login, email: login, email_verified: true, ...claims.get(login) }),
        }),
      })
      server.on('request', provider.callback())
    },
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
