/**
 * A stub resolver: asks configured recursive servers and says what they said.
 *
 *  1. The name is normalised; the cache answers if it can; equal questions share one query.
 *  2. Servers are asked in order, those that lately did not answer last: UDP with EDNS0, then TCP when the
 *     reply is truncated, then the next server. The list is gone through `attempts` times.
 *  3. CNAMEs are followed within the reply and, where it stops short, by further questions.
 *  4. The answer is kept for its TTL, a "no" for the zone's negative TTL, a failure for some seconds.
 *
 * It validates no DNSSEC itself: `authenticated` is the AD bit of a server that was declared trusted or is
 * on this host (RFC 4035 §4.9.3, RFC 7672 §2.1.1). `node:dns` tells neither that bit nor who answered.
 */
import { randomInt } from 'node:crypto'
import { isIP } from 'node:net'
import type { Clock } from '../base/clock.ts'
import { createGate } from '../base/gate.ts'
import { classifyAddress } from '../base/ip.ts'
import { createTtlCache } from './cache.ts'
import { interpretReply } from './interpret.ts'
import { normalizeName } from './names.ts'
import {
  DnsSyntaxError,
  type DnsType,
  decodeReply,
  encodeQuery,
  isTruncated,
  type RecordData,
  type Reply,
  rcodeOf,
} from './packet.ts'
import {
  askOverTcp,
  askOverUdp,
  type Exchange,
  type ExchangeContext,
  type ServerAddress,
} from './transport.ts'

export type DnsFailureKind = 'servfail' | 'refused' | 'timeout' | 'malformed'

export interface DnsAnswer<T extends DnsType = DnsType> {
  kind: 'records' | 'nodata' | 'nxdomain' | DnsFailureKind
  /** Empty unless `kind` is 'records'. */
  records: readonly RecordData[T][]
  /** Targets of the CNAMEs that were followed, in order; the last one owns the records. */
  chain: readonly string[]
  /** How long the answer may still be kept; 0 for answers that must not be. */
  ttlSeconds: number
  /** Every step was validated by a trusted server. Says something about "no" answers too. */
  authenticated: boolean
  /** "address:port" of the server that gave the answer, or failed last; '' when none was asked. */
  server: string
  /** The name as it was asked (normalised) and the type. */
  asked: { name: string; type: T }
  /** Why there is no answer, for a person; '' unless `kind` is a failure or the name cannot exist. */
  problem: string
  /** No server was asked, since nothing could leave this machine: why. */
  localFault?: string
}

export interface QueryOptions {
  /** Ask the servers even if the cache knows; the answer is still cached. */
  fresh?: boolean
  /** Ask for DNSSEC signatures too (DO); servers that give the AD bit only then are old. */
  dnssecOk?: boolean
  /** Ends this caller's wait; the query itself runs on for others that share it. */
  signal?: AbortSignal
}

export interface Resolver {
  /** Never rejects for anything the network does; rejects with the signal's reason when that is aborted. */
  query<T extends DnsType>(name: string, type: T, options?: QueryOptions): Promise<DnsAnswer<T>>
  /** Ends all open questions as failures and lets no new ones out. */
  close(): void
}

export interface ResolverOptions {
  /** At least one; `host` is an IP address. */
  servers: readonly ServerAddress[]
  /** For one question to one server; default 3,000. */
  timeoutMs?: number
  /** How often the list of servers is gone through; default 2. */
  attempts?: number
  /** Answers kept; default 10,000. */
  cacheEntriesMax?: number
  /** The servers validate DNSSEC and the way to them is safe. Default: only for those on loopback. */
  trustAd?: boolean
  clock: Clock
}

const TIMEOUT_MS = 3000 // authoritative servers on other continents, with one loss in between
const ATTEMPTS = 2
const CACHE_ENTRIES_MAX = 10_000
/** A day: longer TTLs are more often a mistake than meant, and moved hosts should be seen. RFC 8767 §4. */
const TTL_SECONDS_MAX = 86_400
const NEGATIVE_TTL_SECONDS_MAX = 3 * 3600 // RFC 2308 §5: one to three hours work well
const FAILURE_TTL_SECONDS = 5 // RFC 9520 §3.2: failures are to be kept, for 1 s to 5 min
/** Larger answers come from nobody's mail domain and would let strangers fill the cache. */
const CACHED_RECORD_BYTES_MAX = 16_384
/** Questions on the wire at once, a socket each; file descriptors are for SMTP connections. */
export const OPEN_QUERIES_MAX = 256
const WAITING_QUERIES_MAX = 20_000 // about one retry wave; more would wait longer than their senders do
const SERVER_REST_MS = 30_000 // how long a silent server is asked last
const SERVERS_MAX = 8

/** What one server, or all of them, made of one question. */
type Told =
  | { kind: 'reply'; reply: Reply; server: Server }
  | { kind: DnsFailureKind; server: Server | null; problem: string; localFault?: string }

interface Server extends ServerAddress {
  label: string
  trusted: boolean
  restsUntilMs: number
}

/** Makes a resolver. @throws RangeError for no server, too many, or one that is not an address and port. */
export function createResolver(options: ResolverOptions): Resolver {
  const { clock, attempts = ATTEMPTS } = options
  const servers = options.servers.map((server) => toServer(server, options.trustAd ?? false))
  if (servers.length < 1 || servers.length > SERVERS_MAX)
    throw new RangeError(`Cannot use ${servers.length} DNS servers: 1 to ${SERVERS_MAX} are needed`)
  const cache = createTtlCache<DnsAnswer>(options.cacheEntriesMax ?? CACHE_ENTRIES_MAX, clock)
  const flights = new Map<string, Promise<DnsAnswer>>()
  const gate = createGate(OPEN_QUERIES_MAX, WAITING_QUERIES_MAX)
  const context: ExchangeContext = { clock, timeoutMs: options.timeoutMs ?? TIMEOUT_MS, open: new Set() }
  let closed = false

  /** The servers to ask for `type`, the best first. */
  function order(type: DnsType): Server[] {
    // A server that does not validate would say "no TLSA" where a validating one refuses to answer for a
    // forged zone: with both configured, falling from one to the other would switch DANE off.
    const able = type === 'TLSA' && servers.some((server) => server.trusted)
    const now = clock.monotonic()
    const candidates = servers.filter((server) => !able || server.trusted)
    const resting = (server: Server) => Number(server.restsUntilMs > now)
    return candidates.sort((a, b) => resting(a) - resting(b))
  }

  /** Asks the servers in turn until one says yes or no. */
  async function askServers(name: string, type: DnsType, dnssecOk: boolean): Promise<Told> {
    let last: Told = { kind: 'timeout', server: null, problem: 'the resolver was closed' }
    const refusing = new Set<Server>()
    for (let attempt = 0; attempt < attempts; attempt++) {
      for (const server of order(type)) {
        if (closed) return last
        // SERVFAIL of a validating server may mean a forged answer: one that does not look would pass it on.
        const distrusted = !server.trusted && [...refusing].some((other) => other.trusted)
        if (refusing.has(server) || distrusted) continue
        const told = await askServer(server, name, type, dnssecOk)
        // What is wrong with this machine says nothing about a server, and another one would not be asked either.
        if (told.kind === 'reply' || told.localFault !== undefined) return told
        if (told.kind === 'timeout') server.restsUntilMs = clock.monotonic() + SERVER_REST_MS
        if (told.kind === 'servfail' || told.kind === 'refused') refusing.add(server)
        // A server that said something explains more than one that kept silent.
        if (told.kind !== 'timeout' || last.kind === 'timeout') last = told
      }
    }
    return last
  }

  /** One server: UDP, without EDNS if it knows none, over TCP if the reply does not fit. */
  async function askServer(server: Server, name: string, type: DnsType, dnssecOk: boolean): Promise<Told> {
    for (const edns of [true, false]) {
      const query = encodeQuery({ id: randomInt(0x10000), name, type, edns, dnssecOk })
      let outcome = await throughGate(() => askOverUdp(server, query, context))
      if (outcome.kind === 'flooded' || (outcome.kind === 'packet' && isTruncated(outcome.packet)))
        outcome = await throughGate(() => askOverTcp(server, query, context))
      const knowsNoEdns = outcome.kind === 'packet' && [1, 4].includes(rcodeOf(outcome.packet))
      if (!edns || !knowsNoEdns) return readOutcome(outcome, server) // RFC 6891 §7
    }
    throw new Error('unreachable: the second round always returns')
  }

  async function throughGate(ask: () => Promise<Exchange>): Promise<Exchange> {
    if (!(await gate.enter())) return { kind: 'unreachable', problem: 'too many DNS queries are waiting' }
    try {
      return closed ? { kind: 'unreachable', problem: 'the resolver was closed' } : await ask()
    } finally {
      gate.leave()
    }
  }

  /** The whole answer for a name, CNAMEs followed. */
  async function resolve<T extends DnsType>(name: string, type: T, dnssecOk: boolean): Promise<DnsAnswer<T>> {
    let current = name
    let chain: string[] = []
    let ttlSeconds = TTL_SECONDS_MAX
    let authenticated = true
    // Ends: each round either returns or makes the chain longer, and the chain has a limit.
    for (;;) {
      const told = await askServers(current, type, dnssecOk)
      const asked = { name, type }
      const server = told.server?.label ?? ''
      if (told.kind !== 'reply') {
        const { kind, problem, localFault } = told
        const failed = { records: [], chain, ttlSeconds: 0, authenticated: false, server, asked }
        return { kind, ...failed, problem, ...(localFault !== undefined && { localFault }) }
      }
      const step = interpretReply(told.reply, name, type, chain)
      authenticated &&= told.server.trusted && told.reply.authenticData
      chain = step.chain
      if ('problem' in step) {
        const { kind, problem } = step
        return { kind, records: [], chain, ttlSeconds: 0, authenticated: false, server, asked, problem }
      }
      ttlSeconds = Math.min(ttlSeconds, step.ttlSeconds)
      if (step.kind === 'alias') {
        current = step.target
        continue
      }
      const records = step.kind === 'records' ? step.records : []
      return { kind: step.kind, records, chain, ttlSeconds, authenticated, server, asked, problem: '' }
    }
  }

  function remember(key: string, answer: DnsAnswer) {
    const size = answer.records.reduce<number>((sum, record) => sum + JSON.stringify(record).length, 0)
    cache.set(key, answer, size > CACHED_RECORD_BYTES_MAX ? 0 : secondsToKeep(answer))
  }

  return {
    async query<T extends DnsType>(name: string, type: T, query: QueryOptions = {}) {
      const { fresh = false, dnssecOk = false, signal } = query
      signal?.throwIfAborted()
      const normal = normalizeName(name)
      if (normal === null) return impossibleName(name, type)
      const key = `${type} ${normal}${dnssecOk ? ' +do' : ''}`
      const known = fresh ? undefined : cache.get(key)
      if (known !== undefined) {
        const ttlSeconds = Math.min(known.value.ttlSeconds, known.ttlSeconds)
        return { ...known.value, ttlSeconds } as DnsAnswer<T> // the type is part of the key
      }
      let flight = flights.get(key) as Promise<DnsAnswer<T>> | undefined
      if (flight === undefined) {
        flight = resolve(normal, type, dnssecOk).finally(() => flights.delete(key))
        flights.set(key, flight)
        flight.then((answer) => remember(key, answer))
      }
      return signal === undefined ? flight : untilAborted(flight, signal)
    },
    close() {
      closed = true
      for (const abandon of [...context.open]) abandon()
    },
  }
}

function toServer(server: ServerAddress, trustAd: boolean): Server {
  const { host, port } = server
  if (isIP(host) === 0 || !Number.isInteger(port) || port < 1 || port > 65_535)
    throw new RangeError(`Cannot use the DNS server "${host}:${port}": an IP address and a port are needed`)
  const label = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
  const trusted = trustAd || classifyAddress(host) === 'loopback'
  return { host, port, label, trusted, restsUntilMs: Number.NEGATIVE_INFINITY }
}

/** What came back, read: a yes or no of the server, or why there is none. */
function readOutcome(outcome: Exchange, server: Server): Told {
  switch (outcome.kind) {
    case 'packet':
      return readPacket(outcome.packet, server)
    case 'timeout':
      return { kind: 'timeout', server, problem: 'it did not answer in time' }
    case 'unreachable':
      return outcome.localFault === undefined
        ? { kind: 'timeout', server, problem: outcome.problem }
        : { kind: 'timeout', server: null, problem: outcome.problem, localFault: outcome.localFault }
    case 'malformed':
      return { kind: 'malformed', server, problem: outcome.problem }
    case 'flooded':
      return { kind: 'malformed', server, problem: 'too many datagrams that answer other questions' }
  }
}

function readPacket(packet: Buffer, server: Server): Told {
  const rcode = rcodeOf(packet)
  if (rcode === 2) return { kind: 'servfail', server, problem: 'SERVFAIL' }
  if (rcode === 5) return { kind: 'refused', server, problem: 'REFUSED' }
  if (rcode !== 0 && rcode !== 3) return { kind: 'servfail', server, problem: `response code ${rcode}` }
  if (isTruncated(packet))
    return { kind: 'malformed', server, problem: 'the reply is truncated over TCP too' }
  try {
    return { kind: 'reply', reply: decodeReply(packet), server }
  } catch (error) {
    if (!(error instanceof DnsSyntaxError)) throw error
    return { kind: 'malformed', server, problem: error.message }
  }
}

function secondsToKeep(answer: DnsAnswer): number {
  if (answer.localFault !== undefined) return 0
  if (answer.kind === 'records') return Math.min(answer.ttlSeconds, TTL_SECONDS_MAX)
  if (answer.kind === 'nodata' || answer.kind === 'nxdomain')
    return Math.min(answer.ttlSeconds, NEGATIVE_TTL_SECONDS_MAX)
  return FAILURE_TTL_SECONDS
}

/** A name that DNS cannot hold does not exist, and no server needs to be asked. */
function impossibleName<T extends DnsType>(name: string, type: T): DnsAnswer<T> {
  const problem = `"${name.slice(0, 300)}" cannot be a name in DNS`
  const asked = { name, type }
  return {
    kind: 'nxdomain',
    records: [],
    chain: [],
    ttlSeconds: 0,
    authenticated: false,
    server: '',
    asked,
    problem,
  }
}

function untilAborted<T>(flight: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    flight.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}
