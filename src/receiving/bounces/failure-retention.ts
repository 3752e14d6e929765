/** Removes classified failures: expired ones, and those of a deleted domain. */
import type { Store } from '../../platform/store/store.ts'

/** Rows in one transaction: it blocks the writer for some milliseconds. */
const CHUNK = 1_000

const OLD = `DELETE FROM classified_failures WHERE id IN
  (SELECT id FROM classified_failures WHERE failed_at < ? ORDER BY failed_at LIMIT ${CHUNK})`
const OF_DOMAIN = `DELETE FROM classified_failures WHERE id IN
  (SELECT id FROM classified_failures WHERE account_id = ? AND domain_name = ? LIMIT ${CHUNK})`

/** `before`: Unix milliseconds. Ends early when `signal` aborts; the next run continues. */
export async function removeOldFailures(store: Store, before: number, signal?: AbortSignal): Promise<void> {
  while (!signal?.aborted) {
    const [result] = await store.commit([{ sql: OLD, values: [Math.floor(before)] }])
    if ((result?.affected ?? 0) < CHUNK) return
  }
}

export async function removeFailuresOf(
  store: Store,
  domain: { accountId: string; name: string },
): Promise<void> {
  for (;;) {
    const [result] = await store.commit([{ sql: OF_DOMAIN, values: [domain.accountId, domain.name] }])
    if ((result?.affected ?? 0) < CHUNK) return
  }
}
