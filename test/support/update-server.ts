/** A name server for one zone that takes dynamic updates (RFC 2136) under a key (TSIG), over TCP, with their prerequisites. */
import { createServer, type Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { type Answer, AUTHORITATIVE_ANSWER, decode, encode } from 'dns-packet'
import { recordFrames } from '../../src/protocols/dns/packet.ts'
import { readStrings } from '../../src/protocols/dns/presentation.ts'
import { macIn, requestFault, signReply, type TsigKey } from '../../src/protocols/dns/tsig.ts'
import type { FakeZone } from './dns-zone.ts'
import { ownAddress } from './service.ts'

const TYPE_NAMES: Record<number, string> = { 1: 'A', 2: 'NS', 5: 'CNAME', 15: 'MX', 16: 'TXT', 28: 'AAAA' }
const [CLASS_IN, CLASS_NONE, TYPE_ANY] = [1, 254, 255]
const [NOERROR, YXDOMAIN, YXRRSET, NXRRSET, NOTAUTH] = [0, 6, 7, 8, 9]

export async function startUpdateServer(t: Pick<TestContext, 'after'>, zone: FakeZone, key: TsigKey) {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    let received = Buffer.alloc(0)
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk])
      const length = received.length < 2 ? Number.POSITIVE_INFINITY : received.readUInt16BE(0)
      if (received.length - 2 < length) return
      const reply = answer(received.subarray(2, 2 + length))
      const head = Buffer.alloc(2)
      head.writeUInt16BE(reply.length)
      socket.write(Buffer.concat([head, reply]))
    })
  })
  const host = ownAddress()
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const rig = {
    server: `${host}:${(server.address() as { port: number }).port}`,
    updates: 0,
    /** Runs before an update is looked at. */
    onUpdate: () => {},
    /** Of the server, against the clock of the test. */
    clockSkewSeconds: 0,
  }

  function answer(request: Buffer): Buffer {
    const now = Math.floor(Date.now() / 1000) + rig.clockSkewSeconds
    const fault = requestFault(request, key, now)
    const head = Buffer.from(request.subarray(0, 12))
    head.writeUInt16BE(head.readUInt16BE(2) | 0x8000, 2)
    if (fault !== null) {
      // Unsigned, as a server says that it does not know the key.
      head.fill(0, 4)
      head.writeUInt8(NOTAUTH, 3)
      return head
    }
    const isUpdate = ((request[2] as number) & 0x78) === 0x28
    const message = isUpdate ? updated(request, head) : queried(request)
    return signReply(message, key, now, macIn(request) as Buffer).packet
  }

  function queried(request: Buffer): Buffer {
    const { id = 0, questions = [] } = decode(request)
    const [{ name, type } = { name: '', type: 'A' as const }] = questions
    const set = zone.find(name, type)
    const soa: Answer = {
      ...{ type: 'SOA', name: zone.name, ttl: 60 },
      data: {
        mname: `ns.${zone.name}`,
        rname: 'host',
        serial: 1,
        refresh: 1,
        retry: 1,
        expire: 1,
        minimum: 60,
      },
    }
    const isOurs = name === zone.name || name.endsWith(`.${zone.name}`)
    const answers = (set?.values ?? []).map((value) => answerOf(name, type, set?.ttl ?? 0, value))
    return encode({
      ...{ type: 'response', id, questions, flags: isOurs ? AUTHORITATIVE_ANSWER : 5 },
      answers: type === 'SOA' && name === zone.name ? [soa] : answers,
      authorities: isOurs && answers.length === 0 && name !== zone.name ? [soa] : [],
    })
  }

  function updated(request: Buffer, head: Buffer): Buffer {
    rig.updates++
    rig.onUpdate()
    const frames = recordFrames(request)
    const [prerequisites, changes] = [request.readUInt16BE(6), request.readUInt16BE(8)]
    const records = frames.slice(1, 1 + prerequisites + changes).map((frame) => recordAt(request, frame))
    const rcode = refusalOf(records.slice(0, prerequisites))
    if (rcode === NOERROR) for (const record of records.slice(prerequisites)) change(record)
    head.fill(0, 4)
    head.writeUInt8(rcode, 3)
    return head
  }

  function refusalOf(records: readonly UpdateRecord[]): number {
    const demanded = new Map<string, string[]>()
    for (const { name, type, klass, value } of records) {
      const isThere = type === 'ANY' ? zone.at(name).length > 0 : zone.find(name, type) !== undefined
      if (klass === CLASS_NONE && isThere) return type === 'ANY' ? YXDOMAIN : YXRRSET
      if (klass === CLASS_IN)
        demanded.set(`${type} ${name}`, [...(demanded.get(`${type} ${name}`) ?? []), value])
    }
    const isSame = ([at, values]: [string, string[]]) =>
      JSON.stringify(values.toSorted()) === JSON.stringify(zone.sets.get(at)?.values.toSorted())
    return [...demanded].every(isSame) ? NOERROR : NXRRSET
  }

  function change({ name, type, klass, ttl, value }: UpdateRecord): void {
    const set = zone.find(name, type)
    const values = set?.values ?? []
    if (klass === CLASS_NONE)
      zone.put(
        name,
        type,
        set?.ttl ?? ttl,
        values.filter((one) => one !== value),
      )
    // A CNAME beside other records is ignored without a word, RFC 2136 §3.4.2.2.
    else if (type !== 'CNAME' || zone.at(name).every((one) => one.type === 'CNAME'))
      zone.put(name, type, ttl, values.includes(value) ? values : [...values, value])
  }

  return rig
}

interface UpdateRecord {
  name: string
  type: string
  klass: number
  ttl: number
  value: string
}

function recordAt(packet: Buffer, { start, nameEnd, end }: { start: number; nameEnd: number; end: number }) {
  const code = packet.readUInt16BE(nameEnd)
  const type = code === TYPE_ANY ? 'ANY' : (TYPE_NAMES[code] ?? String(code))
  const data = packet.subarray(nameEnd + 10, end)
  return {
    ...{ name: nameAt(packet, start), type, klass: packet.readUInt16BE(nameEnd + 2) },
    ...{ ttl: packet.readUInt32BE(nameEnd + 4), value: data.length === 0 ? '' : dataOfText(type, data) },
  }
}

function nameAt(bytes: Buffer, start: number): string {
  const labels: string[] = []
  for (let at = start; bytes[at] !== 0; at += 1 + (bytes[at] as number))
    labels.push(bytes.toString('latin1', at + 1, at + 1 + (bytes[at] as number)))
  return labels.join('.')
}

function dataOfText(type: string, data: Buffer): string {
  if (type === 'A') return [...data].join('.')
  if (type === 'CNAME') return nameAt(data, 0)
  if (type === 'MX') return `${data.readUInt16BE(0)} ${nameAt(data, 2)}`
  const strings: string[] = []
  for (let at = 0; at < data.length; at += 1 + (data[at] as number))
    strings.push(data.toString('latin1', at + 1, at + 1 + (data[at] as number)))
  return strings.map((text) => `"${text.replaceAll(/["\\]/g, '\\$&')}"`).join(' ')
}

function answerOf(name: string, type: string, ttl: number, value: string): Answer {
  const [preference, exchange = ''] = value.split(' ')
  const data =
    type === 'MX' ? { preference: Number(preference), exchange } : type === 'TXT' ? readStrings(value) : value
  return { name, type, ttl, class: 'IN', data } as Answer
}
