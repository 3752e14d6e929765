/** How long data of each kind is kept in fact, and who has said so. Pure. */
import { keptDaysOfMessages } from '../../mail/stored/message-retention.ts'
import type { Config } from '../../platform/config/config.ts'
import { KEPT_KINDS, type KeptKind, keptBounds, withinBounds } from '../../platform/store/kept-days.ts'
import { isKeptKind, KINDS_OF_DATA, type KindOfData } from './kinds.ts'

/** Days by kind. */
export type SetDays = Partial<Record<KeptKind, number>>

export interface Effective extends KindOfData {
  /** Null: until somebody removes it. A fraction where `message_ttl` is not of whole days. */
  keptDays: number | null
  source: 'fixed' | 'service' | 'account' | 'domain' | 'message_ttl'
  /** What may be set; null: accounts cannot set it. */
  range: { min: number; max: number; own: number | null } | null
}

interface Settings {
  account: SetDays
  /** Null: of the account, not of a domain. */
  domain: { set: SetDays; messageTtlSeconds: number } | null
}

export function effectiveDays(config: Config, settings: Settings): Effective[] {
  const bounds = keptBounds(config)
  return KINDS_OF_DATA.map((each): Effective => {
    if (!isKeptKind(each.kind)) {
      const source = each.setting === null ? 'fixed' : 'service'
      return { ...each, keptDays: each.days?.(config) ?? null, source, range: null }
    }
    const { preset, min, max } = bounds[each.kind]
    const own = (settings.domain?.set ?? settings.account)[each.kind]
    const found = chosenOf(each.kind, settings)
    const days = found.days === undefined ? undefined : withinBounds(found.days, { preset, min, max })
    const range = { min, max, own: own ?? null }
    const ttl = each.kind === 'messages' ? (settings.domain?.messageTtlSeconds ?? 0) : 0
    const keptDays = keptDaysOfMessages(days, ttl, preset)
    const isTtl = ttl > 0 && keptDays !== days
    return { ...each, keptDays, source: isTtl ? 'message_ttl' : found.source, range }
  })
}

function chosenOf(
  kind: KeptKind,
  { account, domain }: Settings,
): { days: number | undefined; source: 'domain' | 'account' | 'service' } {
  if (domain?.set[kind] !== undefined) return { days: domain.set[kind], source: 'domain' }
  if (account[kind] !== undefined) return { days: account[kind], source: 'account' }
  return { days: undefined, source: 'service' }
}

/** The days of rows of `retention_settings`. */
export const setDaysOf = (rows: readonly { kind: string; days: number }[]): SetDays =>
  Object.fromEntries(
    KEPT_KINDS.flatMap((kind) => rows.filter((row) => row.kind === kind).map(({ days }) => [kind, days])),
  )
