import { networkInterfaces } from 'node:os'

/** The IP addresses of this host. */
export function hostAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map(({ address }) => address))
}
