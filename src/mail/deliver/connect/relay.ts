/** A relay as a lane uses it: one server, whatever the recipient's domain. */

import { classifyAddress } from '../../../base/net/ip.ts'
import type { RelayAddress } from '../../../platform/config/sending.ts'
import { type ConnectOptions, connectSmtp } from '../../../protocols/smtp/client.ts'
import type { SmtpConnection } from '../../../protocols/smtp/connection.ts'
import { passwordLogin, type SmtpAuth } from '../../../protocols/smtp/login.ts'
import type { LaneLimits } from '../shaping/shaping-table.ts'
import type { HostTls } from './receiver-tls.ts'

const STEPS = [
  'connect',
  'tls',
  'greeting',
  'ehlo',
  'auth',
  'mail',
  'rcpt',
  'data',
  'block',
  'content',
  'dot',
]
const NO_WISHES = { required: false, verify: false, judge: null, policy: 'none', key: '' } as const

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
  auth: SmtpAuth | null
  limits: LaneLimits
  /** Bytes; null: no limit of ours. */
  sizeMax: number | null
  /** The only envelope sender that it takes; absent or null: any. */
  returnPath?: string | null
  /** Bounces do not come back to the return path, so that the header must name the delivery. */
  losesReturnPath?: boolean
  /** Connections that were opened under another one are not used. */
  revision: number
}

/**
 * The TLS rules of a relay: its own, whatever sender and recipient say, but a sender who requires TLS gets it on every way that
 * leaves this machine.
 * @param isOnward the sender demands REQUIRETLS, so that its rules hold (RFC 8689 §4.2.1)
 */
export function relayTls(
  { name, host, tls, verify, auth, revision }: RelayLink,
  sender: HostTls,
  isOnward: boolean,
): HostTls {
  const keyOf = (rules: string) => `relay ${name} ${revision} ${rules}`
  if (isOnward || (tls === 'wanted' && auth === null)) return { ...sender, key: keyOf(sender.key) }
  const required = tls === 'required' || tls === 'implicit' || (sender.required && !isOwnMachine(host))
  return { required, verify, judge: null, policy: 'none', key: keyOf(String(required)) }
}

/** Where a relay is, and how to connect to it. */
export type RelayLink = Pick<RelayHop, 'name' | 'host' | 'port' | 'tls' | 'verify' | 'auth' | 'revision'>

/** `isOpen`: it is that of the setting, and has no login: the rules of a message's sender hold for it. */
export function linkRules(
  { host, tls }: { host: string; tls: 'starttls' | 'implicit' | 'none' },
  { isOpen, allowUnverified }: { isOpen: boolean; allowUnverified: boolean },
): Pick<RelayLink, 'tls' | 'verify'> {
  const isHere = isOwnMachine(host)
  return {
    tls: tls === 'starttls' ? (isOpen || isHere ? 'wanted' : 'required') : tls,
    verify: !allowUnverified && !isHere,
  }
}

/** The server that a setting names. `name`: for people. */
export function linkOf(name: string, { host, port, tls, auth }: RelayAddress): RelayLink {
  const rules = linkRules(
    { host, tls },
    { isOpen: auth === null, allowUnverified: auth?.allowUnverified ?? false },
  )
  return { name, revision: 0, host, port, ...rules, auth: auth && passwordLogin(auth) }
}

/** How a host that gets a login is used: a loopback address may do without TLS (protocols/smtp/client.ts). */
export const isOwnMachine = (host: string): boolean =>
  host === 'localhost' || classifyAddress(host) === 'loopback'

/** What a connection to a relay has of its own. */
export function relayOptions(
  { port, tls, auth }: RelayLink,
  mode: ConnectOptions['tls'],
): Pick<ConnectOptions, 'port' | 'tls' | 'auth'> {
  const isPlain = tls === 'none' && mode !== 'required'
  return { port, tls: tls === 'implicit' ? tls : isPlain ? 'none' : mode, auth: auth ?? undefined }
}

/**
 * A connection by the relay's own rules, logged in. `stepMs`: for each step of it, and of what is sent.
 * @throws as connectSmtp
 */
export function connectToRelay(
  relay: RelayLink,
  stepMs: number,
  options: Pick<ConnectOptions, 'heloName' | 'clock' | 'signal' | 'transcript'>,
): Promise<SmtpConnection> {
  const { required, verify } = relayTls(relay, NO_WISHES, false)
  return connectSmtp({
    ...{ host: relay.host, serverName: relay.host, verify },
    ...relayOptions(relay, required ? 'required' : 'opportunistic'),
    timeouts: Object.fromEntries(STEPS.map((step) => [step, stepMs])),
    ...options,
  })
}
