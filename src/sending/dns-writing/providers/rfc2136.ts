/**
 * A name server of one's own that takes dynamic updates (RFC 2136) under a key (TSIG). Queries are signed as well, so that
 * what was read is what the server says. All over TCP.
 */
import { randomInt } from 'node:crypto'
import { isIP } from 'node:net'
import { anyCidrContains, type Cidr, isPublicAddress } from '../../../base/net/ip.ts'
import type { Clock } from '../../../base/time/clock.ts'
import { SECOND_MS } from '../../../base/time/durations.ts'
import {
  DnsSyntaxError,
  decodeFrame,
  decodeReply,
  encodeQuery,
  HEADER_BYTES,
  type Reply,
  rcodeOf,
} from '../../../protocols/dns/packet.ts'
import { quotedStrings } from '../../../protocols/dns/presentation.ts'
import { type Exchange, OpenExchanges, queryOverTcp } from '../../../protocols/dns/query-transport.ts'
import { replyFault, signRequest, type TsigKey } from '../../../protocols/dns/tsig.ts'
import { encodeUpdate, updateRefusal } from '../../../protocols/dns/update.ts'
import { type DnsProvider, ProviderFault, type RecordSet } from '../provider.ts'
import { type ListedRecord, setsOf, zoneNames } from './api.ts'

interface UpdateServerParts {
  host: string
  port: number
  key: TsigKey
  /** All addresses of a host name. */
  resolve(host: string): Promise<readonly string[]>
  /** Networks that may be reached although they are not public. */
  allow: readonly Cidr[]
  clock: Clock
  /** Monotonic time after which nothing is sent. */
  untilMs: number
}

const ANSWER_MAX_MS = 10 * SECOND_MS
const TTL_SECONDS = 3600
/** What a name is asked for: what is written, and what shows that it is somebody else's. */
const ASKED_TYPES = ['A', 'AAAA', 'CNAME', 'MX', 'TXT', 'NS'] as const
/** There is no such name, or no such record. */
const NXDOMAIN = 3

export function createUpdateServer(parts: UpdateServerParts): DnsProvider {
  const { host, port, key, clock } = parts
  const who = `The name server ${host}`
  const seconds = () => Math.floor(clock.now() / SECOND_MS)
  let address: Promise<string> | undefined

  async function findAddress(): Promise<string> {
    const found = isIP(host) === 0 ? await parts.resolve(host).catch(() => []) : [host]
    const usable = found.filter((one) => isPublicAddress(one) || anyCidrContains(parts.allow, one))
    if (usable[0] !== undefined) return usable[0]
    const why = found.length === 0 ? 'host not found' : 'address not allowed'
    throw new ProviderFault('away', `${who} cannot be reached: ${why}.`)
  }

  /** The packet of a signed reply. */
  async function exchange(message: Buffer): Promise<Buffer> {
    if (clock.monotonic() > parts.untilMs) throw new ProviderFault('away', `${who} takes too long to answer.`)
    address ??= findAddress()
    const { packet, mac } = signRequest(message, key, seconds())
    const open = new OpenExchanges()
    const timer = clock.setTimer(ANSWER_MAX_MS, () => open.end())
    const outcome = await queryOverTcp({ host: await address, port }, packet, open).finally(() =>
      timer.cancel(),
    )
    if (outcome.kind !== 'packet')
      throw new ProviderFault('away', `${who} cannot be reached: ${problemOf(outcome)}.`)
    return checked(outcome.packet, mac)
  }

  function checked(packet: Buffer, mac: Buffer): Buffer {
    try {
      const fault = replyFault(packet, key, mac, seconds())
      if (fault === null) return packet
      // A server that refuses everything does not sign that.
      const { words } = updateRefusal(rcodeOf(packet))
      const told = rcodeOf(packet) === 0 ? fault : `${words}; ${fault}`
      throw new ProviderFault('login', `${who} does not take the key "${key.name}" (${told}).`)
    } catch (error) {
      throw malformed(error)
    }
  }

  const malformed = (error: unknown) =>
    error instanceof DnsSyntaxError
      ? new ProviderFault('away', `${who} sent an answer that cannot be read: ${error.message}.`)
      : error

  async function query(name: string, type: (typeof ASKED_TYPES)[number] | 'SOA'): Promise<Buffer> {
    const packet = await exchange(encodeQuery({ id: randomInt(0x10000), name, type, edns: false }))
    const rcode = rcodeOf(packet)
    if (rcode === 0 || rcode === NXDOMAIN) return packet
    throw new ProviderFault(
      'refused',
      `${who} does not answer about ${name} (${updateRefusal(rcode).words}).`,
    )
  }

  function replyOf(packet: Buffer): Reply {
    try {
      return decodeReply(packet)
    } catch (error) {
      throw malformed(error)
    }
  }

  async function records(name: string, type: (typeof ASKED_TYPES)[number]): Promise<ListedRecord[]> {
    const packet = await query(name, type)
    const { answers, authoritative } = replyOf(packet)
    if (!authoritative)
      return [
        { type: 'NS', data: '', handle: '', ttlSeconds: null, lock: 'it is delegated to other servers' },
      ]
    const texts = type === 'TXT' ? textsIn(packet) : []
    return answers
      .filter((record) => record.name === name && record.type === type)
      .map((record, at) => {
        const { data, ttlSeconds } = record
        const text =
          record.type === 'MX' ? `${record.data.preference} ${record.data.exchange || '.'}` : String(data)
        const own = type === 'TXT' ? (texts[at] ?? '') : text
        return { type, data: own, handle: own, ttlSeconds }
      })
  }

  return {
    async zoneOf(name) {
      for (const asked of zoneNames(name)) {
        const { authoritative, answers, authorities } = replyOf(await query(asked, 'SOA').catch(notHere))
        const soa = [...answers, ...authorities].find((record) => record.type === 'SOA')
        if (authoritative && soa) return { name: soa.name, id: soa.name, ttlMin: null }
      }
      return null
    },
    async read(_zone, name): Promise<RecordSet[]> {
      const found: ListedRecord[] = []
      for (const type of ASKED_TYPES) found.push(...(await records(name, type)))
      return setsOf(name, found)
    },
    async write(zone, changes) {
      const packet = await exchange(
        encodeUpdate(
          zone.name,
          changes.map(({ change, current }) => ({
            ...change,
            ttlSeconds: change.ttlSeconds ?? TTL_SECONDS,
            before: current?.values ?? [],
          })),
        ),
      )
      const rcode = rcodeOf(packet)
      if (rcode === 0) return
      const { isChanged, words } = updateRefusal(rcode)
      throw new ProviderFault(
        isChanged ? 'changed' : 'refused',
        `${who} did not make the changes (${words}).`,
      )
    },
  }
}

/** A server that refuses to answer about a name has no zone for it. */
function notHere(error: unknown): Buffer {
  if (!(error instanceof ProviderFault) || error.kind !== 'refused') throw error
  return Buffer.alloc(HEADER_BYTES)
}

/** The records of texts with their strings apart, in the order of the answer. */
function textsIn(packet: Buffer): string[] {
  return (decodeFrame(packet).answers ?? []).flatMap((record) =>
    record.type === 'TXT' && Array.isArray(record.data)
      ? [quotedStrings(record.data.map((part) => Buffer.from(part as Buffer)))]
      : [],
  )
}

const problemOf = (outcome: Exclude<Exchange, { kind: 'packet' }>): string =>
  outcome.kind === 'timeout' || outcome.kind === 'flooded'
    ? `no answer within ${ANSWER_MAX_MS / SECOND_MS} s`
    : outcome.problem
