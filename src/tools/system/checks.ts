/**
 * Checks whether the machine is fit to send mail: the output of `sendwright doctor` and of GET
 * /sendwright/v1/system/checks. Each check examines one thing and says in a sentence what it found and what to do;
 * none changes anything, and none can take longer than CHECK_MAX_MS. What other hosts see (port 25, PTR,
 * blocklists) matters only when mail is delivered to the recipients' own servers: in the other modes no other host
 * is queried.
 */

import { X509Certificate } from 'node:crypto'
import { readFile, statfs } from 'node:fs/promises'
import { isIP } from 'node:net'
import { seenAddresses } from '../../base/net/host-addresses.ts'
import type { Of } from '../../base/shape.ts'
import { systemClock } from '../../base/time/clock.ts'
import { DAY_MS } from '../../base/time/durations.ts'
import { systemSource } from '../../mail/deliver/connect/address-families.ts'
import type { Config } from '../../platform/config/config.ts'
import { OWN_BLOBS } from '../../platform/nodes/node.ts'
import { exposedFiles, exposureSentence, readableByAll } from '../../platform/store/blobs/private-files.ts'
import { blocklistKind, queryBlocklist, testBlocklist } from '../../protocols/dns/blocklist.ts'
import { confirmName } from '../../protocols/dns/confirmed-name.ts'
import type { Resolver } from '../../protocols/dns/resolver.ts'
import { proxyName, tryProxy } from '../../protocols/proxy/dialling.ts'
import { REFUSALS_HOURS, type Refusal } from '../../receiving/bounces/refusals.ts'
import type { OwnCertificateState } from '../../sending/certificates/own-certificates.ts'
import { scannerPings } from '../../sending/content-check/scanners.ts'
import { checkOwnRecords, publicHost } from '../../sending/domains/dns/own-records.ts'
import type { LostReturnPaths } from '../../sending/domains/names/return-paths.ts'
import { heloFaults, type NamedAddress, type NameFaults, spfFaults } from '../../sending/ips/address-names.ts'
import type { RelayView } from '../../sending/relays/shapes.ts'
import { type Blocklist, blocklistsOf } from '../../watching/blocklists/lists.ts'
import { openFilesFault } from './open-files.ts'
import { askServers, type Look, type LookParts, type Looks } from './seen-addresses.ts'
import type { CHECK } from './shapes.ts'

export type CheckResult = Of<typeof CHECK>

export interface CheckParts {
  config: Pick<
    Config,
    | 'delivery'
    | 'sourceAddresses'
    | 'requireFcrdns'
    | 'smtpTls'
    | 'acme'
    | 'publicUrl'
    | 'dataFolder'
    | 'freeSpaceMinBytes'
    | 'mxPort'
    | 'dnsblZones'
    | 'allowNetworks'
    | 'dnsTargets'
    | 'hostname'
    | 'blobs'
    | 'spamScorer'
    | 'outboundScorer'
    | 'clamav'
  >
  resolver: Resolver
  /** Addresses of this host, for mail whose source address the system chooses. */
  hostAddresses: readonly string[]
  /** The address that the system would choose for a destination; default: asked of the system. */
  sourceTowards?(address: string): Promise<string | null>
  /** Domains whose mail servers are tried; the first that answers is enough. */
  probeDomains: readonly string[]
  /** Tests whether the database can be written, and resolves to its description; rejects when it cannot. */
  tryDatabase(): Promise<string>
  /** Problems of tracking hosts' certificates, present or near, one sentence each; absent: not checked. */
  trackingCertificates?(): Promise<{ count: number; faults: readonly string[] }>
  /** State of the certificates that were ordered for the service's own names; absent: not looked at. */
  ownCertificates?(): Promise<OwnCertificateState[]>
  /** Return-path hosts whose MX points elsewhere, by the last DNS check; absent: not checked. */
  lostReturnPaths?(): Promise<LostReturnPaths>
  /** How far the system clock has moved ahead of a monotonic one since the start, in milliseconds; null: unknown. */
  clockStepMs(): number | null
  /** What receivers refuse because of this host or its domains, most frequent first; null: unknown. */
  recentRefusals(): Promise<Refusal[] | null>
  /** Relays with what holds now; absent: known to a running service only. */
  relays?(): Promise<RelayView[]>
  /** Reported by the running service; absent, or null: unknown. */
  openFiles?(): Promise<{ limit: number; open: number; needed: number } | null>
  /** How many other processes share the running service's database; absent: unknown. */
  otherNodes?(): number
  /** Unix milliseconds. */
  now(): number
}

/** Large mailbox providers: their servers answer everyone, so no answer means a fault of this network. */
export const PROBE_DOMAINS = ['gmail.com', 'outlook.com', 'yahoo.com']

/** Over all addresses and DNS retries; a check that takes longer has failed. */
const CHECK_MAX_MS = 20_000
/** Addresses checked; a host with more has them configured one by one. */
const ADDRESSES_MAX = 32
const CERTIFICATE_WARN_DAYS = 14
const OPEN_FILES_WARN_SHARE = 0.9
const CLOCK_STEP_MIN_MS = 5_000
const MEGABYTE = 1024 * 1024

const ok = (sentence: string) => ({ state: 'ok', sentence }) as const
/** Nothing was asked: it does not concern this machine, or cannot be seen from here. */
const skipped = (sentence: string) => ({ state: 'skipped', sentence }) as const
const warning = (sentence: string) => ({ state: 'warning', sentence }) as const
const failed = (sentence: string) => ({ state: 'failed', sentence }) as const
type Finding = Pick<CheckResult, 'state' | 'sentence'>

/** With what mail servers see, asked once. */
type Asking = CheckParts & { looks(): Promise<Looks> }

/** Runs all checks concurrently; results are in the order in which a person would fix things. Never rejects. */
export async function runChecks(given: CheckParts): Promise<CheckResult[]> {
  let asked: Promise<Looks> | null = null
  const looks = () => {
    asked ??= askServers(given)
    return asked
  }
  const parts: Asking = { ...given, looks }
  const checks: [name: string, check: (parts: Asking) => Promise<Finding>][] = [
    ['disk', checkDisk],
    ['files', checkFiles],
    ['database', checkDatabase],
    ['nodes', checkNodes],
    ['clock', checkClock],
    ['open-files', checkOpenFiles],
    ['resolver', checkResolver],
    ['tls-certificate', checkCertificate],
    ['tracking-certificates', checkTrackingCertificates],
    ['own-records', checkOwn],
    ['return-paths', checkReturnPaths],
    ['relays', checkRelays],
    ['scanners', checkScanners],
    ['outbound-port-25', checkPort],
    ['public-address', checkPublicAddress],
    ['egress-proxies', checkProxies],
    ['reverse-names', checkReverseNames],
    ['ipv6', checkIpv6],
    ['helo-names', checkHeloNames],
    ['sender-policy', checkSenderPolicy],
    ['blocklists', checkBlocklists],
    ['refusals', checkRefusals],
  ]
  return Promise.all(
    checks.map(async ([name, check]) => {
      const finding = await bounded(check(parts)).catch((error: unknown) =>
        failed(`The check could not be made: ${(error as Error).message}.`),
      )
      return { name, ...finding, checked_at: new Date(parts.now()).toISOString() }
    }),
  )
}

async function bounded(check: Promise<Finding>): Promise<Finding> {
  const { promise: tooLong, resolve } = Promise.withResolvers<Finding>()
  const sentence = `There was no result after ${CHECK_MAX_MS / 1000} seconds.`
  const timer = systemClock.setTimer(CHECK_MAX_MS, () => resolve(failed(sentence)))
  return Promise.race([check, tooLong]).finally(() => timer.cancel())
}

/** Why a check against other hosts is not needed, or null. */
function notNeeded({ config: { delivery } }: CheckParts): Finding | null {
  if (delivery.kind === 'capture')
    return skipped('Not needed: mail is captured and does not leave this machine.')
  if (delivery.kind === 'relay')
    return skipped(`Not needed: all mail goes through ${delivery.host}:${delivery.port}.`)
  return null
}

async function checkDisk({ config }: CheckParts): Promise<Finding> {
  const { bavail, bsize } = await statfs(config.dataFolder)
  const free = bavail * bsize
  const floor = config.freeSpaceMinBytes
  const size = `${Math.floor(free / MEGABYTE)} MB are free in ${config.dataFolder}`
  const least = `${Math.ceil(floor / MEGABYTE)} MB`
  if (free < floor) return failed(`${size}; below ${least} no mail is accepted. Make room.`)
  if (free < 3 * floor) return warning(`${size}; below ${least} no mail will be accepted. Make room soon.`)
  return ok(`${size}.`)
}

/** A readable file exposes mail and secrets, hence failed; a readable folder exposes only names. */
async function checkFiles({ config }: CheckParts): Promise<Finding> {
  const exposed = await exposedFiles(config.dataFolder)
  const keyFile = config.smtpTls && (await readableByAll(config.smtpTls.keyFile))
  const sentences = exposed.map(exposureSentence)
  if (keyFile) sentences.push(exposureSentence(keyFile))
  if (sentences.length === 0) return ok(`Only the service's own user can read ${config.dataFolder}.`)
  const isSerious = keyFile !== null || exposed.some(({ isFolder, isWritable }) => !isFolder || isWritable)
  return (isSerious ? failed : warning)(sentences.join(' '))
}

async function checkDatabase({ tryDatabase }: CheckParts): Promise<Finding> {
  return tryDatabase().then(ok, (error: Error & { detail?: string }) =>
    failed(`The database cannot be written: ${error.detail ?? error.message}.`),
  )
}

async function checkNodes({ config, otherNodes }: CheckParts): Promise<Finding> {
  const count = otherNodes?.() ?? 0
  if (count === 0) return ok('No other node uses the database.')
  if (config.blobs === null) return warning(`${OWN_BLOBS}.`)
  return ok(`${count} other nodes use the database, and all share large files.`)
}

async function checkClock({ clockStepMs, now }: CheckParts): Promise<Finding> {
  const says = `The clock says ${new Date(now()).toISOString()}`
  const stepMs = clockStepMs()
  const limits = 'Whether that is right is not known here: no other clock is asked.'
  if (stepMs === null) return ok(`${says}; only a running service notices that it is set. ${limits}`)
  if (Math.abs(stepMs) < CLOCK_STEP_MIN_MS)
    return ok(`${says} and has not been set since the service was started. ${limits}`)
  const seconds = Math.round(Math.abs(stepMs) / 1000)
  const way = stepMs > 0 ? 'forward' : 'back'
  return warning(
    `The system clock was set ${way} by ${seconds} s. The service goes on by its own count; restart it so that the new time is used. ${limits}`,
  )
}

async function checkOpenFiles({ openFiles }: CheckParts): Promise<Finding> {
  const found = await openFiles?.()
  if (!found) return skipped('Not looked at: only a running service on Linux knows its open files.')
  const { limit, open, needed } = found
  const fault = openFilesFault(limit, needed)
  const now = `${open} of ${limit} files are open.`
  if (open > limit * OPEN_FILES_WARN_SHARE) {
    const most = `${now} At the limit connections are refused and deliveries wait.`
    return failed(fault ? `${most} ${fault}` : most)
  }
  return fault ? warning(`${now} ${fault}`) : ok(now)
}

/** Any definite answer counts, "no such name" too: this checks only whether the resolver can be reached. */
async function checkResolver(parts: CheckParts): Promise<Finding> {
  const { resolver, probeDomains, config } = parts
  if (config.delivery.kind === 'capture') {
    return skipped(
      'Not asked: in capture mode nothing leaves this machine, and domains may send without DNS.',
    )
  }
  const name = probeDomains[0] ?? 'example.com'
  const answer = await resolver.query(name, 'MX', { fresh: true })
  if (['records', 'nodata', 'nxdomain'].includes(answer.kind)) {
    const secure = answer.authenticated ? ' and validates DNSSEC' : ''
    return ok(`The resolver ${answer.server} answers for ${name}${secure}.`)
  }
  const fault = `No resolver answers for ${name}: ${answer.problem || answer.kind}.`
  if (notNeeded(parts)) return warning(`${fault} Domains cannot be verified; set SENDWRIGHT_DNS.`)
  return failed(`${fault} No mail can be sent; set SENDWRIGHT_DNS.`)
}

async function checkCertificate(parts: CheckParts): Promise<Finding> {
  const { config, now } = parts
  if (config.acme !== null && config.acme.ownHosts.length > 0) return checkOrderedCertificates(parts)
  if (!config.smtpTls) {
    return ok(
      'The SMTP port uses a certificate of its own making: set SENDWRIGHT_ACME, or SENDWRIGHT_TLS_CERT, for one others trust.',
    )
  }
  const { certificateFile } = config.smtpTls
  let certificate: X509Certificate
  try {
    certificate = new X509Certificate(await readFile(certificateFile))
  } catch (error) {
    return failed(`The certificate ${certificateFile} cannot be read: ${(error as Error).message}.`)
  }
  const days = Math.floor((Date.parse(certificate.validTo) - now()) / DAY_MS)
  const until = `The certificate ${certificateFile} (${certificate.subject.replaceAll('\n', ', ')})`
  if (Date.parse(certificate.validFrom) > now()) return failed(`${until} is not valid yet. Check the clock.`)
  if (days < 0) return failed(`${until} ended on ${certificate.validTo}. Renew it.`)
  const left = `${until} is valid for ${days} more days`
  return days < CERTIFICATE_WARN_DAYS ? warning(`${left}. Renew it.`) : ok(`${left}.`)
}

/** Certificates of the service's own names, ordered by ACME. */
async function checkOrderedCertificates({ config, ownCertificates, now }: CheckParts): Promise<Finding> {
  const names = config.acme?.ownHosts.join(', ')
  const states = await ownCertificates?.()
  if (!states) return ok(`A running service orders the certificate of ${names}, and knows its state.`)
  const sentences: string[] = []
  let worst: Finding['state'] = 'ok'
  for (const { host, expiresAt, error } of states) {
    const days = expiresAt === null ? -1 : Math.floor((expiresAt - now()) / DAY_MS)
    const why = error === null ? '' : ` The last order failed: ${error}`
    if (expiresAt === null || expiresAt <= now()) {
      const fact = expiresAt === null ? 'There is no certificate yet' : 'The certificate has ended'
      sentences.push(
        `${fact} for ${host}.${why || ' It is being ordered.'} The authority must reach http://${host}/ on port 80.`,
      )
      worst = 'failed'
      continue
    }
    sentences.push(`The certificate of ${host} is valid for ${days} more days and renewed by itself.${why}`)
    if (days < CERTIFICATE_WARN_DAYS && worst === 'ok') worst = 'warning'
  }
  return { state: worst, sentence: sentences.join(' ') }
}

async function checkTrackingCertificates({ trackingCertificates }: CheckParts): Promise<Finding> {
  const found = await trackingCertificates?.()
  if (!found) return skipped('Not looked at: only a running service knows its tracking hosts.')
  if (found.count === 0) return ok('No tracking host has a certificate that failed or ends soon.')
  const more = found.count - found.faults.length
  const rest = more > 0 ? ` ${more} more are in such a state.` : ''
  return warning(
    `Links of these tracking hosts use http, or soon will: ${found.faults.join('; ')}.${rest} GET /v2/x509/{host}/status shows details.`,
  )
}

/** What the records of every sending domain refer to. */
async function checkOwn(parts: CheckParts): Promise<Finding> {
  const { config, resolver, hostAddresses } = parts
  if (config.delivery.kind === 'capture')
    return skipped('Not needed: mail is captured, and domains send without DNS.')
  if (publicHost(config) === null)
    return warning(
      `The public address ${config.publicUrl} has no name that others know, so the records of sending domains lead nowhere. Set SENDWRIGHT_PUBLIC_URL; "sendwright setup" does.`,
    )
  const checks = await checkOwnRecords({ resolver, config, hostAddresses, fresh: true })
  const faults = checks.filter(({ state }) => state !== 'valid')
  const names = checks.map(({ records: [first] }) => first.name).join(', ')
  if (faults.length === 0) return ok(`The records that those of sending domains refer to exist: ${names}.`)
  const isSerious = faults.some(({ state }) => state === 'missing')
  return (isSerious ? failed : warning)(faults.map(({ sentence }) => sentence).join(' '))
}

/** Without it late bounces are lost silently: the mail counts as delivered, and the address is never suppressed. */
async function checkReturnPaths({ config, lostReturnPaths }: CheckParts): Promise<Finding> {
  if (config.delivery.kind === 'capture') return skipped('Not needed: captured mail does not bounce.')
  const found = await lostReturnPaths?.()
  if (!found) return skipped('Not looked at: only a running service knows its domains.')
  if (found.domains === 0) return ok('There is no verified domain yet.')
  if (found.count === 0) return ok('Bounces that come after delivery find the way to this service.')
  const more = found.count > found.hosts.length ? `, and ${found.count - found.hosts.length} more` : ''
  const target = config.dnsTargets.mxHosts[0] ?? ''
  return warning(
    `No MX record of ${found.hosts.join(', ')}${more} leads here, so bounces that come after delivery are lost. Add the MX record 10 ${target}, or give the domain a mailfrom_host that has it.`,
  )
}

/** Networks often block outgoing port 25 without an error: connections just never succeed. */
const checkPort = async (parts: Asking): Promise<Finding> =>
  notNeeded(parts) ?? portFinding(parts, await parts.looks())

/** Whether mail servers can be reached on the port of direct delivery. Never rejects, and takes CHECK_MAX_MS at most. */
export const outgoingPortIn = (parts: LookParts): Promise<Finding> =>
  bounded(askServers(parts).then((looks) => portFinding(parts, looks)))

function portFinding({ config: { mxPort } }: LookParts, { reached, faults }: Looks): Finding {
  if (reached !== null) return ok(`Port ${mxPort} is open outwards: ${reached.host} was reached.`)
  return failed(
    `No mail server could be reached on port ${mxPort}: ${faults.join('; ')}. Ask your provider to open it, or send through a relay (SENDWRIGHT_DELIVERY).`,
  )
}

/** Which address receivers see: by NAT or a proxy another one than this machine has. */
async function checkPublicAddress(parts: Asking): Promise<Finding> {
  const idle = notNeeded(parts)
  if (idle) return idle
  const { reached, further } = await parts.looks()
  const looks = reached === null ? [] : [reached, ...further]
  const faults = looks.flatMap((look) => addressFault(look, parts.hostAddresses) ?? [])
  if (faults.length > 0) return warning(faults.join(' '))
  const sending = await sendingAddresses(parts)
  const [shown] = looks.filter(({ seenAs }) => seenAs !== null)
  if (shown) return ok(`Mail leaves from ${shown.seenAs}, as ${shown.host} sees it.`)
  const silent =
    reached === null ? 'No server was reached' : `${reached.host} did not say which address it sees`
  if (sending.length > 0) return ok(`${silent}; ${sending.join(', ')} is what this machine knows of.`)
  const local = reached?.localIp ?? '10.0.0.4'
  return warning(
    `${silent}, and this machine has no public address. Set SENDWRIGHT_IPS to the address that others see, as ${local}@203.0.113.7.`,
  )
}

/** What is wrong between a configured address and what a server sees; null: nothing, or it is not known. */
function addressFault({ ip, host, seenAs, localIp, fault }: Look, ofHost: readonly string[]): string | null {
  if (fault !== null) return `No connection from ${ip} to ${host}: ${fault}.`
  if (seenAs === null || seenAs === ip) return null
  if (ip !== null)
    return `Mail from ${ip} seems to leave from ${seenAs}, as ${host} says. Correct SENDWRIGHT_IPS.`
  if (ofHost.includes(seenAs)) return null
  return `Mail seems to leave from ${seenAs}, as ${host} says, which is no address of this machine. Set SENDWRIGHT_IPS=${localIp}@${seenAs}, so that events and lists of addresses name it.`
}

/** Proxies that addresses of ours are behind. */
const PING_MAX_MS = 5_000

async function checkScanners({ config }: CheckParts): Promise<Finding> {
  const pings = scannerPings(config)
  if (pings.length === 0)
    return ok(
      'No scanner of mail is set (SENDWRIGHT_OUTBOUND_CHECK, SENDWRIGHT_SPAM_SCORER, SENDWRIGHT_CLAMAV).',
    )
  const tried = await Promise.all(
    pings.map(({ setting, ping }) =>
      ping(AbortSignal.timeout(PING_MAX_MS)).then(
        () => null,
        (error: Error) => `${setting} does not answer: ${error.message}.`,
      ),
    ),
  )
  const faults = tried.filter((fault) => fault !== null)
  if (faults.length === 0)
    return ok(`Every scanner answers: ${pings.map(({ setting }) => setting).join(', ')}.`)
  return failed(`${faults.join(' ')} Mail goes without its check meanwhile.`)
}

async function checkProxies({ config }: CheckParts): Promise<Finding> {
  const proxies = new Map(
    config.sourceAddresses.flatMap(({ proxy }) => (proxy === undefined ? [] : [[proxyName(proxy), proxy]])),
  )
  if (proxies.size === 0) return ok('No address is behind a proxy (SENDWRIGHT_EGRESS).')
  const tried = await Promise.all(
    [...proxies.values()].map((proxy) =>
      tryProxy(proxy).then(
        () => null,
        (error: Error) => error.message,
      ),
    ),
  )
  const faults = tried.filter((fault) => fault !== null)
  if (faults.length === 0) return ok(`Every proxy accepts connections: ${[...proxies.keys()].join(', ')}.`)
  return failed(`${faults.map(sentence).join(' ')} Mail from addresses behind it waits, or uses others.`)
}

const sentence = (text: string) => `${text[0]?.toUpperCase()}${text.slice(1)}.`

/** Configured ones, else the public ones of this host, else what a server sees. */
async function sendingAddresses({ config, hostAddresses, looks }: Asking): Promise<string[]> {
  const known = seenAddresses(config.sourceAddresses, hostAddresses).slice(0, ADDRESSES_MAX)
  if (known.length > 0) return known
  const { reached } = await looks()
  return reached?.seenAs ? [reached.seenAs] : []
}

const UNKNOWN_ADDRESSES = warning(
  'The addresses that mail leaves from are not known: this host has no public one, and no server said. Set SENDWRIGHT_IPS.',
)

/** Large receivers refuse addresses without a name that resolves back to them (RFC 1912 §2.1). */
async function checkReverseNames(parts: Asking): Promise<Finding> {
  const idle = notNeeded(parts)
  if (idle) return idle
  const addresses = await sendingAddresses(parts)
  if (addresses.length === 0) return UNKNOWN_ADDRESSES
  const results = await Promise.all(addresses.map((ip) => confirmName(parts.resolver, ip)))
  const faults = results.flatMap(({ fault }) => fault ?? [])
  if (faults.length === 0) {
    return ok(
      `Every sending address has a name that leads back to it: ${results.map(({ name }) => name).join(', ')}.`,
    )
  }
  return failed(`${faults.join('; ')}. Ask the owner of the address to set its reverse name (PTR).`)
}

/** Any address of the public internet will do: no packet is sent. */
const PUBLIC_IPV6 = '2600::1'

/** Whether mail leaves by IPv6, and why not. A receiver that has nothing else is tried by it all the same. */
async function checkIpv6(parts: CheckParts): Promise<Finding> {
  const idle = notNeeded(parts)
  if (idle) return idle
  const { resolver, config, sourceTowards = systemSource } = parts
  const isConfigured = config.sourceAddresses.length > 0
  const sources = isConfigured
    ? config.sourceAddresses.map(({ ip }) => ip).filter((ip) => isIP(ip) === 6)
    : ((await sourceTowards(PUBLIC_IPV6)) ?? [])
  const addresses = [sources].flat().slice(0, ADDRESSES_MAX)
  if (addresses.length === 0)
    return ok(
      isConfigured
        ? 'IPv6 is not used: SENDWRIGHT_IPS names no IPv6 address.'
        : 'IPv6 is not used: this host has no IPv6 address that leads to the internet.',
    )
  const shown = addresses.join(', ')
  if (config.requireFcrdns === 'off')
    return ok(`IPv6 is used from ${shown}, with a reverse name or without (SENDWRIGHT_REQUIRE_FCRDNS).`)
  const names = await Promise.all(addresses.map((ip) => confirmName(resolver, ip)))
  const faults = names.flatMap(({ fault }) => fault ?? [])
  if (faults.length === 0) return ok(`IPv6 is used from ${shown}.`)
  const good = addresses.filter((_ip, at) => names[at]?.fault === null)
  const used = good.length > 0 ? `IPv6 is used from ${good.join(', ')} only` : 'IPv6 is not used'
  const otherwise =
    config.requireFcrdns === 'all' && isConfigured
      ? 'No mail leaves from there'
      : 'Mail leaves from there only for receivers that cannot be reached otherwise'
  return warning(
    `${used}: ${faults.join('; ')}. ${otherwise}. Ask the owner of the address to set its reverse name (PTR).`,
  )
}

/** The names in EHLO, which receivers look up (RFC 5321 §4.1.4). */
function checkHeloNames(parts: Asking): Promise<Finding> {
  const { resolver, config } = parts
  return checkAddresses(
    parts,
    (address) => heloFaults({ resolver, hostname: config.hostname }, address),
    'Every sending address names itself in EHLO by a name that has an address.',
  )
}

/** The SPF record that those of all sending domains include. */
function checkSenderPolicy(parts: Asking): Promise<Finding> {
  const { resolver, config } = parts
  const spfHost = config.dnsTargets.spfIncludeHost
  return checkAddresses(
    parts,
    (address) => spfFaults({ resolver, spfHost }, address),
    `The SPF record of ${spfHost} permits every sending address.`,
  )
}

/** Warnings: some receivers do not look. */
async function checkAddresses(
  parts: Asking,
  faultsOf: (address: NamedAddress) => Promise<NameFaults>,
  good: string,
): Promise<Finding> {
  const idle = notNeeded(parts)
  if (idle) return idle
  const addresses = await sendingAddresses(parts)
  if (addresses.length === 0) return UNKNOWN_ADDRESSES
  const { sourceAddresses } = parts.config
  const heloOf = (ip: string) => sourceAddresses.find((address) => address.ip === ip)?.helo ?? null
  const found = await Promise.all(addresses.map((ip) => faultsOf({ ip, helo: heloOf(ip) })))
  const faults = new Set(found.flatMap((of) => of ?? []))
  if (faults.size > 0) return warning([...faults].join(' '))
  return found.includes(null) ? warning('DNS did not answer for every address.') : ok(good)
}

async function checkBlocklists(parts: Asking): Promise<Finding> {
  const idle = notNeeded(parts)
  if (idle) return idle
  const { dnsblZones: zones } = parts.config
  if (zones.length === 0) return ok('No blocklist is configured (SENDWRIGHT_DNSBL_ZONES).')
  const addresses = await sendingAddresses(parts)
  if (addresses.length === 0) return UNKNOWN_ADDRESSES
  const lists = blocklistsOf(zones, 'addresses')
  const results = await Promise.all(
    lists.flatMap((list) => addresses.map((ip) => blocklistFinding(parts.resolver, list, ip))),
  )
  const listed = results.flatMap(({ kind, sentence }) => (kind === 'listed' ? sentence : []))
  const silent = new Set(results.flatMap(({ kind, sentence }) => (kind === 'silent' ? sentence : [])))
  if (listed.length > 0) return failed(`${listed.join('; ')}. See the list's own page for the reason.`)
  if (silent.size > 0) return warning(`${[...silent].join('; ')}. The other lists know nothing bad.`)
  return ok(`None of ${lists.map(({ zone }) => zone).join(', ')} lists a sending address.`)
}

/** A listing counts only if the list's test entries are as they must be (RFC 5782 section 5). */
async function blocklistFinding(resolver: Resolver, list: Blocklist, ip: string) {
  const entries = list.tests[blocklistKind(ip)]
  if (entries === undefined) return { kind: 'not-listed', sentence: '' } as const
  const zone = { zone: list.askedZone, shown: list.zone }
  const found = await queryBlocklist(resolver, ip, zone)
  const fault = found.kind === 'listed' ? await testBlocklist(resolver, zone, entries) : ''
  return fault === '' ? found : ({ kind: 'silent', sentence: fault } as const)
}

/** What receivers report themselves; a warning, since only some of them do. */
async function checkRefusals({ recentRefusals }: CheckParts): Promise<Finding> {
  const refusals = await recentRefusals()
  if (refusals === null) return skipped('What receivers refuse is known to a running service only.')
  if (refusals.length === 0)
    return ok(`No receiver refused this host or its domains in the last ${REFUSALS_HOURS} hours.`)
  const each = refusals.map(
    ({ ruleId, count, newestReply, explanation }) =>
      `${ruleId}, ${count} times (newest: "${newestReply}"): ${explanation}`,
  )
  return warning(
    `Receivers refused mail because of this host or its domains in the last ${REFUSALS_HOURS} hours. ${each.join(' ')} Mend the cause first, then ask the receiver or list to look again.`,
  )
}

/** A warning, as its mail goes to the next choice of a rule. */
async function checkRelays({ relays }: CheckParts): Promise<Finding> {
  if (relays === undefined) return skipped('The state of relays is known to a running service only.')
  const all = await relays()
  if (all.length === 0) return ok('There are no relays.')
  const sentences = all.map(({ name, state, pause, login }) => {
    const tokenFault = login?.oauth?.error ?? null
    if (tokenFault !== null) return `${name} gets no access token: ${tokenFault}.`
    if (pause !== null) return `${name} is paused since ${pause.since}.`
    if (state.word === 'open') return `${name} is open.`
    return `${name} is ${state.word} since ${state.since}: "${state.why}". POST /sendwright/v1/relays/${name}/test says more.`
  })
  const isFailing = all.some(
    ({ state, login }) => state.word !== 'open' || (login?.oauth?.error ?? null) !== null,
  )
  return (isFailing ? warning : ok)(sentences.join(' '))
}
