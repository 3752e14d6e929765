/** A relay as a lane uses it: one server, whatever the recipient's domain. */

import type { MaybePromise } from '../../../base/flow/cache.ts'
import { classifyAddress } from '../../../base/net/ip.ts'
import type { ConnectOptions } from '../../../protocols/smtp/client.ts'
import type { LaneLimits } from '../shaping/shaping-table.ts'
import type { HostTls } from './receiver-tls.ts'

/** How to log in to a relay (RFC 4954). */
export interface RelayAuth {
  mechanism: 'auto' | 'plain' | 'login' | 'cram-md5' | 'xoauth2' | 'oauthbearer'
  user: string
  /** The password, or a current access token; `refused`: the one that the server has just refused. */
  secret(refused?: string): MaybePromise<string>
  allowUnverified?: boolean
}

export interface RelayHop {
  name: string
  /** Part of the names of its lanes. */
  site: string
  host: string
  port: number
  /** `wanted`: as the sender of a message says. */
  tls: 'wanted' | 'required' | 'implicit' | 'none'
  /** Its certificate must verify. */
  verify: boolean
  auth: RelayAuth | null
  limits: LaneLimits
  /** Bytes; null: no limit of ours. */
  sizeMax: number | null
  /** Connections that were opened under another one are not used. */
  revision: number
}

/**
 * The TLS rules of a relay: its own, whatever sender and recipient say, but a sender who requires TLS gets it on every way that
 * leaves this machine.
 */
export function relayTls({ name, host, tls, verify, auth, revision }: RelayHop, sender: HostTls): HostTls {
  if (tls === 'wanted' && auth === null) return sender
  const required = tls === 'required' || tls === 'implicit' || (sender.required && !isOwnMachine(host))
  const key = `relay ${name} ${revision} ${required}`
  return { required, verify, judge: null, policy: 'none', key }
}

/** How a host that gets a login is used: a loopback address may do without TLS (protocols/smtp/client.ts). */
export const isOwnMachine = (host: string): boolean =>
  host === 'localhost' || classifyAddress(host) === 'loopback'

/** What a connection to a relay has of its own. @throws as `secret` */
export async function relayOptions(
  { port, tls, auth }: RelayHop,
  mode: ConnectOptions['tls'],
): Promise<Pick<ConnectOptions, 'port' | 'tls' | 'implicitTls' | 'auth'>> {
  return {
    port,
    tls: tls === 'none' && mode !== 'required' ? 'none' : mode,
    implicitTls: tls === 'implicit',
    auth: auth
      ? { user: auth.user, password: await auth.secret(), allowUnverified: auth.allowUnverified ?? false }
      : undefined,
  }
}
