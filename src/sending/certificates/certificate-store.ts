/** Certificates of tracking hosts and of the service itself, and the challenges of their orders, in the database. */
import type { CertificateRow } from '../../platform/store/schema.ts'
import type { Sealer } from '../../platform/store/secrets/sealing.ts'
import type { Store } from '../../platform/store/store.ts'

const SEALED_AS = 'certificate-key'

/** Account and domain of the rows of the service's own names. */
const SERVICE = ''

export const isOwnRow = (row: Pick<CertificateRow, 'domain_id'>): boolean => row.domain_id === SERVICE

export interface CertificatePair {
  /** PEM, the host's certificate first. */
  chain: string
  /** PKCS #8, PEM. */
  key: string
}

/** The columns that the result of an order sets, besides ending the claim. */
export type OrderResult = Partial<
  Pick<
    CertificateRow,
    'chain' | 'key_sealed' | 'expires_at' | 'issued_at' | 'error' | 'due_at' | 'attempts' | 'requested'
  >
>

export type CertificateStore = ReturnType<typeof createCertificateStore>

export const createCertificateStore = (store: Store, sealer: Sealer) => ({
  ...certificateRows(store, sealer),
  ...orderRows(store),
  ...challengeRows(store),
})

/** Reading certificates, and removing those of a domain. */
function certificateRows({ db }: Store, sealer: Sealer) {
  return {
    async find(host: string): Promise<CertificateRow | null> {
      const query = db.selectFrom('certificates').selectAll().where('host', '=', host)
      return (await query.executeTakeFirst()) ?? null
    },

    sealKey: (key: string): Uint8Array => sealer.seal(SEALED_AS, key),

    /** The pair in use, or null. @throws when the key was sealed under another secret */
    async pair(host: string): Promise<CertificatePair | null> {
      const row = await db
        .selectFrom('certificates')
        .select(['chain', 'key_sealed'])
        .where('host', '=', host)
        .executeTakeFirst()
      if (!row?.chain || !row.key_sealed) return null
      return { chain: row.chain, key: sealer.open(SEALED_AS, row.key_sealed).toString('utf8') }
    },

    /** Tracking hosts whose last order failed or whose certificate expires by `before`; at most `limit`, ordered by expiry. */
    faults(before: number, limit: number) {
      return db
        .selectFrom('certificates')
        .select(['host', 'error', 'chain', 'expires_at', 'requested'])
        .where('domain_id', '<>', SERVICE)
        .where((eb) => eb.or([eb('error', 'is not', null), eb('expires_at', '<=', before)]))
        .orderBy('expires_at')
        .orderBy('host')
        .limit(limit)
        .execute()
    },

    /** Certificates that end in the range (Unix milliseconds), the next to end first. */
    ending(from: number, to: number, limit: number) {
      return db
        .selectFrom('certificates')
        .select(['host', 'domain_id', 'error', 'expires_at'])
        .where('expires_at', '>', from)
        .where('expires_at', '<=', to)
        .orderBy('expires_at')
        .orderBy('host')
        .limit(limit)
        .execute()
    },

    /** Removes all of a domain; resolves to their hosts. */
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
  }
}

const newRow = (host: string, now: number) => ({
  host,
  chain: null,
  key_sealed: null,
  expires_at: null,
  issued_at: null,
  requested: 0 as const,
  error: null,
  due_at: now,
  attempts: 0,
  orders_json: '[]',
  claim: null,
  claimed_until: null,
  created_at: now,
})

/** Orders: requested, claimed by one node, settled. */
function orderRows({ db, leaseTimes }: Store) {
  return {
    /** Inserts a host for its first order; false: it has a row already. */
    async add(row: { host: string; accountId: string; domainId: string; now: number }): Promise<boolean> {
      const { host, accountId, domainId, now } = row
      const added = await db
        .insertInto('certificates')
        .values({ ...newRow(host, now), account_id: accountId, domain_id: domainId, requested: 1 })
        .onConflict((conflict) => conflict.column('host').doNothing())
        .executeTakeFirst()
      return Number(added.numInsertedOrUpdatedRows ?? 0) === 1
    },

    /**
     * Inserts a name of the service, due now; a tracking host that became one is taken over with its certificate. Where
     * there is no valid certificate the next attempt is due now, whatever failed before.
     */
    async addOwn(host: string, now: number): Promise<void> {
      const owner = { account_id: SERVICE, domain_id: SERVICE }
      await db
        .insertInto('certificates')
        .values({ ...newRow(host, now), ...owner })
        .onConflict((conflict) => conflict.column('host').doUpdateSet(owner))
        .execute()
      await db
        .updateTable('certificates')
        .set({ due_at: now, attempts: 0 })
        .where('host', '=', host)
        .where((eb) =>
          eb.or([eb('chain', 'is', null), eb('due_at', 'is', null), eb('expires_at', '<=', now)]),
        )
        .execute()
    },

    /** Requests an order now; false: one was already requested or is in progress. */
    async request(host: string, now: number): Promise<boolean> {
      const changed = await db
        .updateTable('certificates')
        .set({ requested: 1, due_at: now, attempts: 0 })
        .where('host', '=', host)
        .where('requested', '=', 0)
        .where((eb) =>
          eb.or([eb('claimed_until', 'is', null), eb('claimed_until', '<=', leaseTimes.expression(now, 0))]),
        )
        .executeTakeFirst()
      return Number(changed.numUpdatedRows) === 1
    },

    /** `ownHosts`: names of the service that this process orders for; others belong to nodes with other settings. */
    due(now: number, limit: number, ownHosts: readonly string[]): Promise<CertificateRow[]> {
      return db
        .selectFrom('certificates')
        .selectAll()
        .where('due_at', '<=', now)
        .where((eb) =>
          ownHosts.length === 0
            ? eb('domain_id', '<>', SERVICE)
            : eb.or([eb('domain_id', '<>', SERVICE), eb('host', 'in', ownHosts)]),
        )
        .where((eb) =>
          eb.or([eb('claimed_until', 'is', null), eb('claimed_until', '<=', leaseTimes.expression(now, 0))]),
        )
        .orderBy('due_at')
        .orderBy('host')
        .limit(limit)
        .execute()
    },

    /** Claims the order of `row` for `claimMs`; false: another node was first. */
    async claim(
      row: CertificateRow,
      lease: { claim: string; now: number; claimMs: number; orders: readonly number[] },
    ): Promise<boolean> {
      const query = db
        .updateTable('certificates')
        .set({
          claim: lease.claim,
          claimed_until: leaseTimes.expression(lease.now, lease.claimMs),
          orders_json: JSON.stringify(lease.orders),
        })
        .where('host', '=', row.host)
        .where('due_at', '=', row.due_at)
      const unchanged =
        row.claim === null ? query.where('claim', 'is', null) : query.where('claim', '=', row.claim)
      return Number((await unchanged.executeTakeFirst()).numUpdatedRows) === 1
    },

    async postpone(row: CertificateRow, dueAt: number): Promise<void> {
      await db
        .updateTable('certificates')
        .set({ due_at: dueAt })
        .where('host', '=', row.host)
        .where('due_at', '=', row.due_at)
        .execute()
    },

    /** Ends a claim with its result; false: the claim was lost, or the row is gone. */
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
  }
}

/** Answers to the challenges of an authority. */
function challengeRows({ db }: Store) {
  return {
    async publish(challenge: { token: string; host: string; answer: string; endsAt: number }): Promise<void> {
      const { token, host, answer, endsAt } = challenge
      // An authority may repeat a pending challenge; its answer is then the same.
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

    /** Removes the answers for one host, and those of orders that never finished. */
    async withdraw(host: string, now: number): Promise<void> {
      await db
        .deleteFrom('acme_challenges')
        .where((eb) => eb.or([eb('host', '=', host), eb('ends_at', '<=', now)]))
        .execute()
    },
  }
}
