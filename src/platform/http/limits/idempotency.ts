/**
 * Repeating a POST safely (own-operations.md section 4): the first call under an `Idempotency-Key` acts, every
 * repetition gets its answer. Keys are those of an API key or user; of an account where the operation sends mail.
 *
 * 1. Calls with one key in this process wait for the first and get its answer.
 * 2. A stored answer is repeated; one that belongs to another request is a 409.
 * 3. Otherwise the operation runs. One that `joins` writes the record in the transaction of what it creates, so
 *    neither exists without the other, and of two processes only one can commit. For all other operations a
 *    record without an answer is written first; calls that find it get 409 with Retry-After.
 * 4. An answer of 4xx is kept too; 429 and 5xx are not: the next call tries again.
 */

import { createHash } from 'node:crypto'
import { PassingMap } from '../../../base/flow/cache.ts'
import { BadRequest, Conflict } from '../../../base/process/errors.ts'
import type { Clock } from '../../../base/time/clock.ts'
import { DAY_MS } from '../../../base/time/durations.ts'
import type { IdempotencyKeyRow } from '../../store/schema.ts'
import type { Sealer } from '../../store/secrets/sealing.ts'
import { StaleWrite, type Statement, type Store } from '../../store/store.ts'
import { answerTo } from '../answer/errors.ts'
import { jsonReply, Reply } from '../answer/reply.ts'

/** What a call under a key can add to its own transaction. */
export interface IdempotencyRecord {
  /**
   * Statements that keep this answer with status 200; to be committed with what the call creates. `keepUntil`: Unix
   * milliseconds, when what was created ends; the answer is kept a day longer.
   */
  statements(body: object, keepUntil: number): readonly Statement[]
}

export type Idempotency = ReturnType<typeof createIdempotency>

type Act = (record: IdempotencyRecord) => Promise<object>

/** A call that takes longer than this was lost with its process. */
const RUNNING_MS = 120_000
/** How long a call waits for the first one, which usually takes milliseconds. */
const WAIT_MS = 10_000
const KEY_PATTERN = /^[\x20-\x7e]{1,256}$/

/** @throws BadRequest for a key that is no 1 to 256 printable ASCII characters */
export function idempotencyKey(header: string | readonly string[]): string {
  const key = String(header)
  if (KEY_PATTERN.test(key)) return key
  throw new BadRequest('Idempotency-Key must be 1 to 256 printable ASCII characters')
}

export const requestDigest = (method: string, path: string, paramsDigest: string): string =>
  createHash('sha256')
    .update(JSON.stringify([method, path, paramsDigest]))
    .digest('hex')

export function createIdempotency(parts: IdempotencyParts) {
  const { store, clock } = parts
  const records = createIdempotencyRecords(parts)
  const running = new PassingMap<string, Promise<unknown>>()

  /** @param joined the operation committed the record itself */
  async function keep(call: IdempotentCall, status: number, body: object, joined: boolean): Promise<void> {
    if (joined) return
    if (call.joins) await store.commit(records.insertion(call, status, body, KEPT_MS))
    else await records.complete(call, status, body)
  }

  async function abandon(call: IdempotentCall): Promise<void> {
    if (!call.joins) await records.remove(call)
  }

  async function runFirst(call: IdempotentCall, act: Act): Promise<object> {
    if (!call.joins) await store.commit(records.insertion(call, null, null, RUNNING_MS))
    let joined = false
    const record: IdempotencyRecord = {
      statements(body, keepUntil) {
        joined = true
        return records.insertion(call, 200, body, Math.max(keepUntil - clock.now(), 0) + KEPT_MS)
      },
    }
    let result: object
    try {
      result = await act(record)
    } catch (error) {
      if (error instanceof StaleWrite) throw error
      const { status, body } = answerTo(error, clock.now())
      const isKept = status < 500 && status !== 429
      await (isKept ? keep(call, status, body, false) : abandon(call)).catch(ignoreStale)
      throw error
    }
    const content = result instanceof Reply ? result.content : ({ kind: 'json', body: result } as const)
    const status = result instanceof Reply ? result.status : 200
    if (content.kind === 'json') await keep(call, status, content.body as object, joined).catch(ignoreStale)
    else await abandon(call)
    return result
  }

  async function replayOrRun(call: IdempotentCall, act: Act): Promise<object> {
    const known = await records.replay(call)
    if (known) return known
    try {
      return await runFirst(call, act)
    } catch (error) {
      // Another process committed under this key first: nothing of ours was written.
      const answer = error instanceof StaleWrite ? await records.replay(call) : null
      if (!answer) throw error
      return answer
    }
  }

  return {
    async run(call: IdempotentCall, act: Act): Promise<object> {
      const name = JSON.stringify([call.accountId, ownKey(call)])
      const until = clock.monotonic() + WAIT_MS
      for (let other = running.get(name); other; other = running.get(name)) {
        if (!(await settlesBefore(other, until, clock))) throw stillRunning()
      }
      const run = replayOrRun(call, act)
      running.set(name, run)
      try {
        return await run
      } finally {
        if (running.get(name) === run) running.delete(name)
      }
    },
    /** Removes expired records. */
    sweep: records.sweep,
  }
}

/** Whether the promise is settled by then; `until` by the monotonic clock. */
async function settlesBefore(promise: Promise<unknown>, until: number, clock: Clock): Promise<boolean> {
  const { promise: late, resolve } = Promise.withResolvers<boolean>()
  const timer = clock.setTimer(until - clock.monotonic(), () => resolve(false))
  const settled = promise.then(
    () => true,
    () => true,
  )
  return Promise.race([settled, late]).finally(() => timer.cancel())
}

function ignoreStale(error: unknown): void {
  if (!(error instanceof StaleWrite)) throw error
}

export interface IdempotentCall {
  accountId: string
  /** The API key, or the user of a session, that the call's key belongs to; null: the account. */
  owner: string | null
  key: string
  /** Digest of method, path and everything the request carries; kept in memory only. */
  digest: string
  /** The operation commits the record itself. */
  joins: boolean
}

interface IdempotencyParts {
  store: Store
  clock: Clock
  sealer: Pick<Sealer, 'seal' | 'open' | 'mac'>
}

/** How long an answer is kept. */
const KEPT_MS = DAY_MS
/** The key as stored; keys of callers have no line break. */
const ownKey = ({ owner, key }: IdempotentCall): string => (owner === null ? key : `${owner}\n${key}`)

const PURPOSE = 'idempotency'
const OTHER_REQUEST = 'Idempotency-Key was used with another request'
const STILL_RUNNING = 'The first request with this Idempotency-Key is still running'

const stillRunning = () => new Conflict(STILL_RUNNING, { retrySeconds: 1 })

/**
 * The rows of repeated POSTs. Answers hold new keys, passwords and login links, so they are sealed at rest, each bound to its owner and key.
 * Requests hold passwords: only a MAC of them is stored, which reveals nothing without the sealing secret.
 */
function createIdempotencyRecords({ store, clock, sealer }: IdempotencyParts) {
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
    /** The stored answer of the same request; null if there is none. @throws Conflict */
    async replay(call: IdempotentCall): Promise<Reply | null> {
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
    /** Statements that keep an answer, or with nulls a call without one yet. They fail where the key has a record. */
    insertion(
      call: IdempotentCall,
      status: number | null,
      body: object | null,
      keepMs: number,
    ): readonly Statement[] {
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
    /** Adds the answer to the record of a running call, for as long as answers are kept. */
    async complete(call: IdempotentCall, status: number, body: object): Promise<void> {
      const until = times.value(clock.now(), KEPT_MS)
      const sql = `UPDATE idempotency_keys SET status = ?, body_sealed = ?, expires_at = ${times.sql}
        WHERE account_id = ? AND key = ? AND digest = ? AND status IS NULL`
      await store.commit([{ sql, values: [status, sealed(call, body), until, ...identityOf(call)] }])
    },
    /** Removes the record of a running call. */
    async remove(call: IdempotentCall): Promise<void> {
      const sql =
        'DELETE FROM idempotency_keys WHERE account_id = ? AND key = ? AND digest = ? AND status IS NULL'
      await store.commit([{ sql, values: identityOf(call) }])
    },
    /** Removes expired records. */
    async sweep(): Promise<void> {
      await store.db
        .deleteFrom('idempotency_keys')
        .where('expires_at', '<=', times.expression(clock.now(), 0))
        .execute()
    },
  }
}
