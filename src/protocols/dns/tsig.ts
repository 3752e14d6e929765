/**
 * Signatures of DNS messages by a shared secret (TSIG, RFC 8945), for one request and its one reply. Leaves out: truncated
 * MACs, several messages on one request, and the algorithms that are weaker than SHA-256.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { recordFrames } from './packet.ts'
import { nameBytes } from './presentation.ts'

export const TSIG_ALGORITHMS = ['hmac-sha256', 'hmac-sha512'] as const

export interface TsigKey {
  /** As the server knows it, normalised. */
  name: string
  algorithm: (typeof TSIG_ALGORITHMS)[number]
  secret: Buffer
}

/** How far the clocks may be apart, as RFC 8945 §10 recommends. */
const FUDGE_SECONDS = 300
const TSIG_TYPE = 250
const CLASS_ANY = 255
const ADDITIONAL_COUNT_AT = 10
/** Names of the errors of a TSIG record, RFC 8945 §3. */
const ERRORS: Readonly<Record<number, string>> = {
  16: 'BADSIG: the secret is another one',
  17: 'BADKEY: the server has no such key',
  18: 'BADTIME: the clocks differ by more than five minutes',
  22: 'BADTRUNC',
}

interface Signed {
  packet: Buffer
  /** For `verifyReply`. */
  mac: Buffer
}

/** Appends the signature. `now`: Unix seconds. */
export function signRequest(message: Buffer, key: TsigKey, now: number): Signed {
  return signMessage(message, key, now, Buffer.alloc(0))
}

/** As a server signs the reply to a request with that MAC. */
export function signReply(message: Buffer, key: TsigKey, now: number, requestMac: Buffer): Signed {
  return signMessage(message, key, now, lengthAnd(requestMac))
}

function signMessage(message: Buffer, key: TsigKey, now: number, before: Buffer): Signed {
  const mac = macOf(key, [before, message, variables(key, timeBytes(now), 0)])
  const data = Buffer.concat([
    ...[nameBytes(key.algorithm), timeBytes(now), numbers(FUDGE_SECONDS), lengthAnd(mac)],
    // The id of the message, no error, no other data.
    ...[message.subarray(0, 2), numbers(0, 0)],
  ])
  const head = [nameBytes(key.name), numbers(TSIG_TYPE, CLASS_ANY, 0, 0)]
  const packet = Buffer.concat([message, ...head, lengthAnd(data)])
  packet.writeUInt16BE(message.readUInt16BE(ADDITIONAL_COUNT_AT) + 1, ADDITIONAL_COUNT_AT)
  return { packet, mac }
}

/**
 * Why a reply does not count; null: it is signed with the key, for the request with that MAC, now.
 * @throws DnsSyntaxError
 */
export function replyFault(packet: Buffer, key: TsigKey, requestMac: Buffer, now: number): string | null {
  return signatureFault(packet, key, lengthAnd(requestMac), now)
}

/** The same of a request, for servers. @throws DnsSyntaxError */
export const requestFault = (packet: Buffer, key: TsigKey, now: number): string | null =>
  signatureFault(packet, key, Buffer.alloc(0), now)

function signatureFault(packet: Buffer, key: TsigKey, before: Buffer, now: number): string | null {
  const record = readTsig(packet)
  if (record === null) return 'the reply is not signed'
  const { time, mac, error, start, originalId } = record
  if (error !== 0 && mac.length === 0) return ERRORS[error] ?? `TSIG error ${error}`
  const message = Buffer.from(packet.subarray(0, start))
  originalId.copy(message, 0)
  message.writeUInt16BE(message.readUInt16BE(ADDITIONAL_COUNT_AT) - 1, ADDITIONAL_COUNT_AT)
  const own = macOf(key, [before, message, variables(key, time, error, record.other, record.fudge)])
  if (own.length !== mac.length || !timingSafeEqual(own, mac)) return 'the signature of the reply is wrong'
  if (error !== 0) return ERRORS[error] ?? `TSIG error ${error}`
  return Math.abs(time.readUIntBE(0, TIME_BYTES) - now) > FUDGE_SECONDS ? (ERRORS[18] as string) : null
}

const TIME_BYTES = 6

/** The TSIG record, which is the last one (RFC 8945 §5.1); null: there is none, or it is malformed. */
function readTsig(packet: Buffer) {
  const frame = recordFrames(packet).at(-1)
  const isTsig =
    frame !== undefined &&
    packet.readUInt16BE(ADDITIONAL_COUNT_AT) > 0 &&
    packet.readUInt16BE(frame.nameEnd) === TSIG_TYPE
  if (!isTsig) return null
  const { start, nameEnd, end } = frame
  // The name of the algorithm is not compressed (RFC 8945 §4.2).
  const algorithmEnd = packet.indexOf(0, nameEnd + 10) + 1
  const macAt = algorithmEnd + TIME_BYTES + 4
  if (algorithmEnd === 0 || macAt > end) return null
  const macEnd = macAt + packet.readUInt16BE(macAt - 2)
  if (macEnd + 6 > end) return null
  return {
    start,
    time: packet.subarray(algorithmEnd, algorithmEnd + TIME_BYTES),
    fudge: packet.readUInt16BE(algorithmEnd + TIME_BYTES),
    mac: packet.subarray(macAt, macEnd),
    originalId: packet.subarray(macEnd, macEnd + 2),
    error: packet.readUInt16BE(macEnd + 2),
    other: packet.subarray(macEnd + 6, end),
  }
}

/** The MAC of a signed message, for servers; null: there is none. @throws DnsSyntaxError */
export const macIn = (packet: Buffer): Buffer | null => readTsig(packet)?.mac ?? null

/** What of the record itself is signed, RFC 8945 §4.3.3. */
const variables = (
  key: TsigKey,
  time: Buffer,
  error: number,
  other: Buffer = Buffer.alloc(0),
  fudge = FUDGE_SECONDS,
) =>
  Buffer.concat([
    ...[nameBytes(key.name), numbers(CLASS_ANY, 0, 0), nameBytes(key.algorithm)],
    ...[time, numbers(fudge, error), lengthAnd(other)],
  ])

const macOf = ({ algorithm, secret }: TsigKey, parts: readonly Buffer[]): Buffer =>
  createHmac(algorithm.replace('hmac-', ''), secret).update(Buffer.concat(parts)).digest()

function timeBytes(seconds: number): Buffer {
  const bytes = Buffer.alloc(TIME_BYTES)
  bytes.writeUIntBE(Math.floor(seconds), 0, TIME_BYTES)
  return bytes
}

/** Numbers of 16 bits. */
function numbers(...values: number[]): Buffer {
  const bytes = Buffer.alloc(2 * values.length)
  for (const [at, value] of values.entries()) bytes.writeUInt16BE(value, 2 * at)
  return bytes
}

const lengthAnd = (bytes: Buffer): Buffer => Buffer.concat([numbers(bytes.length), bytes])
