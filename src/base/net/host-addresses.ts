import { createServer } from 'node:net'
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

/** The addresses that a socket of this host can be bound to. */
export async function bindable(addresses: readonly string[]): Promise<string[]> {
  const results = await Promise.all(addresses.map(canBind))
  return addresses.filter((_, at) => results[at])
}

function canBind(host: string): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen({ host, port: 0, exclusive: true }, () => server.close(() => resolve(true)))
  })
}
