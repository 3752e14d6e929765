/**
 * A small authoritative name server for one zone that holds only TXT records, provided by a function: UDP and TCP
 * on one port. It answers for names in the zone and refuses everything else, so that it cannot be abused for
 * reflection or recursion. RFC 1035 §4.2, RFC 2308 §2 (negative answers carry the SOA), RFC 7766.
 *
 * Left out: zone transfers, DNSSEC, updates. The parent zone must delegate to this server (NS and glue).
 */
import { createSocket, type RemoteInfo } from 'node:dgram'
import { once } from 'node:events'
import { createServer, isIPv6, type Server, type Socket } from 'node:net'
import {
  type Answer,
  AUTHORITATIVE_ANSWER,
  type DecodedPacket,
  decode,
  encode,
  TRUNCATED_RESPONSE,
} from 'dns-packet'
import { isWithin, normalizeName } from './names.ts'
import { OPT_RECORD, UDP_PAYLOAD_BYTES } from './packet.ts'

export interface ZoneData {
  /** Normalised name of the zone. */
  zone: string
  /** Host name of this server, for SOA and NS. */
  nameServer: string
  /** The text values at a normalised name within the zone; null: the name does not exist. */
  lookUp(name: string): Promise<readonly string[] | null>
}

export type Responder = Awaited<ReturnType<typeof startResponder>>

const TTL_SECONDS = 300 // a changed key is visible soon; rotation waits far longer
const QUERY_BYTES_MAX = 1024 // a question and an OPT record fit in 300
const PLAIN_UDP_BYTES = 512 // without EDNS, RFC 1035 §4.2.1
const TXT_STRING_BYTES_MAX = 255
const TCP_CONNECTIONS_MAX = 64
const TCP_IDLE_MS = 10_000 // RFC 7766 §6.2.3: a few seconds
/** Queries processed at once; further ones are dropped, and resolvers retry. */
const OPEN_MAX = 256
const RCODE = { ok: 0, format: 1, failure: 2, noName: 3, notImplemented: 4, refused: 5 } as const
const BIND_ATTEMPTS = 20 // for port 0: the UDP port with the number of the TCP port may be in use

/** Listens on UDP and TCP. Rejects when the address or port is not available. */
export async function startResponder(address: { host: string; port: number }, data: ZoneData) {
  const connections = new Set<Socket>()
  let open = 0

  /** Null: no reply is sent. */
  async function answer(query: Buffer, transport: 'udp' | 'tcp'): Promise<Buffer | null> {
    if (open >= OPEN_MAX) return null
    open += 1
    try {
      return await replyTo(query, transport, data)
    } finally {
      open -= 1
    }
  }

  const udp = createSocket(isIPv6(address.host) ? 'udp6' : 'udp4')
  udp.on('message', async (query: Buffer, from: RemoteInfo) => {
    const packet = await answer(query, 'udp')
    if (packet) udp.send(packet, from.port, from.address, () => {})
  })
  // Errors of single sends (an unreachable client) are emitted here too, and are no reason to stop.
  udp.on('error', () => {})
  const tcp = createServer((socket) => {
    connections.add(socket)
    socket.on('close', () => connections.delete(socket))
    socket.on('error', () => socket.destroy())
    socket.setTimeout(TCP_IDLE_MS, () => socket.destroy())
    serveTcp(socket, (query) => answer(query, 'tcp'))
  })
  tcp.maxConnections = TCP_CONNECTIONS_MAX
  const port = await listen(tcp, udp, address)
  return {
    port,
    async close(): Promise<void> {
      for (const socket of connections) socket.destroy()
      const closed = [once(tcp, 'close'), once(udp, 'close')]
      tcp.close()
      udp.close()
      await Promise.all(closed)
    },
  }
}

async function listen(
  tcp: Server,
  udp: ReturnType<typeof createSocket>,
  address: { host: string; port: number },
): Promise<number> {
  for (let attempt = 1; ; attempt++) {
    tcp.listen(address.port, address.host)
    await once(tcp, 'listening')
    const { port } = tcp.address() as { port: number }
    const bound = Promise.withResolvers<void>()
    udp.once('listening', bound.resolve)
    udp.once('error', bound.reject)
    udp.bind(port, address.host)
    try {
      await bound.promise
      return port
    } catch (error) {
      const closed = once(tcp, 'close')
      tcp.close()
      await closed
      if (address.port !== 0 || attempt === BIND_ATTEMPTS) throw error
    } finally {
      udp.removeListener('error', bound.reject)
    }
  }
}

/** Queries on one connection are answered in order. RFC 7766 §6.2.1. */
function serveTcp(socket: Socket, answer: (query: Buffer) => Promise<Buffer | null>): void {
  let received = Buffer.alloc(0)
  let working = Promise.resolve()
  socket.on('data', (bytes: Buffer) => {
    received = Buffer.concat([received, bytes])
    while (received.length >= 2) {
      const size = received.readUInt16BE(0)
      if (size > QUERY_BYTES_MAX) return void socket.destroy()
      if (received.length < size + 2) return
      const query = received.subarray(2, size + 2)
      received = received.subarray(size + 2)
      working = working.then(async () => {
        const packet = await answer(query)
        if (!packet || socket.destroyed) return void socket.destroy()
        const length = Buffer.alloc(2)
        length.writeUInt16BE(packet.length)
        socket.write(Buffer.concat([length, packet]))
      })
    }
  })
}

async function replyTo(query: Buffer, transport: 'udp' | 'tcp', data: ZoneData): Promise<Buffer | null> {
  if (query.length < 12 || query.length > QUERY_BYTES_MAX) return null
  if (((query[2] as number) & 0x80) !== 0) return null // a response: answering it could start a loop
  let decoded: DecodedPacket
  try {
    decoded = decode(query)
  } catch {
    return bare(query.readUInt16BE(0), RCODE.format)
  }
  const id = query.readUInt16BE(0)
  const question = decoded.questions?.[0]
  if (((query[2] as number) & 0x78) !== 0) return bare(id, RCODE.notImplemented)
  if (!question || decoded.questions?.length !== 1) return bare(id, RCODE.format)
  const name = normalizeName(question.name)
  const isOurs = name !== null && isWithin(name, data.zone) && question.class === 'IN'
  if (!isOurs) return packetOf(decoded, RCODE.refused, [], [])
  const values = await data.lookUp(name).catch(() => undefined)
  if (values === undefined) return packetOf(decoded, RCODE.failure, [], [])
  const { answers, exists } = recordsFor(question.type, question.name, name, values, data)
  const authorities = answers.length > 0 ? [] : [soa(data)]
  const packet = packetOf(decoded, exists ? RCODE.ok : RCODE.noName, answers, authorities)
  const opt = decoded.additionals?.find((record) => record.type === 'OPT')
  const wanted = opt?.type === 'OPT' ? Math.max(opt.udpPayloadSize, PLAIN_UDP_BYTES) : PLAIN_UDP_BYTES
  const limit = transport === 'tcp' ? 65_535 : Math.min(wanted, UDP_PAYLOAD_BYTES)
  return packet.length <= limit ? packet : packetOf(decoded, RCODE.ok, [], [], TRUNCATED_RESPONSE)
}

/** `asked` keeps the letter case of the question: resolvers that randomise it compare it (RFC 5452 §9.1). */
function recordsFor(
  type: string,
  asked: string,
  name: string,
  values: readonly string[] | null,
  data: ZoneData,
): { answers: Answer[]; exists: boolean } {
  const isApex = name === data.zone
  const common = { name: asked, ttl: TTL_SECONDS, class: 'IN' } as const
  if (isApex && type === 'SOA') return { answers: [soa(data)], exists: true }
  if (isApex && type === 'NS')
    return { answers: [{ ...common, type: 'NS', data: data.nameServer }], exists: true }
  const texts = type === 'TXT' ? (values ?? []) : []
  const answers = texts.map((text): Answer => ({ ...common, type: 'TXT', data: splitText(text) }))
  return { answers, exists: isApex || values !== null }
}

const soa = ({ zone, nameServer }: ZoneData): Answer => ({
  ...{ type: 'SOA', name: zone, ttl: TTL_SECONDS, class: 'IN' },
  data: {
    ...{ mname: nameServer, rname: `hostmaster.${zone}`, serial: 1 },
    ...{ refresh: 3600, retry: 600, expire: 86_400, minimum: TTL_SECONDS },
  },
})

function packetOf(query: DecodedPacket, rcode: number, answers: Answer[], authorities: Answer[], flags = 0) {
  const hasEdns = query.additionals?.some((record) => record.type === 'OPT') ?? false
  return encode({
    type: 'response',
    id: query.id ?? 0,
    // RD is copied from the question, RFC 1035 §4.1.1.
    flags: AUTHORITATIVE_ANSWER | flags | (query.flag_rd ? 0x100 : 0) | rcode,
    questions: query.questions ?? [],
    answers,
    authorities,
    additionals: hasEdns ? [OPT_RECORD] : [],
  })
}

function bare(id: number, rcode: number): Buffer {
  const packet = Buffer.alloc(12)
  packet.writeUInt16BE(id, 0)
  packet.writeUInt16BE(0x8000 | rcode, 2)
  return packet
}

function splitText(text: string): string[] {
  const strings: string[] = []
  for (let at = 0; at < text.length; at += TXT_STRING_BYTES_MAX)
    strings.push(text.slice(at, at + TXT_STRING_BYTES_MAX))
  return strings
}
