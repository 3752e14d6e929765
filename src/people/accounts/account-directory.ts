/** Accounts by id, for hot paths: cached for a few seconds, invalidated when they change. */
import { type Cache, createCache } from '../../base/flow/cache.ts'
import type { Clock } from '../../base/time/clock.ts'
import type { AccountRow } from '../../platform/store/schema.ts'
import type { Store } from '../../platform/store/store.ts'

type AccountStatus = 'open' | 'disabled' | 'closed'

/** accounts.md section 3, with the defaults of rule 7. */
const FEATURE_DEFAULTS = {
  email_preview: false,
  inbox_placement: false,
  sending: true,
  validations: true,
  validations_bulk: true,
} as const
export type Feature = keyof typeof FEATURE_DEFAULTS
type StoredFeatures = Partial<Record<Feature | 'strict_parameters', boolean>>

export const forFeatures = <T>(value: T) =>
  Object.fromEntries(Object.keys(FEATURE_DEFAULTS).map((name) => [name, value])) as Record<Feature, T>

/** The form of an account's id. */
export const ACCOUNT_ID = /^[0-9a-f]{24}$/

const NAME_LENGTH_MAX = 255

/** 1 to 255 characters, none of them a control character. */
export const isAccountName = (name: string): boolean =>
  name.length >= 1 && name.length <= NAME_LENGTH_MAX && !/\p{Cc}/u.test(name)

export interface Account {
  id: string
  /** Null: it is not a subaccount. */
  parentId: string | null
  name: string
  status: AccountStatus
  features: Readonly<Record<Feature, boolean>>
  /** Calls with parameters that are not known are refused: a feature that the account switches for itself. */
  isStrict: boolean
  /** Unix milliseconds. */
  createdAt: number
  updatedAt: number
}

/** Whether its mail may leave and new mail is accepted (accounts.md section 3 rules 4 and 7). Null: no such account. */
export const maySend = (account: Account | null): boolean =>
  account === null || (account.status === 'open' && account.features.sending)

export const isClosed = (account: Account | null): boolean => account?.status === 'closed'

export type AccountDirectory = ReturnType<typeof createAccountDirectory>

/** A change on another node takes effect after at most this time. */
const REMEMBER_MS = 5_000
const ACCOUNTS_MAX = 10_000

export function createAccountDirectory(store: Store, clock: Clock) {
  const accounts: Cache<Account | null> = createCache({
    clock,
    ttlMs: REMEMBER_MS,
    entriesMax: ACCOUNTS_MAX,
    shared: { changes: store.changes, topic: 'accounts' },
    load: async (id) => {
      const row = await store.db.selectFrom('accounts').selectAll().where('id', '=', id).executeTakeFirst()
      return row ? accountOfRow(row) : null
    },
  })
  return {
    /** Also closed ones. Synchronous if cached. */
    byId: (id: string) => accounts.get(id),
    /** Ids of its subaccounts, without closed ones; not cached. */
    async childrenOf(id: string): Promise<string[]> {
      const rows = await store.db
        .selectFrom('accounts')
        .select('id')
        .where('parent_id', '=', id)
        .where('status', '<>', 'closed')
        .orderBy('id')
        .execute()
      return rows.map((row) => row.id)
    },
    /** Must be called after every change of an account. */
    changed: (id: string) => accounts.forget(id),
  }
}

export function accountOfRow(row: AccountRow): Account {
  const { strict_parameters: isStrict, ...features } = JSON.parse(row.features_json) as StoredFeatures
  return {
    id: row.id,
    parentId: row.parent_id,
    name: row.name,
    status: row.status as AccountStatus,
    features: { ...FEATURE_DEFAULTS, ...features },
    isStrict: isStrict === true,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }
}
