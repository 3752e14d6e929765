/** Links that show one figure to whoever has them, while their maker could make another (decisions 235, 251). */
import { sql } from 'kysely'
import { newId } from '../../../base/ids.ts'
import { BadRequest } from '../../../base/process/errors.ts'
import type { Clock } from '../../../base/time/clock.ts'
import { mayAccess } from '../../../platform/http/rights/auth.ts'
import { ROLES } from '../../../platform/http/rights/rights.ts'
import type { SharedFigureRow } from '../../../platform/store/schema.ts'
import { isSecret, newSecret } from '../../../platform/store/secrets/random-secret.ts'
import type { Sealer } from '../../../platform/store/secrets/sealing.ts'
import { insert, type Store } from '../../../platform/store/store.ts'

interface NewSharedFigure {
  accountId: string
  /** The id of the key, or of the session that no key has opened. */
  keyId: string
  userId: string | null
  title: string
  queryJson: string
  /** Unix milliseconds. */
  expiresAt: number
}

export type SharedFigures = ReturnType<typeof createSharedFigures>

/** Some for each person of an account; more are not looked after. */
const PER_ACCOUNT_MAX = 50
const PURPOSE = 'shared-figure'
/** Who may make links. */
const MAKERS = ROLES.filter((role) => mayAccess(role, 'events', 'write'))

/** Whether user and key that made the link are still there and could make another. Without either it is the operator's. */
const isOfMaker = (now: number) => sql<boolean>`
  (shared_figures.user_id IS NULL OR EXISTS (SELECT 1 FROM users u
    WHERE u.id = shared_figures.user_id AND u.is_disabled = 0 AND u.role IN (${sql.join(MAKERS)})))
  AND (shared_figures.key_id = 'local' OR shared_figures.key_id LIKE 'session-%' OR EXISTS (SELECT 1 FROM api_keys k
    WHERE k.id = shared_figures.key_id AND k.disabled_reason IS NULL AND (k.expires_at IS NULL OR k.expires_at > ${now})
      AND k.role IN (${sql.join(MAKERS)})))`

export function createSharedFigures({
  store,
  sealer,
  clock,
}: {
  store: Store
  sealer: Pick<Sealer, 'mac'>
  clock: Clock
}) {
  const nowMs = () => Math.floor(clock.now())
  const digestOf = (token: string) => sealer.mac(PURPOSE, token).toString('hex')

  /** The newest first. */
  const list = (accountId: string): Promise<SharedFigureRow[]> =>
    store.db
      .selectFrom('shared_figures')
      .selectAll()
      .where('account_id', '=', accountId)
      .where('expires_at', '>', nowMs())
      .where(isOfMaker(nowMs()))
      .orderBy('id', 'desc')
      .limit(PER_ACCOUNT_MAX)
      .execute()

  return {
    list,
    /**
     * Returns the row and the token of its link, which cannot be had again.
     * @throws BadRequest beyond PER_ACCOUNT_MAX of an account; calls at the same time may go over it by their number
     */
    async create(figure: NewSharedFigure): Promise<{ row: SharedFigureRow; token: string }> {
      const { accountId, keyId, userId, title, queryJson, expiresAt } = figure
      if ((await list(accountId)).length >= PER_ACCOUNT_MAX)
        throw new BadRequest(`there are ${PER_ACCOUNT_MAX} links to figures already: revoke one`)
      const token = newSecret(store)
      const row: SharedFigureRow = {
        ...{ id: newId(clock.now()), account_id: accountId, digest: digestOf(token), title },
        ...{ query_json: queryJson, key_id: keyId, user_id: userId },
        ...{ created_at: nowMs(), expires_at: Math.floor(expiresAt) },
      }
      await store.commit([insert('shared_figures', row)])
      return { row, token }
    },
    /** Null for a token that nobody has, or not any more. */
    async find(token: string): Promise<SharedFigureRow | null> {
      if (!isSecret(token)) return null
      const row = await store.db
        .selectFrom('shared_figures')
        .selectAll()
        .where('digest', '=', digestOf(token))
        .where('expires_at', '>', nowMs())
        .where(isOfMaker(nowMs()))
        .executeTakeFirst()
      return row ?? null
    },
    /** Whether there was one. */
    async revoke(accountId: string, id: string): Promise<boolean> {
      const sql = 'DELETE FROM shared_figures WHERE account_id = ? AND id = ?'
      const [result] = await store.commit([{ sql, values: [accountId, id] }])
      return result?.affected === 1
    },
    removeExpired: async () => {
      await store.commit([{ sql: 'DELETE FROM shared_figures WHERE expires_at <= ?', values: [nowMs()] }])
    },
    removeOf: async (accountId: string) => {
      await store.commit([{ sql: 'DELETE FROM shared_figures WHERE account_id = ?', values: [accountId] }])
    },
  }
}
