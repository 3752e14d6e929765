/**
 * Fault injection of the built-in inbox: a developer sees how their program handles a full mailbox, a greylisting
 * server or a slow one (own-operations.md section 1). Kept in the database, so that a restart in the middle of a test
 * changes nothing.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { createCache } from '../../base/flow/cache.ts'
import { BadRequest } from '../../base/process/errors.ts'
import type { Of } from '../../base/shape.ts'
import type { Clock } from '../../base/time/clock.ts'
import { isPlainObject } from '../../base/values.ts'
import type { Store } from '../../platform/store/store.ts'
import { DELAY_MS_MAX, type FAULT, STAGES } from './shapes.ts'

export type FaultStage = (typeof STAGES)[number]
/** At `connect` no recipient is known yet, so it must be `*`. */
type Fault = Of<typeof FAULT>

export type Faults = ReturnType<typeof createFaults>

export interface FaultReply {
  code: number
  text: string
}

const FAULTS_MAX = 100
/** Matching a pattern with many stars is slow for a long address. */
const STARS_MAX = 5
const TEXT_MAX = 400 // a reply line has 512 bytes, RFC 5321 §4.5.3.1.5
/** Other processes on the same database see a change after at most this time. */
const REMEMBER_MS = 1_000

const SAVE = `INSERT INTO inbox_faults (id, faults_json, updated_at) VALUES (1, ?, ?)
  ON CONFLICT (id) DO UPDATE SET faults_json = excluded.faults_json, updated_at = excluded.updated_at`

export function createFaults(store: Store, clock: Clock, random: () => number) {
  const remembered = createCache<readonly Fault[]>({
    clock,
    ttlMs: REMEMBER_MS,
    entriesMax: 1,
    async load() {
      const row = await store.db.selectFrom('inbox_faults').select('faults_json').executeTakeFirst()
      return row ? (JSON.parse(row.faults_json) as Fault[]) : []
    },
  })
  const list = async (): Promise<readonly Fault[]> => remembered.get('')
  return {
    list,
    /** @throws BadRequest for what is not a list of faults */
    async replace(given: unknown): Promise<readonly Fault[]> {
      const faults = readFaults(given)
      await store.commit([{ sql: SAVE, values: [JSON.stringify(faults), Math.round(clock.now())] }])
      remembered.forget()
      return faults
    },
    /** The reply to send at this stage, after its delay; null: the usual one. */
    async at(stage: FaultStage, recipients: () => Promise<readonly string[]>): Promise<FaultReply | null> {
      const candidates = (await list()).filter((fault) => fault.stage === stage)
      if (candidates.length === 0) return null
      const named = candidates.some(({ recipient }) => recipient !== '*') ? await recipients() : []
      const fault = candidates.find(
        ({ recipient, probability }) =>
          (recipient === '*' || named.some((address) => matches(recipient, address))) &&
          random() < probability,
      )
      if (!fault) return null
      if (fault.delay_ms > 0) await sleep(fault.delay_ms)
      return fault.reply === '' ? null : { code: Number(fault.reply.slice(0, 3)), text: fault.reply.slice(4) }
    },
  }
}

function matches(pattern: string, address: string): boolean {
  const parts = pattern.split('*').map((part) => part.replace(/[.\\+?^${}()|[\]]/g, '\\$&'))
  return new RegExp(`^${parts.join('.*')}$`, 'i').test(address)
}

function readFaults(given: unknown): Fault[] {
  if (!Array.isArray(given)) throw new BadRequest('The body must be a JSON list of faults')
  if (given.length > FAULTS_MAX) throw new BadRequest(`There can be at most ${FAULTS_MAX} faults`)
  return given.map(readFault)
}

function readFault(given: unknown, index: number): Fault {
  const wrong = (name: string): never => {
    throw new BadRequest(`Invalid format for parameter ${name} of fault ${index}`)
  }
  if (!isPlainObject(given)) return wrong('fault')
  const { recipient = '*', stage, reply = '', probability = 1, delay_ms = 0, ...rest } = given
  const [unknown] = Object.keys(rest)
  if (unknown !== undefined)
    throw new BadRequest(`Unknown member of fault ${index}: ${unknown.slice(0, 100)}`)
  const known = STAGES.find((name) => name === stage)
  if (!known) return wrong('stage')
  if (typeof recipient !== 'string' || recipient === '' || recipient.length > TEXT_MAX)
    return wrong('recipient')
  if (recipient.split('*').length > STARS_MAX + 1) return wrong('recipient')
  if (known === 'connect' && recipient !== '*') return wrong('recipient')
  if (typeof reply !== 'string' || !/^(?:[45]\d\d [\x20-\x7e]+)?$/.test(reply) || reply.length > TEXT_MAX)
    return wrong('reply')
  if (typeof probability !== 'number' || !(probability >= 0 && probability <= 1)) return wrong('probability')
  if (typeof delay_ms !== 'number' || !Number.isInteger(delay_ms) || delay_ms < 0 || delay_ms > DELAY_MS_MAX)
    return wrong('delay_ms')
  return { recipient, stage: known, reply, probability, delay_ms }
}
