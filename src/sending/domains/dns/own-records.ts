/**
 * The operator's own DNS records: the public host, and the hosts that the records of all sending domains refer to. Without
 * them no domain can be verified, or its mail fails although its own records are right.
 *
 * `wantedOwnRecords` says which there must be; `checkOwnRecords` asks DNS. Addresses of the machine behind NAT, and the SPF
 * record that a relay needs, are not known here: such a record has no value to publish.
 */
import { isIP } from 'node:net'
import { seenAddresses } from '../../../base/net/host-addresses.ts'
import { canonicalIp } from '../../../base/net/ip.ts'
import type { Config } from '../../../platform/config/config.ts'
import { isInternetName } from '../../../platform/config/listening.ts'
import type { DnsAnswer, Resolver } from '../../../protocols/dns/resolver.ts'
import { isSpfRecord } from '../../../protocols/dns/spf.ts'

type OwnPurpose = 'host' | 'mx-target' | 'tracking-target' | 'spf-include'

interface OwnRecord {
  purpose: OwnPurpose
  name: string
  type: 'A' | 'AAAA' | 'CNAME' | 'TXT'
  /** What to publish; null: not known here. */
  value: string | null
}

/**
 * `missing`: there is no such record, or none that can be used; `elsewhere`: it leads to other addresses than those of this
 * service; `unanswered`: DNS gave no answer.
 */
type OwnRecordState = 'valid' | 'missing' | 'elsewhere' | 'unanswered'

export interface OwnRecordCheck {
  /** What to publish for the name; the first one is enough. */
  records: readonly [OwnRecord, ...OwnRecord[]]
  state: OwnRecordState
  found: readonly string[]
  /** For a person: what is wrong and which record to make; '' if nothing is. */
  sentence: string
}

type Names = Pick<Config, 'publicUrl' | 'hostname' | 'dnsTargets' | 'sourceAddresses' | 'delivery'>

/** The public host, in lower case; null: it is an address or a name of this machine, so nobody else can reach it. */
export function publicHost({ publicUrl }: Pick<Config, 'publicUrl'>): string | null {
  const { hostname } = new URL(publicUrl)
  return isInternetName(hostname) ? hostname : null
}

/**
 * The records by name, those that others build on first; none of names that only this machine knows. `addresses`: those of
 * the public host that are known.
 */
export function wantedOwnRecords(config: Names, addresses: readonly string[]): OwnRecord[][] {
  const host = publicHost(config)
  const { mxHosts, tracking, spfIncludeHost } = config.dnsTargets
  // The name in EHLO alone is no reason: receivers look it up, but nobody connects to it.
  const hosts = host === null ? [] : [...new Set([host, ...[config.hostname].filter(isInternetName)])]
  const targets = [...new Set(mxHosts)].filter((name) => isInternetName(name) && !hosts.includes(name))
  const known = [...hosts, ...targets]
  return [
    ...hosts.map((name) => addressRecords('host', name, addresses)),
    // The target of an MX record must not be an alias (RFC 2181 §10.3).
    ...targets.map((name) => addressRecords('mx-target', name, addresses)),
    ...(!isInternetName(tracking) || known.includes(tracking)
      ? []
      : [[{ purpose: 'tracking-target', name: tracking, type: 'CNAME', value: host } as const]]),
    ...(isInternetName(spfIncludeHost)
      ? [
          [
            {
              purpose: 'spf-include',
              name: spfIncludeHost,
              type: 'TXT',
              value: spfRecord(config, addresses),
            } as const,
          ],
        ]
      : []),
  ]
}

function addressRecords(purpose: OwnPurpose, name: string, addresses: readonly string[]): OwnRecord[] {
  if (addresses.length === 0) return [{ purpose, name, type: 'A', value: null }]
  return addresses.map((value) => ({ purpose, name, type: isIP(value) === 6 ? 'AAAA' : 'A', value }))
}

/** Only this machine may send for the domains; null: the addresses are not known, or a relay sends. */
function spfRecord({ delivery, sourceAddresses }: Names, addresses: readonly string[]): string | null {
  const senders = sourceAddresses.length > 0 ? sourceAddresses.map(({ ip }) => ip) : addresses
  if (delivery.kind === 'relay' || senders.length === 0) return null
  return `v=spf1 ${senders.map((ip) => `ip${isIP(ip)}:${ip}`).join(' ')} -all`
}

interface OwnRecordParts {
  resolver: Resolver
  config: Names
  /** Addresses of this machine. */
  hostAddresses: readonly string[]
  /** Query the servers although the answers are cached. */
  fresh?: boolean
  signal?: AbortSignal
}

/** Asks DNS for every own record. Never rejects because of DNS; rejects when `signal` aborts. */
export async function checkOwnRecords(parts: OwnRecordParts): Promise<OwnRecordCheck[]> {
  const { config, hostAddresses } = parts
  const host = publicHost(config)
  const published = host === null ? NO_ADDRESSES : await addressesOf(parts, host)
  const seen = seenAddresses(config.sourceAddresses, hostAddresses)
  const wanted = wantedOwnRecords(config, published.found.length > 0 ? published.found : seen)
  const ours = new Set(
    [...hostAddresses, ...config.sourceAddresses.map(({ ip }) => ip), ...published.found].map(plain),
  )
  return Promise.all(
    wanted.map(async (records) => {
      const [first, ...rest] = records
      if (first === undefined) throw new Error('An own record without a form')
      const look =
        first.type === 'TXT'
          ? await spfOf(parts, first)
          : await hostOf(parts, first, { ours, areAllKnown: published.isAnswered })
      return { records: [first, ...rest] as const, ...look }
    }),
  )
}

type Look = Omit<OwnRecordCheck, 'records'>

/** `areAllKnown`: DNS has said which addresses the public host has. */
interface OwnAddresses {
  ours: ReadonlySet<string>
  areAllKnown: boolean
}

async function hostOf(
  parts: OwnRecordParts,
  record: OwnRecord,
  { ours, areAllKnown }: OwnAddresses,
): Promise<Look> {
  const { name, purpose } = record
  const { found, isAnswered, isAlias } = await addressesOf(parts, name)
  const uses = USES[purpose]
  if (found.length === 0 && isAnswered)
    return { state: 'missing', found, sentence: `${name}, ${uses}, has no address. ${todo(record)}` }
  if (found.length === 0) return unanswered(record, found)
  if (purpose === 'mx-target' && isAlias)
    return {
      state: 'missing',
      found,
      sentence: `${name}, ${uses}, is an alias (CNAME), which the target of an MX record must not be. ${todo(record)}`,
    }
  // A proxy or a content network may stand before the web hosts, not before mail.
  if (purpose !== 'mx-target' || found.some((address) => ours.has(plain(address))))
    return { state: 'valid', found, sentence: '' }
  if (!areAllKnown || !isAnswered) return unanswered(record, found)
  return {
    state: 'elsewhere',
    found,
    sentence: `${name}, ${uses}, leads to ${found.slice(0, SHOWN_MAX).join(', ')}, which is neither an address of this machine nor of the public host: bounces and received mail arrive there. ${todo(record)}`,
  }
}

const unanswered = ({ name, purpose }: OwnRecord, found: readonly string[]): Look => ({
  state: 'unanswered',
  found,
  sentence: `DNS gave no answer about ${name}, ${USES[purpose]}.`,
})

async function spfOf(parts: OwnRecordParts, record: OwnRecord): Promise<Look> {
  const { name } = record
  const answer = await ask(parts, name, 'TXT')
  const found = answer.records.filter(isSpfRecord)
  const uses = USES['spf-include']
  if (!isDefinite(answer)) return unanswered(record, found)
  if (found.length === 1) return { state: 'valid', found, sentence: '' }
  const fact = found.length === 0 ? 'has no SPF record' : `has ${found.length} SPF records instead of one`
  return {
    state: 'missing',
    found,
    sentence: `${name}, ${uses}, ${fact}: receivers treat that as an error of every domain. ${todo(record)}`,
  }
}

const USES: Record<OwnPurpose, string> = {
  host: 'the name of this service',
  'mx-target': 'which the MX records of sending domains name',
  'tracking-target': 'which the tracking hosts of sending domains lead to',
  'spf-include': 'which the SPF records of sending domains include',
}

/** Shown in a sentence. */
const SHOWN_MAX = 4

function todo({ name, type, value, purpose }: OwnRecord): string {
  if (value !== null) return `Publish: ${name} ${type} ${type === 'TXT' ? `"${value}"` : value}`
  if (purpose === 'tracking-target')
    return `Publish a CNAME or A record of ${name} that leads to this service.`
  return purpose === 'spf-include'
    ? `Publish a TXT record of ${name} that permits what sends the mail: "v=spf1 ip4:<address> -all", or what the relay asks for.`
    : `Publish an A record of ${name} with the public address of this server.`
}

interface Addresses {
  found: string[]
  isAnswered: boolean
  isAlias: boolean
}

const NO_ADDRESSES: Addresses = { found: [], isAnswered: true, isAlias: false }

async function addressesOf(parts: OwnRecordParts, name: string): Promise<Addresses> {
  const answers = await Promise.all([ask(parts, name, 'A'), ask(parts, name, 'AAAA')])
  return {
    found: answers.flatMap(({ records }) => [...records]),
    isAnswered: answers.every(isDefinite),
    isAlias: answers.some(({ chain }) => chain.length > 0),
  }
}

const ask = <T extends 'A' | 'AAAA' | 'TXT'>(
  { resolver, fresh, signal }: OwnRecordParts,
  name: string,
  type: T,
) => resolver.query(name, type, { ...(fresh && { fresh }), ...(signal && { signal }) })

const isDefinite = ({ kind }: DnsAnswer) => kind === 'records' || kind === 'nodata' || kind === 'nxdomain'

const plain = (address: string) => canonicalIp(address) ?? address
