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

/** The addresses, among those given, that this host can send from: it has them, or what NAT makes them of, or leaves through a proxy. */
export async function bindable(
  addresses: readonly { ip: string; localIp?: string; proxy?: object }[],
): Promise<string[]> {
  const results = await Promise.all(
    addresses.map(({ ip, localIp = ip, proxy }) => proxy !== undefined || canBind(localIp)),
  )
  return addresses.filter((_, at) => results[at]).map(({ ip }) => ip)
}

function canBind(host: string): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen({ host, port: 0, exclusive: true }, () => server.close(() => resolve(true)))
  })
}
