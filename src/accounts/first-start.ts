/** What a new installation begins with: an account, its signing key, an admin key, an active sandbox domain. */
import { sql } from 'kysely'
import type { Clock } from '../base/clock.ts'
import { randomHex } from '../base/ids.ts'
import type { Sealer } from '../store/sealing.ts'
import type { Store } from '../store/store.ts'
import type { Keys, NewKey } from './keys.ts'

export interface FirstAccount {
  accountId: string
  sandboxDomain: string
  /** The admin key's secret when this start made it; null when it was made or configured before. */
  newApiKey: string | null
}

export interface FirstStartParts {
  store: Store
  sealer: Sealer
  keys: Keys
  clock: Clock
  /** Makes a domain with its DKIM key, active at once. */
  createSandbox(accountId: string, name: string): Promise<void>
}

/** Domain under which sandbox domains are made; `.localhost` never leaves the machine (RFC 6761 §6.3). */
const SANDBOX_PARENT = 'sendwright.localhost'

/**
 * Makes what is missing and nothing twice, so that a start which was cut off half-way is finished by the
 * next. `configuredKey` is the first admin key given by configuration; changing it adds a key. Processes that start
 * together on one database take turns.
 */
export function ensureFirstAccount(
  parts: FirstStartParts,
  configuredKey: string | null,
): Promise<FirstAccount> {
  // SQLite's database has one process, and a transaction would hold its only writer.
  if (parts.store.kind === 'sqlite') return makeMissing(parts, configuredKey)
  return parts.store.transaction(async (tx) => {
    await sql`SELECT pg_advisory_xact_lock(${FIRST_START_LOCK})`.execute(tx)
    return makeMissing(parts, configuredKey)
  })
}

/** Sets this lock apart from others in the database. */
const FIRST_START_LOCK = 7_309_454

async function makeMissing(parts: FirstStartParts, configuredKey: string | null): Promise<FirstAccount> {
  const { store, keys } = parts
  const accountId = await firstAccountId(parts)
  const sandbox = await store.db
    .selectFrom('domains')
    .select('name')
    .where('account_id', '=', accountId)
    .where('type', '=', 'sandbox')
    .executeTakeFirst()
  const sandboxDomain = sandbox?.name ?? `sandbox${randomHex(4)}.${SANDBOX_PARENT}`
  if (!sandbox) await parts.createSandbox(accountId, sandboxDomain)

  const newKey: NewKey = {
    accountId,
    kind: 'user',
    role: 'admin',
    description: configuredKey ? 'from the configuration' : 'made at the first start',
    domainName: null,
    requestor: null,
    userName: null,
    expiresAt: null,
  }
  if (configuredKey) {
    const holder = await keys.authenticate(configuredKey)
    if (!holder) await keys.create(newKey, configuredKey)
    return { accountId, sandboxDomain, newApiKey: null }
  }
  const known = await keys.list(accountId, {})
  if (known.length > 0) return { accountId, sandboxDomain, newApiKey: null }
  const { secret } = await keys.create(newKey)
  return { accountId, sandboxDomain, newApiKey: secret }
}

/** The oldest account without a parent; made when there is none. */
async function firstAccountId({ store, sealer, clock }: FirstStartParts): Promise<string> {
  return store.transaction(async (tx) => {
    const row = await tx
      .selectFrom('accounts')
      .select('id')
      .where('parent_id', 'is', null)
      .orderBy('created_at')
      .orderBy('id')
      .limit(1)
      .executeTakeFirst()
    if (row) return row.id
    const now = clock.now()
    const account = {
      id: randomHex(12),
      parent_id: null,
      name: 'Main account',
      signing_key_sealed: sealer.seal('webhook-signing-key', `key-${randomHex(16)}`),
      created_at: Math.floor(now),
    }
    await tx.insertInto('accounts').values(account).execute()
    return account.id
  })
}
