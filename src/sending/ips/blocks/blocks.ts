/**
 * Addresses that a provider blocks (ips-pools.md section 6, decisions 91 and 113).
 *
 * 1. Three replies in a row that say so close an address for the provider (evidence.ts says which count).
 * 2. While it is closed, its share goes to the others of the set (choice.ts).
 * 3. After the pause one message at a time is sent from it. When several in a row were accepted, it is open again; the first
 *    one that the provider itself refuses for the same reason closes it for twice as long.
 *
 * The state is in the address book, so it is in memory here, outlives a restart, and reaches other processes. The decision
 * counts at once, before it is on disk.
 *
 * An address on a blocklist that a provider uses is left for it before the provider refuses anything (listed.ts): others of the
 * set are chosen as long as there are any, and it is used where it is the last one.
 */

import type { Clock } from '../../../base/time/clock.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../base/time/durations.ts'
import type { Core } from '../../../core.ts'
import type { AddressBlocks } from '../../../mail/deliver/contract.ts'
import type { LaneInfo } from '../../../mail/deliver/lanes/lanes.ts'
import { backOffOf, type ShapingTable } from '../../../mail/deliver/shaping/shaping-table.ts'
import { createJob, type Job } from '../../../platform/jobs/job.ts'
import type { IpBlockRow } from '../../../platform/store/schema.ts'
import { blockKey } from '../address-book.ts'
import type { KnownAddresses } from '../known-addresses.ts'
import { createEvidence } from './evidence.ts'
import { isListed } from './listed.ts'

export interface BlockStates {
  /**
   * `probing`: its pause is over, and single messages find out whether the block is. `listed`: it is on a blocklist that the
   * provider uses; it is used where no other address is left.
   */
  stateOf(ip: string, site: string): 'open' | 'closed' | 'probing' | 'listed'
  /** Whether this message may be sent from an address that is probing: one at a time. */
  mayProbe(ip: string, site: string): boolean
}

export interface Block extends Omit<IpBlockRow, 'cleared_at'> {
  state: 'closed' | 'probing' | 'listed'
}

/** A provider refuses mail from an address, and its own reply says so. */
export interface Refusal {
  ip: string
  site: string
  provider: string
  reply: string
}

export interface Blocks extends AddressBlocks, BlockStates {
  /** Oldest first. */
  list(): Block[]
  find(ip: string, site: string): Block | null
  /** Opens an address. Resolves whether it was closed, probing or listed. */
  clear(ip: string, site: string): Promise<boolean>
  /** Called with each refusal that is the provider's own words; must not throw. At most one listener. */
  onRefused(listener: (refusal: Refusal) => void): void
  /** Writes what could not be written, and removes what is long over. */
  readonly job: Job
  /** Resolves when everything decided so far is on disk, or could not be written. */
  written(): Promise<void>
}

interface BlockParts extends Pick<Core, 'store' | 'clock' | 'log'> {
  known: KnownAddresses
  random(): number
  shaping(): ShapingTable
}

/** Accepted messages in a row that open it again. */
export const PROBES_TO_OPEN = 5
/** A probe of which nothing is heard, because its message was cancelled or put off, is forgotten. */
const PROBE_MAX_MS = MINUTE_MS
/** A block this long after the last one is a new one, with the first pause. */
const REMEMBERED_MS = DAY_MS
/** Rows that are kept for that, and rows of addresses and sites that nobody sends to any more. */
const CLEARED_KEPT_MS = 7 * DAY_MS
const UNUSED_KEPT_MS = 30 * DAY_MS
/** Pairs of address and site. Beyond that further ones are not closed: something else is wrong. */
const BLOCKS_MAX = 10_000
/** What waits is looked at again within this time: another address may be free by then. */
const LOOK_AGAIN_MS = HOUR_MS
/** What waits is not all due at the same time. */
const SPREAD_MS = 10 * MINUTE_MS
const REPLY_LENGTH_MAX = 500
const EVERY_MS = MINUTE_MS
const REMOVE_EVERY_MS = HOUR_MS

type Site = Pick<LaneInfo, 'site' | 'provider' | 'limits'>

interface Probing {
  /** Start of the probe in progress, on the monotonic clock; null: none. */
  begunAt: number | null
  accepted: number
  isOpening: boolean
}

export function createBlocks({ store, known, clock, log, random, shaping }: BlockParts): Blocks {
  /** Decided here and not yet in the book. */
  const fresh = new Map<string, IpBlockRow>()
  const evidence = createEvidence({ clock, shaping })
  const probes = createProbes(clock)
  const removeOld = createRemoval({ store, known, clock })
  let writing = Promise.resolve()
  let refused: (refusal: Refusal) => void = () => {}
  const now = () => Math.floor(clock.now())

  function rowOf(key: string): IpBlockRow | undefined {
    const { blocks } = known.book()
    if (fresh.size === 0 && blocks.size === 0) return undefined
    return fresh.get(key) ?? blocks.get(key)
  }

  function stateOf(ip: string, site: string): ReturnType<BlockStates['stateOf']> {
    const { blocks } = known.book()
    if (fresh.size === 0 && blocks.size === 0) return 'open'
    const row = rowOf(blockKey(ip, site))
    return row === undefined ? 'open' : stateOfRow(row, clock.now())
  }

  function close(ip: string, lane: Site, reply: string): void {
    const key = blockKey(ip, lane.site)
    evidence.forget(key)
    probes.forget(key)
    if (known.book().blocks.size + fresh.size >= BLOCKS_MAX) return
    const row = closed(rowOf(key), { ip, lane, reply, now: now() })
    fresh.set(key, row)
    log.warn(
      { ip, site: lane.site, until: new Date(row.until_at).toISOString(), reply: row.reply },
      'a provider blocks a sending address; others take over',
    )
    write(key, row, lane)
  }

  function write(key: string, row: IpBlockRow, lane: Site | null): void {
    writing = writing.then(async () => {
      if (fresh.get(key) !== row) return
      try {
        await persist(known, row, lane, now())
        if (fresh.get(key) === row) fresh.delete(key)
      } catch (error) {
        log.error({ err: error, ip: row.ip, site: row.site }, 'cannot record that an address is blocked')
      }
    })
  }

  async function clear(ip: string, site: string): Promise<boolean> {
    const key = blockKey(ip, site)
    const wasClosed = rowOf(key) !== undefined
    fresh.delete(key)
    probes.forget(key)
    evidence.forget(key)
    await writing
    await opened(known, ip, site, now(), true)
    return wasClosed
  }

  /** Its probes were accepted. */
  function open(ip: string, site: string): void {
    const key = blockKey(ip, site)
    log.info({ ip, site }, 'a provider takes mail from a sending address again')
    writing = writing
      .then(async () => {
        await opened(known, ip, site, now(), false)
        fresh.delete(key)
        probes.forget(key)
      })
      .catch((error: unknown) => {
        probes.notOpened(key)
        log.error({ err: error, ip, site }, 'cannot record that an address is open again')
      })
  }

  return {
    stateOf,
    isClosed: (ip, site) => stateOf(ip, site) === 'closed',
    mayProbe: (ip, site) => stateOf(ip, site) === 'probing' && probes.begin(blockKey(ip, site)),
    answered(ip, lane, domain, answer) {
      const { site } = lane
      const state = stateOf(ip, site)
      const key = blockKey(ip, site)
      if (answer.kind !== 'blocked') {
        const isAccepted = answer.kind === 'accepted'
        evidence.answered(key, site, domain, isAccepted)
        if (state === 'probing' && probes.answered(key, isAccepted)) open(ip, site)
        return
      }
      // Those in progress when it was closed.
      if (state === 'closed') return
      const { isEnough, isSure } = evidence.blocked(key, site, domain)
      if (isSure) refused({ ip, site, provider: lane.provider, reply: answer.reply })
      if (answer.isSure || isEnough || (state === 'probing' && isSure))
        close(ip, lane, `${answer.code} ${answer.reply}`)
      else if (state === 'probing') probes.restart(key)
    },
    nextFree(ip, site) {
      const row = rowOf(blockKey(ip, site))
      if (row === undefined) return clock.now()
      const pauseMs = Math.max(Number(row.until_at) - clock.now(), 0)
      const spreadMs = random() * Math.min(SPREAD_MS, Number(row.pause_ms))
      return clock.now() + Math.min(pauseMs, LOOK_AGAIN_MS) + spreadMs
    },
    find(ip, site) {
      const row = rowOf(blockKey(ip, site))
      return row === undefined ? null : blockOf(row, clock.now())
    },
    list: () =>
      oldestFirst([...known.book().blocks.values()].flatMap((row) => blockOf(row, clock.now()) ?? [])),
    clear,
    onRefused(listener) {
      refused = listener
    },
    written: () => writing,
    job: createJob({
      name: 'ip-blocks',
      everyMs: EVERY_MS,
      // Each process has decisions of its own.
      scope: 'process',
      async work() {
        for (const [key, row] of fresh) write(key, row, null)
        await writing
        await removeOld()
        // Another process has opened these addresses.
        probes.keep((key) => rowOf(key) !== undefined)
      },
    }),
  }
}

/** Messages that try whether a block has ended, by address and site. */
function createProbes(clock: Clock) {
  const probes = new Map<string, Probing>()

  function probingOf(key: string): Probing {
    const probing = probes.get(key) ?? { begunAt: null, accepted: 0, isOpening: false }
    probes.set(key, probing)
    return probing
  }

  return {
    /** False: another probe is in progress. */
    begin(key: string): boolean {
      const probing = probingOf(key)
      const { begunAt } = probing
      if (begunAt !== null && clock.monotonic() - begunAt < PROBE_MAX_MS) return false
      probing.begunAt = clock.monotonic()
      return true
    },
    /** A message from an address that is probing was answered. True, once: enough were accepted to open it. */
    answered(key: string, isAccepted: boolean): boolean {
      const probing = probingOf(key)
      probing.begunAt = null
      if (!isAccepted) return false
      probing.accepted++
      if (probing.accepted < PROBES_TO_OPEN || probing.isOpening) return false
      probing.isOpening = true
      return true
    },
    /** The opening could not be recorded: the next accepted message tries again. */
    notOpened(key: string): void {
      probingOf(key).isOpening = false
    },
    /** A probe was refused, without proof that the address is blocked. */
    restart(key: string): void {
      Object.assign(probingOf(key), { begunAt: null, accepted: 0 })
    },
    forget(key: string): void {
      probes.delete(key)
    },
    keep(isKnown: (key: string) => boolean): void {
      for (const key of probes.keys()) if (!isKnown(key)) probes.delete(key)
    },
  }
}

/** Removes rows that ended long ago, and those of addresses and sites that nobody sends to any more. */
function createRemoval({ store, known, clock }: Pick<BlockParts, 'store' | 'known' | 'clock'>) {
  let nextAt = 0
  /** Rows that have ended are in no book. */
  return async (): Promise<void> => {
    if (clock.monotonic() < nextAt) return
    nextAt = clock.monotonic() + REMOVE_EVERY_MS
    const now = Math.floor(clock.now())
    const ended = store.db.deleteFrom('ip_blocks').where('cleared_at', '<', now - CLEARED_KEPT_MS)
    await ended.execute()
    const unusedSince = now - UNUSED_KEPT_MS
    if (![...known.book().blocks.values()].some((row) => Number(row.until_at) < unusedSince)) return
    await known.change(async (tx) => {
      await tx.deleteFrom('ip_blocks').where('until_at', '<', unusedSince).execute()
    })
  }
}

const oldestFirst = (all: Block[]) => all.sort((one, other) => one.since_at - other.since_at)

/** A listing that nobody confirms any more has ended. */
function stateOfRow(row: IpBlockRow, now: number): ReturnType<BlockStates['stateOf']> {
  const isOver = now >= Number(row.until_at)
  if (isListed(row)) return isOver ? 'open' : 'listed'
  return isOver ? 'probing' : 'closed'
}

/** Null: it is open. */
function blockOf({ cleared_at: _, ...row }: IpBlockRow, now: number): Block | null {
  const state = stateOfRow({ ...row, cleared_at: null }, now)
  if (state === 'open') return null
  return {
    ...row,
    since_at: Number(row.since_at),
    until_at: Number(row.until_at),
    pause_ms: Number(row.pause_ms),
    times: Number(row.times),
    state,
  }
}

interface Closing {
  ip: string
  lane: Site
  reply: string
  now: number
}

/** `former`: the present block, or one that ended lately: if replies began it, the pause is twice as long. */
function closed(former: IpBlockRow | undefined, { ip, lane, reply, now }: Closing): IpBlockRow {
  const before = former === undefined || isListed(former) ? undefined : former
  const { blockedPauseMs, blockedPauseMaxMs } = backOffOf(lane.limits)
  const pause =
    before === undefined ? blockedPauseMs : Math.min(2 * Number(before.pause_ms), blockedPauseMaxMs)
  return {
    ip,
    site: lane.site,
    provider: lane.provider,
    reply: reply.replaceAll('\0', '').slice(0, REPLY_LENGTH_MAX),
    since_at: before?.cleared_at === null ? Number(before.since_at) : now,
    until_at: now + pause,
    pause_ms: pause,
    times: before === undefined ? 1 : Number(before.times) + 1,
    cleared_at: null,
    listed_by: null,
  }
}

/** `lane` null: the row is written as it is. */
async function persist(known: KnownAddresses, row: IpBlockRow, lane: Site | null, now: number) {
  await known.change(async (tx) => {
    const before = await tx
      .selectFrom('ip_blocks')
      .selectAll()
      .where('ip', '=', row.ip)
      .where('site', '=', row.site)
      .executeTakeFirst()
    // Another process has closed it for the same reason.
    if (before?.cleared_at === null && !isListed(before) && Number(before.until_at) > now) return
    const isRemembered =
      before !== undefined && (before.cleared_at === null || Number(before.cleared_at) > now - REMEMBERED_MS)
    const final = lane === null || !isRemembered ? row : closed(before, { ...row, lane, now })
    await tx.deleteFrom('ip_blocks').where('ip', '=', row.ip).where('site', '=', row.site).execute()
    await tx.insertInto('ip_blocks').values(final).execute()
  })
}

/** Ends a block. Unless `isAsked`, one whose pause is not over stays: another process may have begun it again. */
async function opened(known: KnownAddresses, ip: string, site: string, now: number, isAsked: boolean) {
  await known.change(async (tx) => {
    await tx
      .updateTable('ip_blocks')
      .set({ cleared_at: now })
      .where('ip', '=', ip)
      .where('site', '=', site)
      .where('cleared_at', 'is', null)
      .$if(!isAsked, (query) => query.where('until_at', '<=', now))
      .execute()
  })
}
