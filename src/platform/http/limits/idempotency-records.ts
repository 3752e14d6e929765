/**
 * The rows of repeated POSTs (idempotency.ts).
 *
 * Answers hold new keys, passwords and login links, so they are sealed at rest, each bound to its owner and key.
 * Requests hold passwords: only a MAC of them is stored, which reveals nothing without the sealing secret.
 */

import { Conflict } from '../../../base/process/errors.ts'
import type { Clock } from '../../../base/time/clock.ts'
import type { IdempotencyKeyRow } from '../../store/schema.ts'
import type { Sealer } from '../../store/secrets/sealing.ts'
import type { Statement, Store } from '../../store/store.ts'
import { jsonReply, type Reply } from '../answer/reply.ts'

export interface IdempotentCall {
  accountId: string
  /** The API key, or the user of a session, that the call's key belongs to; null: the account. */
  owner: string | null
  key: string
  /** Of method, path and everything the request carries; kept in memory only. */
  digest: string
  /** The operation commits the record itself. */
  joins: boolean
}

export interface IdempotencyParts {
  store: Store
  clock: Clock
  sealer: Pick<Sealer, 'seal' | 'open' | 'mac'>
}

export interface IdempotencyRecords {
  /** The stored answer of the same request; null if there is none. @throws Conflict */
  replay(call: IdempotentCall): Promise<Reply | null>
  /** Statements that keep an answer, or with nulls a call without one yet. They fail where the key has a record. */
  insertion(
    call: IdempotentCall,
    status: number | null,
    body: object | null,
    keepMs: number,
  ): readonly Statement[]
  /** Adds the answer to the record of a running call, for as long as answers are kept. */
  complete(call: IdempotentCall, status: number, body: object): Promise<void>
  /** Removes the record of a running call. */
  remove(call: IdempotentCall): Promise<void>
  /** Removes expired records. */
  sweep(): Promise<void>
}

/** How long an answer is kept. */
export const KEPT_MS = 86_400_000
/** The key as stored; keys of callers have no line break. */
export const ownKey = ({ owner, key }: IdempotentCall): string => (owner === null ? key : `${owner}\n${key}`)

const PURPOSE = 'idempotency'
const OTHER_REQUEST = 'Idempotency-Key was used with another request'
const STILL_RUNNING = 'The first request with this Idempotency-Key is still running'

export const stillRunning = () => new Conflict(STILL_RUNNING, { retrySeconds: 1 })

export function createIdempotencyRecords({ store, clock, sealer }: IdempotencyParts): IdempotencyRecords {
  const times = store.leaseTimes

  const ownerOf = (call: IdempotentCall) => JSON.stringify([call.accountId, ownKey(call)])
  const sealed = (call: IdempotentCall, body: object) =>
    sealer.seal(PURPOSE, JSON.stringify(body), ownerOf(call))
  const opened = (call: IdempotentCall, bytes: Uint8Array) =>
    JSON.parse(sealer.open(PURPOSE, bytes, ownerOf(call)).toString()) as object
  /** A plain digest would let a reader of the row try passwords against it. */
  const storedDigest = (call: IdempotentCall) =>
    sealer.mac(PURPOSE, `${ownerOf(call)}\n${call.digest}`).toString('base64url')
  const identityOf = (call: IdempotentCall) => [call.accountId, ownKey(call), storedDigest(call)]

  function stored(call: IdempotentCall): Promise<IdempotencyKeyRow | undefined> {
    return store.db
      .selectFrom('idempotency_keys')
      .selectAll()
      .where('account_id', '=', call.accountId)
      .where('key', '=', ownKey(call))
      .where('expires_at', '>', times.expression(clock.now(), 0))
      .executeTakeFirst()
  }

  return {
    async replay(call) {
      const row = await stored(call)
      if (!row) return null
      if (row.digest !== storedDigest(call)) throw new Conflict(OTHER_REQUEST)
      if (row.status === null) throw stillRunning()
      const headers = { 'idempotency-replayed': 'true' }
      return jsonReply(row.body_sealed === null ? {} : opened(call, row.body_sealed), {
        status: row.status,
        headers,
      })
    },
    insertion(call, status, body, keepMs) {
      const now = clock.now()
      const expired: Statement = {
        sql: `DELETE FROM idempotency_keys WHERE account_id = ? AND key = ? AND expires_at <= ${times.sql}`,
        values: [call.accountId, ownKey(call), times.value(now, 0)],
      }
      const row: Statement = {
        sql: `INSERT INTO idempotency_keys (account_id, key, digest, status, body_sealed, expires_at)
          VALUES (?, ?, ?, ?, ?, ${times.sql}) ON CONFLICT DO NOTHING`,
        values: [...identityOf(call), status, body && sealed(call, body), times.value(now, keepMs)],
        expectRows: 1,
      }
      return [expired, row]
    },
    async complete(call, status, body) {
      const until = times.value(clock.now(), KEPT_MS)
      const sql = `UPDATE idempotency_keys SET status = ?, body_sealed = ?, expires_at = ${times.sql}
        WHERE account_id = ? AND key = ? AND digest = ? AND status IS NULL`
      await store.commit([{ sql, values: [status, sealed(call, body), until, ...identityOf(call)] }])
    },
    async remove(call) {
      const sql =
        'DELETE FROM idempotency_keys WHERE account_id = ? AND key = ? AND digest = ? AND status IS NULL'
      await store.commit([{ sql, values: identityOf(call) }])
    },
    async sweep() {
      await store.db
        .deleteFrom('idempotency_keys')
        .where('expires_at', '<=', times.expression(clock.now(), 0))
        .execute()
    },
  }
}
