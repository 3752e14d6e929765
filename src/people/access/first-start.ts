/** What a new installation starts with: an account, its signing key, an admin key, an active sandbox domain. */
import { sql } from 'kysely'
import { randomHex } from '../../base/ids.ts'
import type { Core } from '../../core.ts'
import { enter, entriesOf } from '../../platform/store/pods/entries.ts'
import { advisoryKey } from '../../platform/store/pods/pod.ts'
import { FIRST_START_LOCK } from '../../platform/store/postgres/advisory-locks.ts'
import type { Keys, NewKey } from '../keys/api-keys.ts'

export interface FirstAccount {
  accountId: string
  sandboxDomain: string
  /** The admin key's secret if this start created it; null if it existed before or is configured. */
  newApiKey: string | null
}

interface FirstStartParts extends Pick<Core, 'store' | 'sealer' | 'clock'> {
  keys: Keys
  /** Creates a domain with its DKIM key, active at once. */
  createSandbox(accountId: string, name: string): Promise<void>
}

/** Parent domain of sandbox domains; `.localhost` never leaves the machine (RFC 6761 §6.3). */
const SANDBOX_PARENT = 'sendwright.localhost'

/**
 * Creates only what is missing, so that the next start completes one that was interrupted. `configuredKey` is the
 * first admin key from the configuration; changing it adds a key. Concurrent starts on one database are serialised.
 */
export function ensureFirstAccount(
  parts: FirstStartParts,
  configuredKey: string | null,
): Promise<FirstAccount> {
  // SQLite's database has one process, and a transaction would block its only writer.
  if (parts.store.kind === 'sqlite') return createMissing(parts, configuredKey)
  return parts.store.transaction(async (tx) => {
    await sql`SELECT pg_advisory_xact_lock(${sql.raw(advisoryKey(FIRST_START_LOCK))})`.execute(tx)
    return createMissing(parts, configuredKey)
  })
}

async function createMissing(parts: FirstStartParts, configuredKey: string | null): Promise<FirstAccount> {
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

/** The oldest account without a parent; created if there is none. */
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
      updated_at: Math.floor(now),
    }
    await tx.insertInto('accounts').values(account).execute()
    await enter(store, tx, entriesOf('account', [account.id]))
    return account.id
  })
}
