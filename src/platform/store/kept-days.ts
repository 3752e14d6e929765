/**
 * For how long accounts and their domains keep data, where they have set it (retention.md). Only the jobs that remove read
 * this: mail on its way asks nothing, and without rows each of their runs costs one look into an empty table.
 */
import type { Config } from '../config/config.ts'
import type { RetentionSettingRow } from './schema.ts'
import type { Store } from './store.ts'

/** What accounts may set. */
export const KEPT_KINDS = ['messages', 'events', 'dialogues'] as const
export type KeptKind = (typeof KEPT_KINDS)[number]

/** Days. `preset`: without a setting of account or domain. */
export interface KeptBounds {
  preset: number
  min: number
  max: number
}

/** Every installation keeps events so long: counters, alerts and late reports read them (events.md rule 15). */
export const EVENT_DAYS_MIN = 3

type BoundSettings = Pick<
  Config,
  'eventRetentionDays' | 'maxMessageTtlSeconds' | 'messageRetentionDays' | 'transcriptRetentionDays'
>

/** What the operator allows: shorter always; longer only messages, up to the largest `message_ttl`. */
export function keptBounds(config: BoundSettings): Record<KeptKind, KeptBounds> {
  const { eventRetentionDays, messageRetentionDays, transcriptRetentionDays } = config
  const ttlDays = Math.floor(config.maxMessageTtlSeconds / 86_400)
  return {
    messages: { preset: messageRetentionDays, min: 0, max: Math.max(messageRetentionDays, ttlDays) },
    events: { preset: eventRetentionDays, min: EVENT_DAYS_MIN, max: eventRetentionDays },
    dialogues: { preset: transcriptRetentionDays, min: 1, max: transcriptRetentionDays },
  }
}

/** The days that hold under the bounds of today: the operator may have lowered them since. */
export const withinBounds = (days: number, { min, max }: KeptBounds): number =>
  Math.min(Math.max(days, min), max)

export type KeptDays = Awaited<ReturnType<typeof readKeptDays>>

/** All settings of a kind: as many rows as people have made. */
export async function readKeptDays(store: Store, kind: KeptKind, bounds: KeptBounds) {
  const rows = await store.db
    .selectFrom('retention_settings')
    .select(['account_id', 'domain_id', 'days'])
    .where('kind', '=', kind)
    .execute()
  const days = new Map(rows.map((row) => [placeOf(row), withinBounds(row.days, bounds)]))
  return {
    /** What the domain, or else its account, has set; undefined: neither. */
    of: (accountId: string, domainId: string | null): number | undefined =>
      days.get(placeOf({ account_id: accountId, domain_id: domainId ?? '' })) ??
      days.get(placeOf({ account_id: accountId, domain_id: '' })),
    /** Accounts with a setting of their own or of a domain. */
    accounts: new Set(rows.map(({ account_id }) => account_id)),
    /** The smallest of all; undefined without any. */
    least: rows.length === 0 ? undefined : Math.min(...days.values()),
  }
}

const placeOf = ({ account_id, domain_id }: Pick<RetentionSettingRow, 'account_id' | 'domain_id'>) =>
  `${account_id} ${domain_id}`

export interface KeptDomain {
  id: string
  name: string
  account_id: string
}

/** Domains that keep no message once its last recipient is finished. */
export async function domainsKeepingNone(store: Store): Promise<KeptDomain[]> {
  const rows = await store.read({ sql: KEEPING_NONE, values: [] })
  return rows as unknown as KeptDomain[]
}

// The account's row counts where the domain has none.
const KEEPING_NONE = `SELECT domains.id, domains.name, domains.account_id FROM retention_settings AS setting
  JOIN domains ON domains.account_id = setting.account_id
    AND (domains.id = setting.domain_id OR setting.domain_id = '' AND NOT EXISTS (
      SELECT 1 FROM retention_settings AS own WHERE own.account_id = setting.account_id
        AND own.domain_id = domains.id AND own.kind = setting.kind))
  WHERE setting.kind = 'messages' AND setting.days = 0`
