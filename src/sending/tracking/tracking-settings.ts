/** Tracking settings of domains (tracking.md K1-K4): read for every message, so cached for seconds. */
import { type Cache, createCache } from '../../base/flow/cache.ts'
import type { Clock } from '../../base/time/clock.ts'
import { given } from '../../platform/http/request/inputs.ts'
import type { Flag, TrackingSettingsRow } from '../../platform/store/schema.ts'
import type { Db, Store } from '../../platform/store/store.ts'
import type { Domain } from '../domains/domain.ts'

export interface TrackingSettings {
  opens: boolean
  /** The pixel is at the beginning of the html. */
  opensAtTop: boolean
  clicks: 'no' | 'yes' | 'htmlonly'
  unsubscribe: boolean
  /** Bulk mail gets List-Unsubscribe, without footers, although `unsubscribe` is off. */
  unsubscribeOnBulk: boolean
  htmlFooter: string
  textFooter: string
  preferences: Preferences
}

/** The page of topics behind the unsubscribe links of a domain. */
export interface Preferences {
  isActive: boolean
  /** Tags, besides the lists that have a title. */
  topics: readonly Topic[]
  /** Stored template of the pages behind unsubscribe links; absent: the built-in pages. */
  pageTemplate?: string | undefined
}

export interface Topic {
  tag: string
  title: string
}

/** The topics among tags of a message; all of them if none is a topic, or the domain has no page of topics. */
export function topicTags({ isActive, topics }: Preferences, tags: readonly string[]): readonly string[] {
  if (!isActive) return tags
  const keys = new Set(topics.map(({ tag }) => tag.toLowerCase()))
  const known = tags.filter((tag) => keys.has(tag.toLowerCase()))
  return known.length > 0 ? known : tags
}

/** Whether one of the tags is a topic, so that one click unsubscribes from that and not from all mail. */
export const isOnTopic = ({ isActive, topics }: Preferences, tags: readonly string[]): boolean =>
  isActive && topics.some(({ tag }) => tags.some((other) => other.toLowerCase() === tag.toLowerCase()))

export const DEFAULT_TRACKING: TrackingSettings = {
  opens: false,
  opensAtTop: false,
  clicks: 'no',
  unsubscribe: false,
  unsubscribeOnBulk: true,
  htmlFooter: '\n<br>\n<p><a href="%unsubscribe_url%">unsubscribe</a></p>\n',
  textFooter: '\n\nTo unsubscribe click: <%unsubscribe_url%>\n\n',
  preferences: { isActive: false, topics: [] },
}

export type TrackingDirectory = ReturnType<typeof createTrackingDirectory>

/** As for domains: a change on another node takes effect after at most this time. */
const REMEMBER_MS = 5_000
const DOMAINS_MAX = 10_000

export function createTrackingDirectory(store: Store, clock: Clock) {
  const read = (db: Db, domainId: string) =>
    db.selectFrom('tracking_settings').selectAll().where('domain_id', '=', domainId).executeTakeFirst()
  const cache: Cache<TrackingSettings> = createCache({
    clock,
    ttlMs: REMEMBER_MS,
    entriesMax: DOMAINS_MAX,
    shared: { changes: store.changes, topic: 'tracking-settings' },
    load: async (domainId) => settingsOf(await read(store.db, domainId)),
  })
  return {
    get: (domainId: string) => cache.get(domainId),
    /** Changes the given settings and resolves to all of them. */
    async change(
      domain: Pick<Domain, 'id' | 'accountId'>,
      changes: { readonly [K in keyof TrackingSettings]?: TrackingSettings[K] | undefined },
    ): Promise<TrackingSettings> {
      const after = await store.transaction(async (tx) => {
        const settings = { ...settingsOf(await read(tx, domain.id)), ...given(changes) }
        const row = columnsOf(settings)
        await tx
          .insertInto('tracking_settings')
          .values({ domain_id: domain.id, account_id: domain.accountId, ...row })
          .onConflict((conflict) => conflict.column('domain_id').doUpdateSet(row))
          .execute()
        return settings
      })
      cache.forget(domain.id)
      return after
    },
    /** Removes the settings of a deleted domain, and invalidates the cache. */
    async remove(domainId: string): Promise<void> {
      await store.db.deleteFrom('tracking_settings').where('domain_id', '=', domainId).execute()
      cache.forget(domainId)
    },
  }
}

function settingsOf(row: TrackingSettingsRow | undefined): TrackingSettings {
  if (!row) return DEFAULT_TRACKING
  return {
    opens: row.opens === 1,
    opensAtTop: row.opens_at_top === 1,
    clicks: row.clicks as TrackingSettings['clicks'],
    unsubscribe: row.unsubscribe === 1,
    unsubscribeOnBulk: row.unsubscribe_on_bulk === 1,
    htmlFooter: row.html_footer ?? DEFAULT_TRACKING.htmlFooter,
    textFooter: row.text_footer ?? DEFAULT_TRACKING.textFooter,
    preferences:
      row.preferences_json === null
        ? DEFAULT_TRACKING.preferences
        : (JSON.parse(row.preferences_json) as Preferences),
  }
}

function columnsOf(settings: TrackingSettings): Omit<TrackingSettingsRow, 'domain_id' | 'account_id'> {
  const flag = (value: boolean): Flag => (value ? 1 : 0)
  // A footer that was never changed follows the service's default.
  const ownText = (text: string, standard: string) => (text === standard ? null : text)
  return {
    opens: flag(settings.opens),
    opens_at_top: flag(settings.opensAtTop),
    clicks: settings.clicks,
    unsubscribe: flag(settings.unsubscribe),
    unsubscribe_on_bulk: flag(settings.unsubscribeOnBulk),
    html_footer: ownText(settings.htmlFooter, DEFAULT_TRACKING.htmlFooter),
    text_footer: ownText(settings.textFooter, DEFAULT_TRACKING.textFooter),
    preferences_json: JSON.stringify(settings.preferences),
  }
}
