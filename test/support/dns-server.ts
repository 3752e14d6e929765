/**
 * A DNS server on 127.0.0.1 for tests: real packets over UDP and TCP on one port, records and misbehaviour
 * set by name. It answers like a recursive resolver: with the whole CNAME chain, NXDOMAIN for unknown names,
 * NODATA (with an SOA) for missing types.
 *
 *     const dns = await createDnsServer()
 *     dns.set('example.org', 'MX', [[10, 'mx.example.org']])
 *     dns.misbehave('broken.example', 'servfail')
 *     ... await dns.close()
 */
import { createSocket, type RemoteInfo } from 'node:dgram'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import {
  type Answer,
  AUTHENTIC_DATA,
  AUTHORITATIVE_ANSWER,
  type DecodedPacket,
  decode,
  encode,
  type Question,
  RECURSION_AVAILABLE,
  RECURSION_DESIRED,
  TRUNCATED_RESPONSE,
} from 'dns-packet'

/** The form of each type's values in `set`. A TXT array is one record of several strings. */
export interface StubValues {
  A: string
  AAAA: string
  CNAME: string
  NS: string
  PTR: string
  MX: readonly [preference: number, exchange: string]
  TXT: string | readonly string[]
  TLSA: { usage: number; selector: number; matchingType: number; certificate: Buffer }
}
export type StubType = keyof StubValues

export type Misbehaviour =
  | 'servfail'
  | 'refused'
  | 'formerr'
  | 'drop' // no answer at all
  | 'garbage' // the right id and question, then bytes that are not records
  | 'wrong-id'
  | 'wrong-question'
  | 'truncate' // TC without records over UDP, all of it over TCP
  | 'truncate-always' // TC over TCP as well
  | 'close-tcp' // TC over UDP, then the TCP connection ends without an answer
  | 'no-edns' // FORMERR to every query with an OPT record
  | 'referral' // NS records of somebody else and no recursion
  | 'late' // each query is answered when the next one for the same name and type arrives
  | 'flood' // many datagrams with wrong ids, then the right answer, over UDP; TCP is fine

export interface StubQuery {
  name: string
  type: string
  transport: 'udp' | 'tcp'
  id: number
  /** Port the query came from. */
  sourcePort: number
  edns: boolean
  dnssecOk: boolean
}

export interface DnsServer {
  readonly host: string
  readonly port: number
  /** All queries received, in order. */
  readonly queries: StubQuery[]
  /** Sets the AD bit on every answer with records or a firm "no". Default false. */
  authentic: boolean
  /** Seconds in the SOA of negative answers; null leaves the SOA out. Default 60. */
  negativeTtlSeconds: number | null
  /** Answers with the whole CNAME chain (default), or with its first link only. */
  chaseCnames: boolean
  /** Changes a reply's final bytes, for hostile packets. */
  mutate: ((packet: Buffer) => Buffer) | null
  /** Replaces the records of a name and type; an empty list leaves a name without that type. */
  set<T extends StubType>(name: string, type: T, values: readonly StubValues[T][], ttlSeconds?: number): void
  /** Removes all records and misbehaviour of a name, which then does not exist. */
  remove(name: string): void
  /** Makes the answers for a name faulty, for one type or all; null restores them. */
  misbehave(name: string, how: Misbehaviour | null, type?: StubType): void
  /** Holds replies back until the returned function is called. */
  hold(): () => void
  /** Resolves with the next query from now on. */
  nextQuery(): Promise<StubQuery>
  close(): Promise<void>
}

const TTL_SECONDS = 300
const BIND_ATTEMPTS = 20 // the UDP side of a port that the system gave us for TCP may be in use
const PLAIN_UDP_BYTES = 512 // without EDNS, RFC 1035 §4.2.1
const CHAIN_MAX = 20 // enough rounds of a loop to be noticed
const FLOOD_DATAGRAMS = 30
const TXT_STRING_BYTES_MAX = 255

export async function createDnsServer(options: { port?: number } = {}): Promise<DnsServer> {
  const host = '127.0.0.1'
  const records = new Map<string, Answer[]>()
  const faults = new Map<string, Misbehaviour>()
  const connections = new Set<Socket>()
  const waiting: ((query: StubQuery) => void)[] = []
  const late = new Map<string, () => void>()
  let existing: Set<string> | null = null
  let held: (() => void)[] | null = null
  const { tcp, udp, port } = await listen(host, options.port ?? 0)

  const stub: DnsServer = {
    host,
    port,
    queries: [],
    authentic: false,
    negativeTtlSeconds: 60,
    chaseCnames: true,
    mutate: null,
    set(name, type, values, ttlSeconds = TTL_SECONDS) {
      if (existing) addExisting(existing, keyOf(name, type))
      records.set(
        keyOf(name, type),
        values.map((value) => toAnswer(name, type, value, ttlSeconds)),
      )
    },
    remove(name) {
      existing = null
      for (const map of [records, faults])
        for (const key of [...map.keys()]) if (key.startsWith(`${name.toLowerCase()} `)) map.delete(key)
    },
    misbehave(name, how, type) {
      const key = keyOf(name, type ?? '*')
      if (how === null) faults.delete(key)
      else faults.set(key, how)
    },
    hold() {
      const mine: (() => void)[] = []
      held = mine
      return () => {
        if (held === mine) held = null
        for (const send of mine.splice(0)) send()
      }
    },
    nextQuery: () => new Promise((resolve) => waiting.push(resolve)),
    async close() {
      held = null
      for (const connection of connections) connection.destroy()
      udp.close()
      tcp.close()
      await Promise.all([once(udp, 'close'), once(tcp, 'close')])
    },
  }

  function receive(
    bytes: Buffer,
    transport: 'udp' | 'tcp',
    sourcePort: number,
    send: (packet: Buffer) => void,
    hangUp: () => void,
  ) {
    const query = decode(bytes)
    const question = query.questions?.[0] as Question
    const opt = query.additionals?.find((record) => record.type === 'OPT')
    const entry: StubQuery = {
      name: question.name,
      type: question.type,
      transport,
      id: query.id ?? 0,
      sourcePort,
      edns: opt !== undefined,
      dnssecOk: opt?.type === 'OPT' && opt.flag_do,
    }
    stub.queries.push(entry)
    const key = keyOf(question.name, question.type)
    const fault = faults.get(key) ?? faults.get(keyOf(question.name, '*'))
    const answer = () => {
      if (fault === 'close-tcp' && transport === 'tcp') return hangUp()
      for (const packet of replies(query, question, fault, entry))
        send(stub.mutate ? stub.mutate(packet) : packet)
    }
    if (held) held.push(answer)
    else if (fault === 'late') {
      late.get(key)?.()
      late.set(key, answer)
    } else answer()
    for (const wake of waiting.splice(0)) wake(entry)
  }

  /** The packets that answer one query: none, one, or many. */
  function replies(
    query: DecodedPacket,
    question: Question,
    fault: Misbehaviour | undefined,
    entry: StubQuery,
  ): Buffer[] {
    const udpLimit = query.additionals?.find((record) => record.type === 'OPT')
    const bare = { id: query.id ?? 0, questions: [question] }
    const over = (rcode: number, extra = 0) => reply({ ...bare }, rcode, extra)
    const cut = () => over(0, TRUNCATED_RESPONSE)
    const normal = () => {
      const packet = lookUp(bare, question)
      const limit = udpLimit?.type === 'OPT' ? udpLimit.udpPayloadSize : PLAIN_UDP_BYTES
      return entry.transport === 'udp' && packet.length > limit ? cut() : packet
    }
    switch (fault) {
      case undefined:
      case 'late':
        return [normal()]
      case 'servfail':
        return [over(2)]
      case 'refused':
        return [over(5)]
      case 'formerr':
        return [over(1)]
      case 'drop':
        return []
      case 'garbage': {
        const packet = Buffer.concat([over(0), Buffer.from([0xc0, 0xff, 0xee])])
        packet.writeUInt16BE(1, 6) // claims to have one answer
        return [packet]
      }
      case 'wrong-id': {
        const packet = normal()
        packet.writeUInt16BE((packet.readUInt16BE(0) + 1) & 0xffff, 0)
        return [packet]
      }
      case 'wrong-question':
        return [
          lookUp({ ...bare, questions: [{ ...question, name: `x${question.name.slice(1)}` }] }, question),
        ]
      case 'truncate':
      case 'close-tcp':
        return [entry.transport === 'udp' ? cut() : normal()]
      case 'truncate-always':
        return [cut()]
      case 'no-edns':
        return [entry.edns ? over(1) : normal()]
      case 'referral': {
        const ns = toAnswer('example', 'NS', 'ns.example', TTL_SECONDS)
        return [encode({ ...bare, type: 'response', flags: 0, authorities: [ns] })]
      }
      case 'flood': {
        if (entry.transport === 'tcp') return [normal()]
        const wrong = Array.from({ length: FLOOD_DATAGRAMS }, (_, i) => {
          const packet = normal()
          packet.writeUInt16BE((entry.id + 1 + i) & 0xffff, 0)
          return packet
        })
        return [...wrong, normal()]
      }
    }
  }

  function lookUp(bare: { id: number; questions: Question[] }, question: Question): Buffer {
    const answers: Answer[] = []
    let name = question.name.toLowerCase()
    for (let link = 0; link < CHAIN_MAX; link++) {
      const found = records.get(keyOf(name, question.type))
      const alias = question.type === 'CNAME' ? undefined : records.get(keyOf(name, 'CNAME'))?.[0]
      if (found?.length) {
        answers.push(...found)
        break
      }
      if (alias?.type !== 'CNAME') {
        const authorities = stub.negativeTtlSeconds === null ? [] : [soa(name, stub.negativeTtlSeconds)]
        return reply({ ...bare, answers, authorities }, exists(name) ? 0 : 3)
      }
      answers.push(alias)
      name = alias.data.toLowerCase()
      if (!stub.chaseCnames) break
    }
    return reply({ ...bare, answers }, 0)
  }

  /** A name with records, or with names below it (an empty non-terminal), exists. */
  function exists(name: string): boolean {
    if (existing === null) {
      existing = new Set()
      for (const key of records.keys()) addExisting(existing, key)
    }
    return existing.has(name)
  }

  function reply(
    packet: { id: number; questions: Question[]; answers?: Answer[]; authorities?: Answer[] },
    rcode: number,
    extraFlags = 0,
  ): Buffer {
    const ad = stub.authentic && (rcode === 0 || rcode === 3) ? AUTHENTIC_DATA : 0
    const flags = RECURSION_DESIRED | RECURSION_AVAILABLE | AUTHORITATIVE_ANSWER | ad | extraFlags | rcode
    return encode({ ...packet, type: 'response', flags })
  }

  udp.on('message', (bytes: Buffer, peer: RemoteInfo) => {
    const send = (packet: Buffer) => udp.send(packet, peer.port, peer.address)
    receive(bytes, 'udp', peer.port, send, () => {})
  })
  tcp.on('connection', (socket) => {
    connections.add(socket)
    let received = Buffer.alloc(0)
    socket.on('error', () => {}) // the client may hang up while we answer
    socket.on('close', () => connections.delete(socket))
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk])
      while (received.length >= 2 && received.length >= received.readUInt16BE(0) + 2) {
        const size = received.readUInt16BE(0)
        const message = received.subarray(2, size + 2)
        received = received.subarray(size + 2)
        receive(
          message,
          'tcp',
          socket.remotePort ?? 0,
          (packet) => writeTcp(socket, packet),
          () => socket.destroy(),
        )
      }
    })
  })
  return stub
}

/** In two segments split within the length, as on a slow network: readers must not rely on one read. */
function writeTcp(socket: Socket, packet: Buffer): void {
  const length = Buffer.alloc(2)
  length.writeUInt16BE(packet.length)
  socket.write(length.subarray(0, 1))
  setImmediate(() => {
    if (!socket.destroyed) socket.write(Buffer.concat([length.subarray(1), packet]))
  })
}

/** One port for both, free on both. */
async function listen(host: string, wanted: number) {
  for (let attempt = 1; ; attempt++) {
    const tcp = createServer()
    tcp.listen(wanted, host)
    await once(tcp, 'listening')
    const { port } = tcp.address() as AddressInfo
    const udp = createSocket('udp4')
    try {
      udp.bind(port, host)
      await once(udp, 'listening')
      return { tcp, udp, port }
    } catch (error) {
      tcp.close()
      udp.close()
      if (wanted !== 0 || attempt === BIND_ATTEMPTS) throw error
    }
  }
}

/** The owner of a record and all names above it. */
function addExisting(names: Set<string>, key: string): void {
  const labels = (key.split(' ', 1)[0] as string).split('.')
  for (let from = 0; from < labels.length; from++) names.add(labels.slice(from).join('.'))
}

const keyOf = (name: string, type: string) => `${name.toLowerCase().replace(/\.$/, '')} ${type}`

/** Here the zone of every name is its last two labels: enough for an SOA that covers it. */
function soa(name: string, minimum: number): Answer {
  const zone = name.split('.').slice(-2).join('.')
  return {
    type: 'SOA',
    name: zone,
    class: 'IN',
    ttl: minimum,
    data: { mname: 'ns.stub', rname: 'hostmaster.stub', minimum },
  }
}

function toAnswer<T extends StubType>(name: string, type: T, value: StubValues[T], ttl: number): Answer {
  const base = { name: name.toLowerCase(), class: 'IN' as const, ttl }
  // TypeScript loses the link between type and value in a generic function; each branch restores it.
  const pair = { type, value } as { [K in StubType]: { type: K; value: StubValues[K] } }[StubType]
  switch (pair.type) {
    case 'MX':
      return { ...base, type: 'MX', data: { preference: pair.value[0], exchange: pair.value[1] } }
    case 'TXT': {
      const strings = typeof pair.value === 'string' ? splitText(pair.value) : pair.value
      return { ...base, type: 'TXT', data: [...strings] }
    }
    case 'TLSA':
      return { ...base, type: 'TLSA', data: pair.value }
    default:
      return { ...base, type: pair.type, data: pair.value }
  }
}

function splitText(text: string): string[] {
  const parts: string[] = []
  for (let at = 0; at < text.length; at += TXT_STRING_BYTES_MAX)
    parts.push(text.slice(at, at + TXT_STRING_BYTES_MAX))
  return parts.length > 0 ? parts : ['']
}
