/**
 * Dynamic updates of a zone (RFC 2136): the message, and what the server's answer to it means. One message is one
 * transaction. Its prerequisites name all that stood in each set, so that nothing is written where somebody else has changed
 * it meanwhile.
 */
import { randomInt } from 'node:crypto'
import { dataBytes, nameBytes, type WritableType } from './presentation.ts'

/** Records of one name and type that come and go; data in canonical form. */
export interface SetUpdate {
  name: string
  type: WritableType
  ttlSeconds: number
  /** All records that stand there now. */
  before: readonly string[]
  remove: readonly string[]
  add: readonly string[]
}

const OPCODE_UPDATE = 5 << 11
const CLASS_IN = 1
const CLASS_NONE = 254
const TYPE_ANY = 255
const TYPE_SOA = 6
const TYPES: Readonly<Record<WritableType, number>> = { A: 1, AAAA: 28, CNAME: 5, MX: 15, TXT: 16 }

/** Meanings of the codes that an update may have as its answer, RFC 2136 §2.2. */
const CODES: Readonly<Record<number, string>> = {
  1: 'FORMERR: it cannot read the update',
  2: 'SERVFAIL: it could not write the zone',
  4: 'NOTIMP: it takes no updates',
  5: 'REFUSED: the key may not change this',
  6: 'YXDOMAIN: the name has other records',
  7: 'YXRRSET: there is another record by now',
  8: 'NXRRSET: a record has changed meanwhile',
  9: 'NOTAUTH: it is not the server of the zone, or the key is wrong',
  10: 'NOTZONE: a name is outside of the zone',
}
/** Something stands there that was not there when it was read. */
const CHANGED_CODES = [3, 6, 7, 8]

export const updateRefusal = (rcode: number) => ({
  isChanged: CHANGED_CODES.includes(rcode),
  words: CODES[rcode] ?? `code ${rcode}`,
})

export function encodeUpdate(zone: string, updates: readonly SetUpdate[]): Buffer {
  const prerequisites = updates.flatMap(prerequisitesOf)
  const changes = updates.flatMap(({ name, type, ttlSeconds, remove, add }) => [
    ...remove.map((data) => record(name, TYPES[type], CLASS_NONE, 0, dataBytes(type, data))),
    ...add.map((data) => record(name, TYPES[type], CLASS_IN, ttlSeconds, dataBytes(type, data))),
  ])
  const header = Buffer.alloc(12)
  header.writeUInt16BE(randomInt(0x10000), 0)
  header.writeUInt16BE(OPCODE_UPDATE, 2)
  header.writeUInt16BE(1, 4)
  header.writeUInt16BE(prerequisites.length, 6)
  header.writeUInt16BE(changes.length, 8)
  const question = Buffer.alloc(4)
  question.writeUInt16BE(TYPE_SOA, 0)
  question.writeUInt16BE(CLASS_IN, 2)
  return Buffer.concat([header, nameBytes(zone), question, ...prerequisites, ...changes])
}

/** RFC 2136 §2.4. Without that for CNAME, servers ignore a record beside one without a word (§3.4.2.2). */
function prerequisitesOf({ name, type, before, add }: SetUpdate): Buffer[] {
  if (before.length > 0)
    return before.map((data) => record(name, TYPES[type], CLASS_IN, 0, dataBytes(type, data)))
  if (type === 'CNAME') return add.length > 0 ? [record(name, TYPE_ANY, CLASS_NONE, 0, EMPTY)] : []
  return [TYPES[type], TYPES.CNAME].map((code) => record(name, code, CLASS_NONE, 0, EMPTY))
}

const EMPTY = Buffer.alloc(0)

function record(name: string, type: number, klass: number, ttl: number, data: Buffer): Buffer {
  const head = Buffer.alloc(10)
  head.writeUInt16BE(type, 0)
  head.writeUInt16BE(klass, 2)
  head.writeUInt32BE(ttl, 4)
  head.writeUInt16BE(data.length, 8)
  return Buffer.concat([nameBytes(name), head, data])
}
