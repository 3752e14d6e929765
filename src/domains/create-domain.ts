/** Making a domain together with its first DKIM key. */
import type { Clock } from '../base/clock.ts'
import { randomHex } from '../base/ids.ts'
import { newDkimKeyRow } from '../domain-keys/signing-keys.ts'
import type { Sealer } from '../store/sealing.ts'
import type { Store } from '../store/store.ts'
import { newDomainRow } from './domain.ts'

/** A sandbox domain: active at once, signed with a key of its own that no DNS publishes. */
export async function createSandbox(
  parts: { store: Store; sealer: Sealer; clock: Clock },
  accountId: string,
  name: string,
): Promise<void> {
  const { store, sealer, clock } = parts
  const now = clock.now()
  const key = await newDkimKeyRow(
    sealer,
    { accountId, authority: name, selector: 'k1', algorithm: 'rsa', bits: 2048, active: true },
    now,
  )
  const domain = newDomainRow({
    id: randomHex(12),
    account_id: accountId,
    name,
    type: 'sandbox',
    state: 'active',
    created_at: Math.floor(now),
  })
  await store.transaction(async (tx) => {
    await tx.insertInto('domains').values(domain).execute()
    await tx.insertInto('dkim_keys').values(key).execute()
  })
}
