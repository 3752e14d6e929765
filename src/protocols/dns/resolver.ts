/**
 * A stub resolver: queries the configured recursive servers.
 *
 *  1. The name is normalised; the cache answers if it can; identical queries in pending share one.
 *  2. Servers are queried in order, those that recently timed out last: UDP with EDNS0, then TCP when the reply is
 *     truncated, then the next server. The list is repeated `attempts` times. A server that takes long is still listened
 *     to while the next one, or the same one again, is queried: its late answer counts.
 *  3. CNAMEs are followed within the reply and, where it ends early, by further queries.
 *  4. The answer is cached for its TTL, a negative one for the zone's negative TTL, a failure for some seconds.
 *
 * It does not validate DNSSEC itself: `authenticated` is the AD bit of a server that is configured as trusted or is
 * on this host (RFC 4035 §4.9.3, RFC 7672 §2.1.1). `node:dns` exposes neither that bit nor the answering server.
 */
import { randomInt } from 'node:crypto'
import { isIP } from 'node:net'
import { createGate } from '../../base/flow/gate.ts'
import { untilAborted } from '../../base/flow/pause.ts'
import { classifyAddress } from '../../base/net/ip.ts'
import type { Clock } from '../../base/time/clock.ts'
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
  EXCHANGES_MAX,
  type Exchange,
  OpenExchanges,
  queryOverTcp,
  queryOverUdp,
  type ServerAddress,
} from './query-transport.ts'

type DnsFailureKind = 'servfail' | 'refused' | 'timeout' | 'malformed'

export interface DnsAnswer<T extends DnsType = DnsType> {
  kind: 'records' | 'nodata' | 'nxdomain' | DnsFailureKind
  /** Empty unless `kind` is 'records'. */
  records: readonly RecordData[T][]
  /** Targets of the CNAMEs that were followed, in order; the last one owns the records. */
  chain: readonly string[]
  /** How long the answer may still be cached; 0: not at all. */
  ttlSeconds: number
  /** Every step was validated by a trusted server. Applies to negative answers too. */
  authenticated: boolean
  /** "address:port" of the server that answered, or failed last; '' when none was queried. */
  server: string
  /** The name as queried (normalised) and the type. */
  asked: { name: string; type: T }
  /** Why there is no answer, for a person; '' unless `kind` is a failure or the name cannot exist. */
  problem: string
  /** No query was sent, because nothing could leave this machine: why. */
  localFault?: string
}

/** Whether DNS has answered, be it that there is no such record. */
export const isDefinite = ({ kind }: Pick<DnsAnswer, 'kind'>) =>
  kind === 'records' || kind === 'nodata' || kind === 'nxdomain'

interface QueryOptions {
  /** Query the servers even if the answer is cached; the new answer is cached. */
  fresh?: boolean
  /** Ends this caller's wait; the query itself continues for others that share it. */
  signal?: AbortSignal
}

export type Resolver = ReturnType<typeof createResolver>

export interface ResolverOptions {
  /** At least one; `host` is an IP address. */
  servers: readonly ServerAddress[]
  /** After how long without an answer the next server is queried, twice as long at each repetition; default 5,000. */
  timeoutMs?: number
  /** How often the list of servers is tried; default 2. */
  attempts?: number
  /** Cached answers; default 10,000. */
  cacheEntriesMax?: number
  /** The servers validate DNSSEC and the path to them is secure. Default: only for those on loopback. */
  trustAd?: boolean
  clock: Clock
}

const TIMEOUT_MS = 5000 // recursive servers give slow zones some seconds; resolv.conf(5) has the same
const ATTEMPTS = 2
const CACHE_ENTRIES_MAX = 10_000
/** A day: longer TTLs are more often mistakes, and moved hosts should be noticed. RFC 8767 §4. */
const TTL_SECONDS_MAX = 86_400
const NEGATIVE_TTL_SECONDS_MAX = 3 * 3600 // RFC 2308 §5: one to three hours work well
const FAILURE_TTL_SECONDS = 5 // RFC 9520 §3.2: failures are to be cached, for 1 s to 5 min
/** No mail domain has larger answers, and strangers could fill the cache with them. */
const CACHED_RECORD_BYTES_MAX = 16_384
/** Concurrent queries to servers that answer in time, a socket or two each; file descriptors are for SMTP connections. */
const PROMPT_QUERIES_MAX = 256
/**
 * A query that takes longer than this is slow, and leaves its place to another one: names whose servers never answer must
 * not delay the others.
 */
const SLOW_AFTER_MS = 500
const SLOW_QUERIES_MAX = 2048
/** Sockets of all queries; a slow one has another one once it is repeated. */
export const DNS_SOCKETS_MAX = PROMPT_QUERIES_MAX + EXCHANGES_MAX * SLOW_QUERIES_MAX
const WAITING_QUERIES_MAX = 20_000 // about one retry wave; more would wait longer than their senders do
const SERVER_BACK_OFF_MS = 30_000 // how long a server that timed out is queried last
const SERVERS_MAX = 8

/** The result of a query to one server, or to all of them. */
type QueryResult =
  | { kind: 'reply'; reply: Reply; server: Server }
  | { kind: DnsFailureKind; server: Server | null; problem: string; localFault?: string }

interface Server extends ServerAddress {
  label: string
  trusted: boolean
  backOffUntilMs: number
}

/** @throws RangeError for no server, too many, or one that is not an address and port */
export function createResolver(options: ResolverOptions) {
  const { clock, attempts = ATTEMPTS } = options
  const servers = options.servers.map((server) => toServer(server, options.trustAd ?? false))
  if (servers.length < 1 || servers.length > SERVERS_MAX)
    throw new RangeError(`Cannot use ${servers.length} DNS servers: 1 to ${SERVERS_MAX} are needed`)
  const cache = createTtlCache<DnsAnswer>(options.cacheEntriesMax ?? CACHE_ENTRIES_MAX, clock)
  const inFlight = new Map<string, Promise<DnsAnswer>>()
  const gate = createGate(PROMPT_QUERIES_MAX, WAITING_QUERIES_MAX)
  let slow = 0
  const { timeoutMs = TIMEOUT_MS } = options
  /** Exchanges by query. */
  const open = new Set<OpenExchanges>()
  let closed = false

  /** The servers to query for `type`, the best first. */
  function order(type: DnsType): Server[] {
    // A server that does not validate would return "no TLSA" where a validating one refuses to answer for a forged
    // zone: with both configured, falling back from one to the other would disable DANE.
    const needsTrust = type === 'TLSA' && servers.some((server) => server.trusted)
    const now = clock.monotonic()
    const candidates = servers.filter((server) => !needsTrust || server.trusted)
    const inBackOff = (server: Server) => Number(server.backOffUntilMs > now)
    return candidates.sort((a, b) => inBackOff(a) - inBackOff(b))
  }

  async function queryServers(name: string, type: DnsType): Promise<QueryResult> {
    if (!(await gate.enter()))
      return { kind: 'timeout', server: null, problem: 'too many DNS queries are waiting' }
    let isSlow = false
    const patience = clock.setTimer(SLOW_AFTER_MS, () => {
      if (slow >= SLOW_QUERIES_MAX) return
      slow += 1
      isSlow = true
      gate.leave()
    })
    const exchanges = new OpenExchanges()
    open.add(exchanges)
    try {
      return await queryInTurn(exchanges, name, type)
    } finally {
      open.delete(exchanges)
      exchanges.end()
      patience.cancel()
      if (isSlow) slow -= 1
      else gate.leave()
    }
  }

  /** Queries the servers in turn until one gives a definite answer. The last two exchanges without an answer stay open. */
  async function queryInTurn(exchanges: OpenExchanges, name: string, type: DnsType): Promise<QueryResult> {
    let last: QueryResult = { kind: 'timeout', server: null, problem: 'the resolver was closed' }
    const refusing = new Set<Server>()
    const answered = Promise.withResolvers<QueryResult>()
    // SERVFAIL of a validating server may mean a forged answer, which a non-validating one would pass on.
    const distrusted = (server: Server) => !server.trusted && [...refusing].some(({ trusted }) => trusted)
    const learn = (server: Server, result: QueryResult) => {
      if (exchanges.ended) return
      // A fault of this machine says nothing about the server, and would affect the next one as well.
      const isDefinite = result.kind === 'reply' || result.localFault !== undefined
      if (isDefinite && !distrusted(server)) return answered.resolve(result)
      if (result.kind === 'timeout') server.backOffUntilMs = clock.monotonic() + SERVER_BACK_OFF_MS
      if (result.kind === 'servfail' || result.kind === 'refused') refusing.add(server)
      // A reply explains more than a time-out.
      if (result.kind !== 'timeout' || last.kind === 'timeout') last = result
    }
    for (let attempt = 0; attempt < attempts; attempt++) {
      for (const server of order(type)) {
        if (closed) return last
        if (refusing.has(server) || distrusted(server)) continue
        const ended = queryServer(exchanges, server, name, type).then((result) => {
          learn(server, result)
          return 'ended' as const
        })
        const result = await Promise.race([answered.promise, within(clock, timeoutMs * 2 ** attempt, ended)])
        if (typeof result === 'object') return result
        if (result === 'timeout') learn(server, readOutcome({ kind: 'timeout' }, server))
      }
    }
    return last
  }

  function store(key: string, answer: DnsAnswer) {
    const size = answer.records.reduce<number>((sum, record) => sum + JSON.stringify(record).length, 0)
    cache.set(key, answer, size > CACHED_RECORD_BYTES_MAX ? 0 : cacheSeconds(answer))
  }

  return {
    /** Never rejects for network failures; rejects with the signal's reason when that is aborted. */
    async query<T extends DnsType>(name: string, type: T, query: QueryOptions = {}): Promise<DnsAnswer<T>> {
      const { fresh = false, signal } = query
      signal?.throwIfAborted()
      const normal = normalizeName(name)
      if (normal === null) return impossibleName(name, type)
      const key = `${type} ${normal}`
      const hit = fresh ? undefined : cache.get(key)
      if (hit !== undefined) {
        const ttlSeconds = Math.min(hit.value.ttlSeconds, hit.ttlSeconds)
        return { ...hit.value, ttlSeconds } as DnsAnswer<T> // the type is part of the key
      }
      let pending = inFlight.get(key) as Promise<DnsAnswer<T>> | undefined
      if (pending === undefined) {
        pending = followAliases(normal, type, queryServers).finally(() => inFlight.delete(key))
        inFlight.set(key, pending)
        pending.then((answer) => store(key, answer))
      }
      return signal === undefined ? pending : untilAborted(pending, signal)
    },
    /** Ends all open queries as failures and sends no more. */
    close(): void {
      closed = true
      for (const exchanges of [...open]) exchanges.end()
    },
  }
}

/** Queries one server: UDP, without EDNS if it does not support it, over TCP if the reply does not fit. */
async function queryServer(exchanges: OpenExchanges, server: Server, name: string, type: DnsType) {
  for (const edns of [true, false]) {
    const query = encodeQuery({ id: randomInt(0x10000), name, type, edns })
    let outcome: Exchange = await queryOverUdp(server, query, exchanges)
    if (outcome.kind === 'flooded' || (outcome.kind === 'packet' && isTruncated(outcome.packet)))
      outcome = await queryOverTcp(server, query, exchanges)
    const lacksEdns = outcome.kind === 'packet' && [1, 4].includes(rcodeOf(outcome.packet))
    if (!edns || !lacksEdns) return readOutcome(outcome, server) // RFC 6891 §7
  }
  throw new Error('unreachable: the second round always returns')
}

/** The whole answer for a name, with CNAMEs followed. */
async function followAliases<T extends DnsType>(
  name: string,
  type: T,
  queryServers: (name: string, type: DnsType) => Promise<QueryResult>,
): Promise<DnsAnswer<T>> {
  let current = name
  let chain: string[] = []
  let ttlSeconds = TTL_SECONDS_MAX
  let authenticated = true
  // Terminates: each round either returns or makes the chain longer, and the chain has a limit.
  for (;;) {
    const result = await queryServers(current, type)
    const asked = { name, type }
    const server = result.server?.label ?? ''
    if (result.kind !== 'reply') {
      const { kind, problem, localFault } = result
      const failed = { records: [], chain, ttlSeconds: 0, authenticated: false, server, asked }
      return { kind, ...failed, problem, ...(localFault !== undefined && { localFault }) }
    }
    const step = interpretReply(result.reply, name, type, chain)
    authenticated &&= result.server.trusted && result.reply.authenticData
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

function toServer(server: ServerAddress, trustAd: boolean): Server {
  const { host, port } = server
  if (isIP(host) === 0 || !Number.isInteger(port) || port < 1 || port > 65_535)
    throw new RangeError(`Cannot use the DNS server "${host}:${port}": an IP address and a port are needed`)
  const label = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
  const trusted = trustAd || classifyAddress(host) === 'loopback'
  return { host, port, label, trusted, backOffUntilMs: Number.NEGATIVE_INFINITY }
}

/** What `promise` resolves to, or `timeout` after `ms`. */
function within<T>(clock: Clock, ms: number, promise: Promise<T>): Promise<T | 'timeout'> {
  return new Promise((resolve) => {
    const timer = clock.setTimer(ms, () => resolve('timeout'))
    promise.then(resolve).finally(() => timer.cancel())
  })
}

/** Interprets the outcome of one exchange. */
function readOutcome(outcome: Exchange, server: Server): QueryResult {
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

function readPacket(packet: Buffer, server: Server): QueryResult {
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

function cacheSeconds(answer: DnsAnswer): number {
  if (answer.localFault !== undefined) return 0
  if (answer.kind === 'records') return Math.min(answer.ttlSeconds, TTL_SECONDS_MAX)
  if (answer.kind === 'nodata' || answer.kind === 'nxdomain')
    return Math.min(answer.ttlSeconds, NEGATIVE_TTL_SECONDS_MAX)
  return FAILURE_TTL_SECONDS
}

/** A name that DNS cannot hold does not exist, so no server is queried. */
function impossibleName<T extends DnsType>(name: string, type: T): DnsAnswer<T> {
  const problem = `"${name.slice(0, 300)}" cannot be a name in DNS`
  const nothing = { records: [], chain: [], ttlSeconds: 0, authenticated: false, server: '' }
  return { kind: 'nxdomain', ...nothing, asked: { name, type }, problem }
}
