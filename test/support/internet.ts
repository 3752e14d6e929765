/** A small internet on loopback: a DNS stub and mail hosts with separate addresses, all on one port. */
import type { TestContext } from 'node:test'
import { createDnsServer, type DnsServer } from './dns-server.ts'
import { ownAddress } from './service.ts'
import { createSink, type Sink, type SinkOptions } from './smtp-sink.ts'

export interface Internet {
  dns: DnsServer
  /** Settings for a service that delivers directly into it. */
  env: Record<string, string>
  port: number
  /** A sink that accepts mail for the domains; its MX name is `mx.<first domain>`. */
  site(domains: readonly string[], options?: SinkOptions): Promise<Sink>
  /** Sets the MX record of a domain, and the address of that host. */
  host(domain: string, mxName: string, address: string, preference?: number): void
}

const PORT = 2500

export async function createInternet(t: Pick<TestContext, 'after'>): Promise<Internet> {
  const dns = await createDnsServer()
  t.after(() => dns.close())
  const records = new Map<string, [number, string][]>()
  const host: Internet['host'] = (domain, mxName, address, preference = 10) => {
    const list = [...(records.get(domain) ?? []), [preference, mxName] as [number, string]]
    records.set(domain, list)
    dns.set(domain, 'MX', list)
    dns.set(mxName, 'A', [address])
  }
  return {
    dns,
    port: PORT,
    host,
    env: {
      SENDWRIGHT_DELIVERY: 'direct',
      SENDWRIGHT_SANDBOX_RECIPIENTS: '*',
      SENDWRIGHT_DNS: `${dns.host}:${dns.port}`,
      SENDWRIGHT_MX_PORT: String(PORT),
      SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8',
    },
    async site(domains, options = {}) {
      const sink = await createSink({ host: ownAddress(), port: PORT, ...options })
      t.after(() => sink.close())
      for (const domain of domains) host(domain, `mx.${domains[0]}`, sink.host)
      return sink
    },
  }
}
