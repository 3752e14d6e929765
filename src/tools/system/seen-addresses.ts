/**
 * Which address other servers see mail come from. Many say so in their answer to EHLO (`mx.example.net at your service,
 * [203.0.113.7]`). One dialogue without a message for each way that mail leaves.
 */
import { canonicalIp, isPublicAddress, parseCidr, parseIp } from '../../base/net/ip.ts'
import { systemClock } from '../../base/time/clock.ts'
import { createEgress } from '../../mail/deliver/connect/egress.ts'
import type { Config } from '../../platform/config/config.ts'
import { findMailHosts } from '../../protocols/dns/mx.ts'
import type { Resolver } from '../../protocols/dns/resolver.ts'
import type { TranscriptEntry } from '../../protocols/smtp/channel.ts'
import { connectSmtp } from '../../protocols/smtp/client.ts'
import { SmtpFailure } from '../../protocols/smtp/failure.ts'

/** Time of each step; the checks have 20 seconds in all. */
const STEP_MAX_MS = 5_000
/** Ways tried: addresses behind NAT and proxies beyond these differ only in their numbers. */
const WAYS_MAX = 8

export interface LookParts {
  config: Pick<Config, 'sourceAddresses' | 'allowNetworks' | 'mxPort' | 'hostname'>
  resolver: Resolver
  probeDomains: readonly string[]
}

/** What a dialogue from one address has shown. */
export interface Look {
  /** As configured; null: the system has chosen. */
  ip: string | null
  /** Name of the server. */
  host: string
  /** Address of this machine that the connection came from; null: there was none, or it went through a proxy. */
  localIp: string | null
  /** Public address that the server names; null: none. */
  seenAs: string | null
  /** Why there was no connection; null: there was. */
  fault: string | null
}

export interface Looks {
  /** The first server that was reached, from the first address; null: none. */
  reached: Look | null
  /** Why others were not. */
  faults: readonly string[]
  /** From further addresses, to the same server: those behind NAT or proxies. */
  further: readonly Look[]
}

interface Server {
  host: string
  address: string
  family: 4 | 6
}

/** Never rejects. */
export async function askServers(parts: LookParts): Promise<Looks> {
  const faults: string[] = []
  for (const domain of parts.probeDomains) {
    const server = await serverOf(parts, domain)
    if (typeof server === 'string') {
      faults.push(server)
      continue
    }
    const ips = waysTo(parts, server)
    const look = await lookAt(parts, server, ips[0] ?? null)
    if (look.fault === null) {
      const further = await Promise.all(ips.slice(1).map((ip) => lookAt(parts, server, ip)))
      return { reached: look, faults, further }
    }
    faults.push(`${server.host} (${server.address}): ${look.fault}`)
  }
  return { reached: null, faults, further: [] }
}

/** The server, or why none is known. */
async function serverOf({ resolver, config }: LookParts, domain: string): Promise<Server | string> {
  const allow = config.allowNetworks.flatMap((network) => parseCidr(network) ?? [])
  const found = await findMailHosts(resolver, domain, { random: Math.random, allow })
  const host = found.kind === 'hosts' ? found.hosts[0] : undefined
  // IPv4 first: a host without IPv6 says nothing about the port.
  const target = host?.addresses.find(({ family }) => family === 4) ?? host?.addresses[0]
  if (!host || !target) return `no mail server of ${domain} is known (${found.kind})`
  return { host: host.exchange, address: target.address, family: target.family }
}

/** The first address of the server's family, then those whose way is their own. */
function waysTo({ config }: LookParts, { family }: Server): string[] {
  const [first, ...others] = config.sourceAddresses.filter(({ ip }) => parseIp(ip)?.family === family)
  const further = others.filter(({ localIp, proxy }) => localIp !== undefined || proxy !== undefined)
  return first === undefined ? [] : [first, ...further].slice(0, WAYS_MAX).map(({ ip }) => ip)
}

async function lookAt({ config }: LookParts, server: Server, ip: string | null): Promise<Look> {
  const lines: TranscriptEntry[] = []
  const egress = createEgress(config.sourceAddresses, systemClock)
  const way = ip === null ? {} : egress.wayFrom(ip, false)
  const look = { ip, host: server.host, localIp: null, seenAs: null, fault: null }
  const timeouts = { connect: STEP_MAX_MS, greeting: STEP_MAX_MS, ehlo: STEP_MAX_MS, quit: STEP_MAX_MS }
  try {
    const connection = await connectSmtp({
      ...{ host: server.address, port: config.mxPort, heloName: config.hostname, tls: 'none', verify: false },
      ...{ ...way, timeouts, transcript: (entry) => void lines.push(entry) },
    })
    const localIp = way.dial === undefined ? connection.localAddress : null
    await connection.quit()
    return { ...look, localIp, seenAs: addressIn(lines, server.address) }
  } catch (error) {
    const isReached = error instanceof SmtpFailure && error.stage !== 'connect'
    // A server that greets badly is a server.
    return isReached ? look : { ...look, fault: (error as Error).message.replace(/^SMTP connect: /, '') }
  }
}

/** The public address in the first line of the reply to EHLO that is not the server's own. */
export function addressIn(lines: readonly TranscriptEntry[], server: string): string | null {
  const asked = lines.findIndex(({ direction, line }) => direction === 'sent' && line.startsWith('EHLO '))
  const reply = lines.slice(asked + 1).find(({ direction }) => direction === 'received')
  if (asked < 0 || reply === undefined) return null
  for (const [word] of reply.line.replaceAll(/IPv6:/gi, '').matchAll(/[0-9a-f.:]{3,45}/gi)) {
    const ip = canonicalIp(word.replace(/[.:]$/, ''))
    if (ip !== null && isPublicAddress(ip) && ip !== canonicalIp(server)) return ip
  }
  return null
}
