/** Certificates of tracking hosts and the challenges of their orders, in the database. */
import type { CertificateRow } from '../store/schema.ts'
import type { Sealer } from '../store/sealing.ts'
import type { Store } from '../store/store.ts'

const SEALED_AS = 'certificate-key'

export interface CertificatePair {
  /** PEM, the host's certificate first. */
  chain: string
  /** PKCS #8, PEM. */
  key: string
}

/** What an order leaves behind, besides ending the claim. */
export type OrderResult = Partial<
  Pick<
    CertificateRow,
    'chain' | 'key_sealed' | 'expires_at' | 'issued_at' | 'error' | 'due_at' | 'attempts' | 'requested'
  >
>

export type CertificateStore = ReturnType<typeof createCertificateStore>

export function createCertificateStore(store: Store, sealer: Sealer) {
  const { db, leaseTimes } = store
  return {
    async find(host: string): Promise<CertificateRow | null> {
      const query = db.selectFrom('certificates').selectAll().where('host', '=', host)
      return (await query.executeTakeFirst()) ?? null
    },

    sealKey: (key: string): Uint8Array => sealer.seal(SEALED_AS, key),

    /** The pair in use; null: there is none. @throws when the key was sealed under another secret */
    async pair(host: string): Promise<CertificatePair | null> {
      const row = await db
        .selectFrom('certificates')
        .select(['chain', 'key_sealed'])
        .where('host', '=', host)
        .executeTakeFirst()
      if (!row?.chain || !row.key_sealed) return null
      return { chain: row.chain, key: sealer.open(SEALED_AS, row.key_sealed).toString('utf8') }
    },

    /** Takes a host up for its first order; false: it has a row already. */
    async add(row: { host: string; accountId: string; domainId: string; now: number }): Promise<boolean> {
      const { host, accountId, domainId, now } = row
      const added = await db
        .insertInto('certificates')
        .values({
          host,
          account_id: accountId,
          domain_id: domainId,
          chain: null,
          key_sealed: null,
          expires_at: null,
          issued_at: null,
          requested: 1,
          error: null,
          due_at: now,
          attempts: 0,
          orders_json: '[]',
          claim: null,
          claimed_until: null,
          created_at: now,
        })
        .onConflict((conflict) => conflict.column('host').doNothing())
        .executeTakeFirst()
      return Number(added.numInsertedOrUpdatedRows ?? 0) === 1
    },

    /** Asks for an order now; false: somebody else did, or one is under way. */
    async request(host: string, now: number): Promise<boolean> {
      const changed = await db
        .updateTable('certificates')
        .set({ requested: 1, due_at: now, attempts: 0 })
        .where('host', '=', host)
        .where('requested', '=', 0)
        .where((of) =>
          of.or([of('claimed_until', 'is', null), of('claimed_until', '<=', leaseTimes.expression(now, 0))]),
        )
        .executeTakeFirst()
      return Number(changed.numUpdatedRows) === 1
    },

    due(now: number, limit: number): Promise<CertificateRow[]> {
      return db
        .selectFrom('certificates')
        .selectAll()
        .where('due_at', '<=', now)
        .where((of) =>
          of.or([of('claimed_until', 'is', null), of('claimed_until', '<=', leaseTimes.expression(now, 0))]),
        )
        .orderBy('due_at')
        .orderBy('host')
        .limit(limit)
        .execute()
    },

    /** Takes the order of `row` for itself for `claimMs`; false: another node was quicker. */
    async claim(
      row: CertificateRow,
      taken: { claim: string; now: number; claimMs: number; orders: readonly number[] },
    ): Promise<boolean> {
      const query = db
        .updateTable('certificates')
        .set({
          claim: taken.claim,
          claimed_until: leaseTimes.expression(taken.now, taken.claimMs),
          orders_json: JSON.stringify(taken.orders),
        })
        .where('host', '=', row.host)
        .where('due_at', '=', row.due_at)
      const same =
        row.claim === null ? query.where('claim', 'is', null) : query.where('claim', '=', row.claim)
      return Number((await same.executeTakeFirst()).numUpdatedRows) === 1
    },

    async postpone(row: CertificateRow, dueAt: number): Promise<void> {
      await db
        .updateTable('certificates')
        .set({ due_at: dueAt })
        .where('host', '=', row.host)
        .where('due_at', '=', row.due_at)
        .execute()
    },

    /** Ends a claim with what came of it; false: the claim was lost, or the row is gone. */
    async settle(host: string, claim: string, result: OrderResult): Promise<boolean> {
      const changed = await db
        .updateTable('certificates')
        .set({ ...result, claim: null, claimed_until: null })
        .where('host', '=', host)
        .where('claim', '=', claim)
        .executeTakeFirst()
      return Number(changed.numUpdatedRows) === 1
    },

    async remove(host: string, claim: string): Promise<void> {
      await db.deleteFrom('certificates').where('host', '=', host).where('claim', '=', claim).execute()
    },

    /** Resolves the hosts that had one. */
    async removeDomain(domainId: string): Promise<string[]> {
      const rows = await db
        .selectFrom('certificates')
        .select('host')
        .where('domain_id', '=', domainId)
        .execute()
      const hosts = rows.map(({ host }) => host)
      await db.deleteFrom('certificates').where('domain_id', '=', domainId).execute()
      for (const host of hosts) await db.deleteFrom('acme_challenges').where('host', '=', host).execute()
      return hosts
    },

    async publish(challenge: { token: string; host: string; answer: string; endsAt: number }): Promise<void> {
      const { token, host, answer, endsAt } = challenge
      // An authority gives a pending challenge again: then the answer is the same.
      await db
        .insertInto('acme_challenges')
        .values({ token, host, answer, ends_at: endsAt })
        .onConflict((conflict) => conflict.column('token').doUpdateSet({ host, answer, ends_at: endsAt }))
        .execute()
    },

    async answerTo(token: string, now: number): Promise<string | null> {
      const row = await db
        .selectFrom('acme_challenges')
        .select('answer')
        .where('token', '=', token)
        .where('ends_at', '>', now)
        .executeTakeFirst()
      return row?.answer ?? null
    },

    /** Removes the answers for one host, and those of orders that never came to their end. */
    async withdraw(host: string, now: number): Promise<void> {
      await db
        .deleteFrom('acme_challenges')
        .where((of) => of.or([of('host', '=', host), of('ends_at', '<=', now)]))
        .execute()
    },

    /** Hosts whose last order failed or whose certificate ends before `before`; at most `limit`, the next end first. */
    faults(before: number, limit: number) {
      return db
        .selectFrom('certificates')
        .select(['host', 'error', 'chain', 'expires_at', 'requested'])
        .where((of) => of.or([of('error', 'is not', null), of('expires_at', '<=', before)]))
        .orderBy('expires_at')
        .orderBy('host')
        .limit(limit)
        .execute()
    },
  }
}
