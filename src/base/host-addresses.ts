import { networkInterfaces } from 'node:os'
import { isPublicAddress } from './ip.ts'

/** The IP addresses of this host. */
export function hostAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map(({ address }) => address))
}

/** The addresses that receivers see: those configured, else the public ones of the host. Behind NAT they are unknown here. */
export function seenAddresses(configured: readonly { ip: string }[], ofHost: readonly string[]): string[] {
  return configured.length > 0 ? configured.map(({ ip }) => ip) : ofHost.filter(isPublicAddress)
}
