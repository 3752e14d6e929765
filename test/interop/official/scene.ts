/** What surrounds the service while an official client's calls are made, or made again. */
import { join } from 'node:path'
import { createDnsServer, type DnsServer } from '../../support/dns-server.ts'
import { ownAddress } from '../../support/service.ts'
import { createSink, type Sink } from '../../support/smtp-sink.ts'

/** The domain that clients create. */
export const CREATED_DOMAIN = 'client.example'

export const SETTINGS = {
  SENDWRIGHT_HEADER_PREFIX: 'X-Mailgun-',
  SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8',
}

/** Delivers to everybody but nobody@example.org. */
export async function startSink(): Promise<Sink> {
  const sink = await createSink({ host: ownAddress() })
  sink.on('RCPT TO:<nobody@example.org>', '550 5.1.1 no such user')
  return sink
}

/** Knows the host that webhooks are posted to. */
export async function startDns(): Promise<DnsServer> {
  const dns = await createDnsServer()
  dns.set('hooks.example', 'A', ['127.0.0.1'])
  return dns
}

export const recordedFile = (name: string) => join(import.meta.dirname, '../recorded', `${name}.json`)
