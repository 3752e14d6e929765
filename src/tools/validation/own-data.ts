/**
 * What the account's own mail says about addresses: its bounce lists, and the events of the last 90 days as far as they
 * are kept (validation.md section 2 rows 5 and 6). Other accounts' mail is not looked at: their recipients are theirs.
 */

import { sql } from 'kysely'
import type { Clock } from '../../base/time/clock.ts'
import { DAY_MS } from '../../base/time/durations.ts'
import type { EventRow } from '../../platform/store/schema.ts'
import type { Store } from '../../platform/store/store.ts'
import { recipientHash } from '../../watching/events/event.ts'
import { toRecipients } from '../../watching/events/search/indexing.ts'
import type { Engagement } from './shapes.ts'
import type { History } from './verdict.ts'

export type OwnData = ReturnType<typeof createOwnData>

/** Days that a delivery or a hard bounce counts. */
const HISTORY_DAYS = 90
/** Sending domains that are searched, the newest. An account with more sends to the same people from several. */
const DOMAINS_MAX = 200
/** Hashes of recipients in one read: on SQLite a step in the index of each segment, a few milliseconds. */
const HASHES_PER_READ = 30
/** Events of one read. Where there are more, each address gets a read of its own with its newest events. */
const EVENTS_PER_READ = 1_000
const EVENTS_PER_ADDRESS = 200
const ADDRESSES_PER_READ = 100

const NAMES = ['delivered', 'failed', 'opened', 'clicked'] as const

type FoundEvent = Pick<EventRow, 'recipient' | 'event' | 'timestamp_us' | 'payload_json'>

export function createOwnData(store: Store, clock: Clock) {
  const { db } = store

  const domainsOf = (accountId: string) =>
    db
      .selectFrom('domains')
      .select(['id', 'name'])
      .where('account_id', '=', accountId)
      .orderBy('created_at', 'desc')
      .orderBy('id', 'desc')
      .limit(DOMAINS_MAX)
      .execute()

  /** Keys that are on a bounce list of one of the domains. Each is a range of one primary key. */
  async function listedBounces(domainIds: readonly string[], keys: readonly string[]): Promise<Set<string>> {
    const listed = new Set<string>()
    const now = Math.floor(clock.now())
    for (const domainId of domainIds) {
      for (const some of portions(keys, ADDRESSES_PER_READ)) {
        const rows = await db
          .selectFrom('suppressions')
          .select('address')
          .where('domain_id', '=', domainId)
          .where('kind', '=', 'bounces')
          .where('address', 'in', some)
          .where((eb) => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', now)]))
          .execute()
        for (const { address } of rows) listed.add(address)
      }
    }
    return listed
  }

  /** Newest first. Conditions besides the recipients are written so that no other index matches them. */
  function eventsTo(accountId: string, hashes: readonly number[], limit: number): Promise<FoundEvent[]> {
    const now = clock.now()
    const fromUs = Math.floor((now - HISTORY_DAYS * DAY_MS) * 1000)
    return db
      .selectFrom('events')
      .select(['recipient', 'event', 'timestamp_us', 'payload_json'])
      .where(toRecipients(store, hashes, fromUs, Math.ceil(now * 1000)))
      .where(sql`account_id || ''`, '=', accountId)
      .where(sql`event || ''`, 'in', [...NAMES])
      .orderBy('timestamp_us', 'desc')
      .limit(limit)
      .execute()
  }

  return {
    /** By address key; an address without history is left out. */
    async historyOf(accountId: string, keys: readonly string[]): Promise<ReadonlyMap<string, History>> {
      const found = new Map<string, History>()
      const domains = keys.length > 0 ? await domainsOf(accountId) : []
      if (domains.length === 0) return found
      const wanted = new Set(keys)
      const historyOf = (key: string): History => {
        const known = found.get(key) ?? { bounced: false, deliveredAt: null, engagement: null }
        found.set(key, known)
        return known
      }
      const take = (rows: readonly FoundEvent[]) => {
        for (const row of rows) {
          const key = row.recipient?.normalize('NFC').toLowerCase() ?? ''
          if (wanted.has(key)) addEvent(historyOf(key), row)
        }
      }
      const listed = await listedBounces(
        domains.map(({ id }) => id),
        keys,
      )
      for (const key of listed) historyOf(key).bounced = true
      const hashes = keys.flatMap((key) => domains.map(({ name }) => recipientHash(name, key)))
      for (const some of portions(hashes, HASHES_PER_READ)) {
        const rows = await eventsTo(accountId, some, EVENTS_PER_READ)
        if (rows.length < EVENTS_PER_READ) take(rows)
        else for (const hash of some) take(await eventsTo(accountId, [hash], EVENTS_PER_ADDRESS))
      }
      return found
    },
  }
}

function addEvent(history: History, row: FoundEvent): void {
  const at = Number(row.timestamp_us) / 1000
  const payload = JSON.parse(row.payload_json) as {
    severity?: unknown
    reason?: unknown
    'client-info'?: { bot?: unknown }
  }
  if (row.event === 'delivered') history.deliveredAt = Math.max(at, history.deliveredAt ?? 0)
  else if (row.event === 'failed') {
    // Refusals by a suppression list have other reasons: they say nothing new about the mailbox.
    if (payload.severity === 'permanent' && payload.reason === 'bounce') history.bounced = true
  } else history.engagement = withVisit(history.engagement, Boolean(payload['client-info']?.bot))
}

/** A bot's visit does not show a reader; one visit without a bot does. */
function withVisit(before: Engagement | null, isBot: boolean): Engagement {
  const engaging = !isBot || before?.engaging === true
  return { engaging, is_bot: !engaging }
}

function* portions<T>(values: readonly T[], size: number): Generator<T[]> {
  for (let at = 0; at < values.length; at += size) yield values.slice(at, at + size)
}
