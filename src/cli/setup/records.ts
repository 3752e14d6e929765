/** The DNS records that `sendwright setup` prints: the operator's own, and those of the first domain. */
import { hostAddresses, seenAddresses } from '../../base/net/host-addresses.ts'
import type { Config } from '../../platform/config/config.ts'
import { reverseName } from '../../protocols/dns/names.ts'
import type { Resolver } from '../../protocols/dns/resolver.ts'
import { wantedRecords } from '../../sending/domains/dns/dns-records.ts'
import { publicHost, wantedOwnRecords } from '../../sending/domains/dns/own-records.ts'
import type { ServiceClient } from '../local/client.ts'

export interface PrintedRecord {
  name: string
  type: string
  /** With the preference for MX; a part in angle brackets is for the operator to fill in. */
  value: string
}

const UNKNOWN_ADDRESS = '<public address of this server>'

/** The addresses that the internet has for this machine: in DNS, else those that it has itself. */
export async function knownAddresses(config: Config, resolver: Resolver): Promise<string[]> {
  const host = publicHost(config)
  const answers =
    host === null ? [] : await Promise.all([resolver.query(host, 'A'), resolver.query(host, 'AAAA')])
  const published = answers.flatMap(({ records }) => [...records])
  return published.length > 0 ? published : seenAddresses(config.sourceAddresses, hostAddresses())
}

/** Once for the service; the reverse names are set by the owner of the addresses. */
export function ownRecords(config: Config, addresses: readonly string[]): PrintedRecord[] {
  const { delivery, hostname } = config
  const forward = wantedOwnRecords(config, addresses)
    .flat()
    .map(({ name, type, value, purpose }) => ({
      name,
      type,
      value: value ?? (purpose === 'spf-include' ? unknownSpf(delivery.kind) : UNKNOWN_ADDRESS),
    }))
  if (delivery.kind === 'relay') return forward
  const senders = config.sourceAddresses.length > 0 ? config.sourceAddresses.map(({ ip }) => ip) : addresses
  return [
    ...forward,
    ...(senders.length > 0 ? senders : [UNKNOWN_ADDRESS]).map((ip) => ({
      name: reverseName(ip) ?? '<reverse name of that address>',
      type: 'PTR',
      value: hostname,
    })),
  ]
}

const unknownSpf = (kind: Config['delivery']['kind']) =>
  kind === 'relay' ? '<the SPF record that the relay asks for>' : `v=spf1 ip4:${UNKNOWN_ADDRESS} -all`

/** By the settings that were just written; the keys are the service's. @throws Refused, NotReached */
export async function domainRecords(
  client: ServiceClient,
  config: Config,
  name: string,
): Promise<PrintedRecord[]> {
  const path = encodeURIComponent(name)
  const { domain } = (await client.call('GET', `/v4/domains/${path}?h:extended=true`)) as {
    domain: { name: string; mailfrom_host: string; web_prefix: string }
  }
  const { records } = (await client.call('GET', `/sendwright/v1/domains/${path}/dns`)) as {
    records: { record: { purpose: string; name: string; type: string; value: string; is_active: boolean } }[]
  }
  const keys = records.map(({ record }) => record).filter(({ purpose }) => purpose === 'dkim')
  const names = {
    ...{ name: domain.name, mailfromHost: domain.mailfrom_host, webPrefix: domain.web_prefix },
    // A new domain publishes no policy.
    ...({ mtaSts: 'off', mtaStsMaxAge: 0 } as const),
  }
  return [
    ...keys.map((record) => ({ name: record.name, type: record.type, value: record.value })),
    ...wantedRecords(names, config.dnsTargets).map((record) => ({
      name: record.name,
      type: record.type,
      value: record.priority === undefined ? record.value : `${record.priority} ${record.value}`,
    })),
    { name: `_dmarc.${domain.name}`, type: 'TXT', value: 'v=DMARC1; p=none' },
  ]
}

/** As lines of a zone file. */
export function recordsText(records: readonly PrintedRecord[]): string {
  const [names, types] = [records.map(({ name }) => name), records.map(({ type }) => type)].map((texts) =>
    Math.max(0, ...texts.map((text) => text.length)),
  )
  return records
    .map(({ name, type, value }) => {
      const data = type === 'TXT' ? strings(value) : type === 'A' || type === 'AAAA' ? value : fullName(value)
      return `  ${fullName(name).padEnd((names ?? 0) + 1)}  ${type.padEnd(types ?? 0)}  ${data}\n`
    })
    .join('')
}

/** One string of a TXT record has at most 255 bytes (RFC 1035 §3.3.14). */
const strings = (value: string) => (value.match(/.{1,255}/gs) ?? ['']).map((part) => `"${part}"`).join(' ')

/** What is left to the operator is no name yet. */
const fullName = (name: string) => (name.endsWith('>') ? name : `${name}.`)
