/** The table of access tokens: one row for each login, sealed, and who asks the token server for it now. */
import type { Clock } from '../../../base/time/clock.ts'
import { HOUR_MS, SECOND_MS } from '../../../base/time/durations.ts'
import type { NoAccessToken, Tokens } from '../../../platform/posts/oauth/token-request.ts'
import type { RelayTokenRow } from '../../../platform/store/schema.ts'
import type { Sealer } from '../../../platform/store/secrets/sealing.ts'
import type { Statement, Store } from '../../../platform/store/store.ts'

/** Whose tokens they are. */
export interface LoginKey {
  /** Name of the relay. */
  relay: string
  /** Grows with each change of the relay. */
  revision: number
  /** Digest of what tokens are asked for with; see the migration. */
  id: string
}

/** Longer than a request and storing its result can take. */
const TAKEN_MS = 60 * SECOND_MS
/** Another process may not know of a change yet, and use the row of the login before it. */
const KEPT_MS = HOUR_MS
const ACCESS = 'relay-access-token'
const REFRESH = 'relay-refresh-token'

export function createTokenRows(store: Store, sealer: Sealer, clock: Clock, owner: string) {
  const { db, leaseTimes } = store
  const nowMs = () => Math.floor(clock.now())

  /** Not for a relay that was removed meanwhile. */
  const newRow = ({ id, relay }: LoginKey): Statement => ({
    sql: `INSERT INTO relay_tokens (login, relay, revision, generation, taken_until, updated_at)
      SELECT CAST(? AS TEXT), name, 0, 0, 0, CAST(? AS BIGINT) FROM relays WHERE name = ? ON CONFLICT DO NOTHING`,
    values: [id, nowMs(), relay],
  })

  const find = ({ id }: LoginKey) =>
    db.selectFrom('relay_tokens').selectAll().where('login', '=', id).executeTakeFirst()

  return {
    find,

    /**
     * The row of the login, which is made if there is none. Rows of earlier logins of the relay are removed. Undefined: the
     * relay was removed.
     */
    async read(key: LoginKey): Promise<RelayTokenRow | undefined> {
      const known = await find(key)
      if (known !== undefined) return known
      await store.commit([
        newRow(key),
        {
          sql: 'DELETE FROM relay_tokens WHERE relay = ? AND login <> ? AND updated_at < ?',
          values: [key.relay, key.id, nowMs() - KEPT_MS],
        },
      ])
      return find(key)
    },

    accessToken: ({ login, access_sealed: sealed }: RelayTokenRow): string | null =>
      sealed && sealer.open(ACCESS, sealed, login).toString(),

    refreshToken: ({ login, refresh_sealed: sealed }: RelayTokenRow): string | null =>
      sealed && sealer.open(REFRESH, sealed, login).toString(),

    /** From now on this process asks the token server; false: another one does, or has done since `row` was read. */
    async take({ login, generation }: RelayTokenRow): Promise<boolean> {
      const now = nowMs()
      const sql = `UPDATE relay_tokens SET taken_by = ?, taken_until = ${leaseTimes.sql}
        WHERE login = ? AND generation = ?`
      const values = [owner, leaseTimes.value(now, TAKEN_MS), login, generation]
      // One process has a SQLite database, so that what an earlier one took is free.
      const [result] = await store.commit([
        store.kind === 'sqlite'
          ? { sql, values }
          : {
              sql: `${sql} AND (taken_until <= ${leaseTimes.sql} OR taken_by = ?)`,
              values: [...values, leaseTimes.value(now, 0), owner],
            },
      ])
      return result?.affected === 1
    },

    /**
     * Stores the tokens that were asked for with those of `row`.
     * @throws StaleWrite if another process has stored others meanwhile
     */
    async keep(row: RelayTokenRow, { revision }: LoginKey, tokens: Tokens): Promise<void> {
      const { login, generation } = row
      const now = nowMs()
      const refresh = tokens.refreshToken && sealer.seal(REFRESH, tokens.refreshToken, login)
      await store.commit([
        {
          sql: `UPDATE relay_tokens SET access_sealed = ?, obtained_at = ?, expires_at = ?,
              refresh_sealed = COALESCE(?, refresh_sealed), revision = ?, generation = generation + 1, failure = NULL,
              failed_at = NULL, retry_at = NULL, taken_by = NULL, taken_until = 0, updated_at = ?
            WHERE login = ? AND generation = ?`,
          values: [
            ...[sealer.seal(ACCESS, tokens.accessToken, login), now, now + tokens.lifetimeMs],
            ...[refresh, revision, now, login, generation],
          ],
          expectRows: 1,
        },
      ])
    },

    /** Stores why there are no tokens. A token stays, unless it is of an earlier state of the relay. */
    async fail(row: RelayTokenRow, { revision }: LoginKey, failure: NoAccessToken): Promise<void> {
      const { login, generation } = row
      const now = nowMs()
      await store.commit([
        {
          sql: `UPDATE relay_tokens SET failure = ?, failed_at = ?, retry_at = ?, taken_by = NULL, taken_until = 0,
              expires_at = CASE WHEN revision < ? THEN NULL ELSE expires_at END, revision = ?, updated_at = ?
            WHERE login = ? AND generation = ?`,
          values: [
            ...[failure.message, now, now + failure.retryMs],
            ...[revision, revision, now, login, generation],
          ],
        },
      ])
    },
  }
}
