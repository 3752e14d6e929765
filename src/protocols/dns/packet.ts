/**
 * DNS messages: encodes queries, decodes replies. The library does the decoding; this file protects against hostile
 * bytes: the frame of every record is walked before the library sees it, counts are bounded, exceptions become one
 * error type, and only records of known types with valid content are returned.
 *
 * Names follow RFC 1035, EDNS0 RFC 6891, the AD bit in a query RFC 6840 §5.7.
 */
import { isIPv4, isIPv6 } from 'node:net'
import {
  type Answer,
  AUTHENTIC_DATA,
  type DecodedPacket,
  decode,
  encode,
  RECURSION_DESIRED,
} from 'dns-packet'
import { normalizeName } from './names.ts'

/** The data of one record of each type. Names are normalised, without a final dot; the root is ''. */
export interface RecordData {
  A: string
  AAAA: string
  CNAME: string
  MX: MxData
  NS: string
  PTR: string
  SOA: SoaData
  TLSA: TlsaData
  /** The strings of one record joined without a separator. RFC 7208 §3.3, RFC 6376 §3.6.2.2. */
  TXT: string
}
export type DnsType = keyof RecordData

/** `exchange` is '' for the null MX. RFC 7505 §3. */
export interface MxData {
  preference: number
  exchange: string
}
/** RFC 6698 §2.1. */
export interface TlsaData {
  usage: number
  selector: number
  matchingType: number
  certificate: Uint8Array
}
interface SoaData {
  primary: string
  serial: number
  /** TTL of negative answers, seconds. RFC 2308 §4. */
  minimum: number
}

export type DnsRecord = {
  [T in DnsType]: { type: T; name: string; ttlSeconds: number; data: RecordData[T] }
}[DnsType]

export interface Reply {
  /** The header's code with EDNS's upper bits: 0 NOERROR, 2 SERVFAIL, 3 NXDOMAIN, 5 REFUSED ... */
  rcode: number
  /** AD: the server claims to have validated the answer. Whether to trust that is the caller's decision. */
  authenticData: boolean
  /** AA: the server is authoritative for the name. */
  authoritative: boolean
  /** RA: the server resolves for others. */
  recursionAvailable: boolean
  answers: DnsRecord[]
  authorities: DnsRecord[]
}

interface Query {
  id: number
  name: string
  type: DnsType
  edns: boolean
}

/** A reply that cannot be decoded. */
export class DnsSyntaxError extends Error {
  override name = 'DnsSyntaxError'
}

/** Fits every path without IP fragments, as agreed on DNS Flag Day 2020. */
export const UDP_PAYLOAD_BYTES = 1232
/** More than a busy zone's MX set with all addresses. Bounds the work for 64 KiB of pointers to pointers: 40 ms. */
const RECORDS_MAX = 1000
export const HEADER_BYTES = 12
/** Bits of the third byte of the header. */
const OPCODE_BITS = 0x78

/** EDNS0, without DO: the AD bit of an answer is set all the same (RFC 6840 §5.7). */
export const OPT_RECORD: Answer = {
  type: 'OPT',
  name: '.',
  udpPayloadSize: UDP_PAYLOAD_BYTES,
  extendedRcode: 0,
  ednsVersion: 0,
  flags: 0,
  flag_do: false,
  options: [],
}

export function encodeQuery({ id, name, type, edns }: Query): Buffer {
  return encode({
    type: 'query',
    id,
    flags: RECURSION_DESIRED | AUTHENTIC_DATA,
    questions: [{ name, type, class: 'IN' }],
    additionals: edns ? [OPT_RECORD] : [],
  })
}

/**
 * Whether `packet` is a reply to exactly this query: same id, a response, the same question. An off-path attacker
 * has to guess id and port. RFC 5452 §9.1.
 */
export function isReplyTo(query: Buffer, packet: Buffer): boolean {
  if (packet.length < HEADER_BYTES || packet.readUInt16BE(0) !== query.readUInt16BE(0)) return false
  const opcode = (query[2] as number) & OPCODE_BITS
  const isResponse = ((packet[2] as number) & (0x80 | OPCODE_BITS)) === (0x80 | opcode)
  if (!isResponse) return false
  const questions = packet.readUInt16BE(4)
  // Servers that could not read the query, or refused it, may omit the question; of an update they always may (RFC 2136 §3.8).
  if (questions === 0) return opcode !== 0 || ![0, 3].includes(rcodeOf(packet))
  const end = skipName(query, HEADER_BYTES) + 4
  return (
    questions === 1 && sameQuestion(query.subarray(HEADER_BYTES, end), packet.subarray(HEADER_BYTES, end))
  )
}

function sameQuestion(asked: Buffer, answered: Buffer): boolean {
  if (asked.length !== answered.length) return false
  const nameEnd = asked.length - 4
  if (asked.compare(answered, nameEnd, undefined, nameEnd) !== 0) return false
  return lowerCase(asked, nameEnd) === lowerCase(answered, nameEnd) // letter case does not matter, RFC 4343
}

const lowerCase = (bytes: Buffer, end: number) => bytes.toString('latin1', 0, end).toLowerCase()

/** TC: the answer did not fit and must be queried over TCP. RFC 7766 §5. */
export function isTruncated(packet: Buffer): boolean {
  return ((packet[2] as number) & 0x02) !== 0
}

/** The code in the header alone, readable even if the rest of the reply is not. */
export function rcodeOf(packet: Buffer): number {
  return (packet[3] as number) & 0x0f
}

/**
 * Decodes a reply. Omits records of other classes and types, or with unusable names.
 * @throws DnsSyntaxError when the bytes are not a valid DNS message
 */
export function decodeReply(packet: Buffer): Reply {
  const decoded = decodeFrame(packet)
  const opt = decoded.additionals?.find((record) => record.type === 'OPT')
  return {
    rcode: rcodeOf(packet) | (opt?.type === 'OPT' ? opt.extendedRcode << 4 : 0),
    authenticData: decoded.flag_ad,
    authoritative: decoded.flag_aa,
    recursionAvailable: decoded.flag_ra,
    answers: readRecords(decoded.answers ?? []),
    authorities: readRecords(decoded.authorities ?? []),
  }
}

/** As the library decodes it. @throws DnsSyntaxError */
export function decodeFrame(packet: Buffer): DecodedPacket {
  const end = recordFrames(packet).at(-1)?.end ?? HEADER_BYTES
  let decoded: DecodedPacket
  try {
    decoded = decode(packet)
  } catch (cause) {
    throw new DnsSyntaxError('the reply does not decode', { cause })
  }
  // The library takes some lengths from the type instead of the record: both must agree.
  if (decode.bytes !== end) throw new DnsSyntaxError('a record is longer or shorter than it says')
  return decoded
}

/** Offsets of a question or a record. */
interface Frame {
  start: number
  /** After the name. */
  nameEnd: number
  end: number
}

/** The question, if there is one, and all records, without decoding them. @throws DnsSyntaxError */
export function recordFrames(packet: Buffer): Frame[] {
  if (packet.length < HEADER_BYTES) throw new DnsSyntaxError('the reply is shorter than a header')
  const questions = packet.readUInt16BE(4)
  const records = packet.readUInt16BE(6) + packet.readUInt16BE(8) + packet.readUInt16BE(10)
  if (questions > 1) throw new DnsSyntaxError('the reply has more than one question')
  if (records > RECORDS_MAX) throw new DnsSyntaxError(`the reply claims ${records} records`)
  const frames: Frame[] = []
  let start = HEADER_BYTES
  for (let i = 0; i < questions + records; i++) {
    const nameEnd = skipName(packet, start)
    if (nameEnd + (i < questions ? 4 : 10) > packet.length)
      throw new DnsSyntaxError('the reply ends within a record')
    const end = nameEnd + (i < questions ? 4 : 10 + packet.readUInt16BE(nameEnd + 8))
    frames.push({ start, nameEnd, end })
    start = end
  }
  if (start > packet.length) throw new DnsSyntaxError('the reply ends within a record')
  return frames
}

/** The offset after a name; a compression pointer ends it and is not followed. RFC 1035 §4.1.4. */
function skipName(packet: Buffer, start: number): number {
  let offset = start
  while (offset < packet.length) {
    const length = packet[offset] as number
    if (length === 0) return offset + 1
    if (length >= 0xc0) return offset + 2
    if (length > 63) break
    offset += length + 1
  }
  throw new DnsSyntaxError('the reply ends within a name')
}

function readRecords(answers: readonly Answer[]): DnsRecord[] {
  return answers.map(readRecord).filter((record) => record !== null)
}

function readRecord(answer: Answer): DnsRecord | null {
  if (answer.type === 'OPT' || answer.class !== 'IN') return null
  const name = readName(answer.name)
  if (name === null) return null
  // A TTL with the top bit set counts as zero. RFC 2181 §8.
  const ttlSeconds = (answer.ttl ?? 0) > 0x7fff_ffff ? 0 : (answer.ttl ?? 0)
  const base = { name, ttlSeconds }
  switch (answer.type) {
    case 'A':
      return isIPv4(answer.data) ? { ...base, type: 'A', data: answer.data } : null
    case 'AAAA':
      return isIPv6(answer.data) ? { ...base, type: 'AAAA', data: answer.data } : null
    case 'CNAME':
    case 'NS':
    case 'PTR': {
      const data = readName(answer.data)
      return data ? { ...base, type: answer.type, data } : null
    }
    case 'MX': {
      const exchange = readName(answer.data.exchange)
      const preference = answer.data.preference ?? 0
      return exchange === null ? null : { ...base, type: 'MX', data: { preference, exchange } }
    }
    case 'TXT': {
      const parts = Array.isArray(answer.data) ? answer.data : [answer.data]
      const bytes = parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part))
      return { ...base, type: 'TXT', data: Buffer.concat(bytes).toString('utf8') }
    }
    case 'TLSA': {
      const { usage, selector, matchingType, certificate } = answer.data
      // A copy, so that a cached record does not keep its whole packet alive.
      return {
        ...base,
        type: 'TLSA',
        data: { usage, selector, matchingType, certificate: Uint8Array.from(certificate) },
      }
    }
    case 'SOA': {
      const { mname, serial = 0, minimum = 0 } = answer.data
      return { ...base, type: 'SOA', data: { primary: readName(mname) ?? '', serial, minimum } }
    }
    default:
      return null
  }
}

/** A decoded name, normalised; '' for the root, null when it cannot be used as a name. */
function readName(name: string): string | null {
  return name === '.' ? '' : normalizeName(name)
}
