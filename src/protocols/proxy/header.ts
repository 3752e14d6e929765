/**
 * The header of the PROXY protocol, versions 1 and 2 (HAProxy's proxy-protocol.txt): the first bytes of a connection that a
 * balancer has accepted for us, which say who the client is. Pure.
 *
 * What is not as the specification says makes the whole header malformed: a reader that guesses can be deceived. Left out: names
 * and certificates in TLVs (only the checksum, and whether there is TLS, are looked at), and sockets of the file system, whose clients have no address.
 */
import { isIPv4, isIPv6 } from 'node:net'
import { canonicalIp, parseIp } from '../../base/net/ip.ts'
import { crc32c } from './crc32c.ts'

export interface Endpoint {
  /** An IP address; read ones are in canonical form. */
  address: string
  port: number
}

export type HeaderRead =
  /** So far it may be a header. */
  | { kind: 'partial' }
  | { kind: 'malformed'; fault: string }
  /**
   * `client`: null when the connection is the balancer's own (LOCAL, such as a health check), or the balancer does not say whose
   * it is (UNKNOWN, UNSPEC). `isSecure`: the client speaks TLS to the balancer, which has ended it. `length`: of the header, in bytes.
   */
  | { kind: 'header'; client: Endpoint | null; isSecure: boolean; length: number }

/** Section 2.1: of a version 1 header, CRLF included. */
const V1_MAX_BYTES = 107
const V1_START = Buffer.from('PROXY ')
const V2_SIGNATURE = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1')
const V2_FIXED_BYTES = 16
/** Ours, of what a version 2 header may carry after the fixed part: addresses take at most 216, a certificate some thousand. */
const V2_BLOCK_MAX_BYTES = 8 * 1024

const VERSION_2 = 0x20
const LOCAL = 0
const PROXY = 1
/** Family and transport as one byte (section 2.2), with the size of the addresses; 0x31 is a socket of the file system. */
const UNSPEC = 0x00
const TCP4 = 0x11
const TCP6 = 0x21
const UNIX = 0x31
const ADDRESS_BYTES: Readonly<Record<number, number>> = { [UNSPEC]: 0, [TCP4]: 12, [TCP6]: 36, [UNIX]: 216 }

const TLV_HEAD_BYTES = 3
const TLV_CRC32C = 0x03
/** Section 2.2.6: a byte of flags, four bytes on the client's certificate (zero: verified), then TLVs about the connection. */
const TLV_SSL = 0x20
const TLV_SSL_BYTES = 5
const CLIENT_SSL = 0x01

const PARTIAL: HeaderRead = { kind: 'partial' }
const malformed = (fault: string): HeaderRead => ({ kind: 'malformed', fault })

/** @param bytes all that the connection has received so far */
export function readProxyHeader(bytes: Buffer): HeaderRead {
  if (bytes.length === 0) return PARTIAL
  if (bytes[0] === V1_START[0]) return startsWith(bytes, V1_START) ? readText(bytes) : noHeader()
  return startsWith(bytes, V2_SIGNATURE) ? readBinary(bytes) : noHeader()
}

const noHeader = () => malformed('it does not begin with a PROXY header')

/** As far as both reach. */
function startsWith(bytes: Buffer, start: Buffer): boolean {
  const length = Math.min(bytes.length, start.length)
  return bytes.compare(start, 0, length, 0, length) === 0
}

/** Version 1 (section 2.1): `PROXY TCP4 192.0.2.1 192.0.2.2 56324 443`, CRLF. */
function readText(bytes: Buffer): HeaderRead {
  const end = bytes.subarray(0, V1_MAX_BYTES).indexOf('\r\n')
  if (end < 0)
    return bytes.length < V1_MAX_BYTES ? PARTIAL : malformed('a PROXY line is longer than 107 bytes')
  const length = end + 2
  const [, family, ...rest] = bytes.toString('latin1', 0, end).split(' ')
  if (family === 'UNKNOWN') return { kind: 'header', client: null, isSecure: false, length }
  const isAddress = family === 'TCP4' ? isIPv4 : family === 'TCP6' ? isIPv6 : null
  if (isAddress === null) return malformed('a PROXY line names neither TCP4, TCP6 nor UNKNOWN')
  const [source = '', target = '', sourcePort = '', targetPort = '', ...more] = rest
  const isWhole = isAddress(source) && isAddress(target) && isPort(sourcePort) && isPort(targetPort)
  // A zone ("fe80::1%eth0") means something on the balancer only.
  if (!isWhole || more.length > 0 || `${source}${target}`.includes('%'))
    return malformed('a PROXY line does not hold two addresses of its family and two ports')
  return { kind: 'header', client: endpoint(source, Number(sourcePort)), isSecure: false, length }
}

const isPort = (text: string) => /^(?:0|[1-9]\d{0,4})$/.test(text) && Number(text) <= 65_535

/** Version 2 (section 2.2). */
function readBinary(bytes: Buffer): HeaderRead {
  if (bytes.length < V2_FIXED_BYTES) return PARTIAL
  const version = bytes.readUInt8(12) & 0xf0
  const command = bytes.readUInt8(12) & 0x0f
  const family = bytes.readUInt8(13)
  const blockBytes = bytes.readUInt16BE(14)
  if (version !== VERSION_2) return malformed('a PROXY header has neither version 1 nor 2')
  if (command !== LOCAL && command !== PROXY) return malformed('a PROXY header has an unknown command')
  if (blockBytes > V2_BLOCK_MAX_BYTES) return malformed('a PROXY header is longer than 8 KB')
  const length = V2_FIXED_BYTES + blockBytes
  if (bytes.length < length) return PARTIAL
  // Section 2.2: what follows a LOCAL command, the family included, is ignored.
  if (command === LOCAL) return { kind: 'header', client: null, isSecure: false, length }
  const addressBytes = ADDRESS_BYTES[family]
  if (addressBytes === undefined) return malformed('a PROXY header is not of a stream of a known family')
  if (addressBytes > blockBytes) return malformed('a PROXY header is too short for its addresses')
  const header = bytes.subarray(0, length)
  // Without a family nobody knows where addresses end and TLVs begin.
  const read = family === UNSPEC ? false : readTlvs(header, V2_FIXED_BYTES + addressBytes)
  if (typeof read === 'string') return malformed(read)
  return { kind: 'header', client: clientOf(header, family), isSecure: read, length }
}

function clientOf(header: Buffer, family: number): Endpoint | null {
  const addresses = header.subarray(V2_FIXED_BYTES)
  if (family === TCP4) return endpoint([...addresses.subarray(0, 4)].join('.'), addresses.readUInt16BE(8))
  if (family === TCP6) return endpoint(ipv6Text(addresses), addresses.readUInt16BE(32))
  return null
}

const endpoint = (address: string, port: number): Endpoint => ({
  address: canonicalIp(address) ?? address,
  port,
})

/** The first 16 bytes as an address. */
const ipv6Text = (bytes: Buffer) =>
  Array.from({ length: 8 }, (_, at) => bytes.readUInt16BE(2 * at).toString(16)).join(':')

/** Whether they say that the client speaks TLS; a text: what is wrong. Section 2.2.4 for the checksum. */
function readTlvs(header: Buffer, from: number): boolean | string {
  let isSecure = false
  for (let at = from; at < header.length; ) {
    if (at + TLV_HEAD_BYTES > header.length) return 'a TLV of a PROXY header is cut off'
    const begin = at + TLV_HEAD_BYTES
    const end = begin + header.readUInt16BE(at + 1)
    if (end > header.length) return 'a TLV of a PROXY header is cut off'
    if (header[at] === TLV_CRC32C && !isChecksumRight(header, begin, end))
      return 'the checksum of a PROXY header is wrong'
    if (header[at] === TLV_SSL) {
      if (end - begin < TLV_SSL_BYTES) return 'a TLV of a PROXY header is cut off'
      isSecure = ((header[begin] as number) & CLIENT_SSL) !== 0
    }
    at = end
  }
  return isSecure
}

function isChecksumRight(header: Buffer, begin: number, end: number): boolean {
  if (end - begin !== 4) return false
  const zeroed = Buffer.from(header).fill(0, begin, end)
  return crc32c(zeroed) === header.readUInt32BE(begin)
}

/**
 * A version 2 header for a connection that leaves from `source` to `target`.
 * @param isSecure its client speaks TLS, which ends before the header
 * @throws Error if they are not IP addresses of one family
 */
export function writeProxyHeader(source: Endpoint, target: Endpoint, isSecure = false): Buffer {
  const addresses = [source, target].map(({ address }) => addressBytes(address))
  const [from = Buffer.alloc(0), to = Buffer.alloc(0)] = addresses
  if (from.length !== to.length) throw new Error('the addresses of a PROXY header are of different families')
  const fixed = Buffer.alloc(4)
  fixed.writeUInt8(VERSION_2 | PROXY, 0)
  fixed.writeUInt8(from.length === 4 ? TCP4 : TCP6, 1)
  const tls = isSecure ? SECURE_TLV : Buffer.alloc(0)
  fixed.writeUInt16BE(2 * from.length + 4 + tls.length, 2)
  const ports = Buffer.alloc(4)
  ports.writeUInt16BE(source.port, 0)
  ports.writeUInt16BE(target.port, 2)
  return Buffer.concat([V2_SIGNATURE, fixed, from, to, ports, tls])
}

/** TLS, without a certificate of the client. */
const SECURE_TLV = Buffer.of(TLV_SSL, 0, TLV_SSL_BYTES, CLIENT_SSL, 0, 0, 0, 1)

/** An IP address in network byte order: 4 bytes, or 16. @throws Error if it is none */
export function addressBytes(address: string): Buffer {
  const parsed = parseIp(address)
  if (parsed === null) throw new Error(`"${address}" is not an IP address`)
  const digits = parsed.family === 4 ? 8 : 32
  return Buffer.from(parsed.bits.toString(16).padStart(digits, '0'), 'hex')
}
