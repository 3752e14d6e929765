/**
 * Repeating a POST safely (own-operations.md section 4): the first call under an `Idempotency-Key` acts, every
 * repetition gets its answer.
 *
 * 1. Calls with one key in this process wait for the first and get its answer.
 * 2. A stored answer is repeated; one that belongs to another request is a 409.
 * 3. Otherwise the operation runs. One that `joins` writes the record in the transaction of what it creates, so
 *    neither exists without the other, and of two processes only one can commit. For all other operations a
 *    record without an answer is written first; whoever finds it gets 409 with Retry-After.
 * 4. An answer of 4xx is kept too; 429 and 5xx are not: the next call tries anew.
 *
 * Answers hold new keys, passwords and login links, so they are sealed at rest, each bound to its account and key.
 * Requests hold passwords: what is stored of them is a MAC, which says nothing without the sealing secret.
 */
import { createHash } from 'node:crypto'
import type { Clock } from '../base/clock.ts'
import { BadRequest, Conflict } from '../base/errors.ts'
import { PassingMap } from '../base/passing.ts'
import type { IdempotencyKeyRow } from '../store/schema.ts'
import type { Sealer } from '../store/sealing.ts'
import { StaleWrite, type Statement, type Store } from '../store/store.ts'
import { answerTo } from './errors.ts'
import { jsonReply, Reply } from './reply.ts'

/** What a call under a key can add to its own transaction. */
export interface IdempotencyRecord {
  /**
   * Statements that keep this answer with status 200; to be committed with what the call creates. `keepUntil`: Unix
   * milliseconds, when what was created is done with; the answer is kept a day longer.
   */
  statements(body: object, keepUntil: number): readonly Statement[]
}

export interface IdempotentCall {
  accountId: string
  key: string
  /** Of method, path and everything the request carries; kept in memory only. */
  digest: string
  /** The operation commits the record itself. */
  joins: boolean
}

export interface Idempotency {
  run(call: IdempotentCall, act: (record: IdempotencyRecord) => Promise<object>): Promise<object>
  /** Removes what is kept no longer. */
  sweep(): Promise<void>
}

const PURPOSE = 'idempotency'
const DAY_MS = 86_400_000
/** A call that takes longer than this was lost with its process. */
const RUNNING_MS = 120_000
/** So long a call waits for the first one, which mostly takes milliseconds. */
const WAIT_MS = 10_000
const KEY_PATTERN = /^[\x20-\x7e]{1,256}$/
const OTHER_REQUEST = 'Idempotency-Key was used with another request'
const STILL_RUNNING = 'The first request with this Idempotency-Key is still running'

/** The key of a request, or undefined. @throws BadRequest for one that is no 1 to 256 printable ASCII characters */
export function idempotencyKey(header: string | readonly string[] | undefined): string | undefined {
  if (header === undefined) return undefined
  const key = String(header)
  if (KEY_PATTERN.test(key)) return key
  throw new BadRequest('Idempotency-Key must be 1 to 256 printable ASCII characters')
}

export const requestDigest = (method: string, path: string, paramsDigest: string): string =>
  createHash('sha256')
    .update(JSON.stringify([method, path, paramsDigest]))
    .digest('hex')

export interface IdempotencyParts {
  store: Store
  clock: Clock
  sealer: Pick<Sealer, 'seal' | 'open' | 'mac'>
}

export function createIdempotency({ store, clock, sealer }: IdempotencyParts): Idempotency {
  const running = new PassingMap<string, Promise<unknown>>()
  const times = store.leaseTimes

  const ownerOf = ({ accountId, key }: IdempotentCall) => JSON.stringify([accountId, key])
  const sealed = (call: IdempotentCall, body: object) =>
    sealer.seal(PURPOSE, JSON.stringify(body), ownerOf(call))
  const opened = (call: IdempotentCall, bytes: Uint8Array) =>
    JSON.parse(sealer.open(PURPOSE, bytes, ownerOf(call)).toString()) as object
  /** A plain digest would let whoever reads the row try passwords against it. */
  const storedDigest = (call: IdempotentCall) =>
    sealer.mac(PURPOSE, `${ownerOf(call)}\n${call.digest}`).toString('base64url')

  async function stored(call: IdempotentCall): Promise<IdempotencyKeyRow | undefined> {
    return store.db
      .selectFrom('idempotency_keys')
      .selectAll()
      .where('account_id', '=', call.accountId)
      .where('key', '=', call.key)
      .where('expires_at', '>', times.expression(clock.now(), 0))
      .executeTakeFirst()
  }

  /** The stored answer of the same request; null if there is none. @throws Conflict */
  async function replay(call: IdempotentCall): Promise<Reply | null> {
    const row = await stored(call)
    if (!row) return null
    if (row.digest !== storedDigest(call)) throw new Conflict(OTHER_REQUEST)
    if (row.status === null) throw new Conflict(STILL_RUNNING, { retrySeconds: 1 })
    const headers = { 'idempotency-replayed': 'true' }
    return jsonReply(row.body_sealed === null ? {} : opened(call, row.body_sealed), {
      status: row.status,
      headers,
    })
  }

  const insertion = (call: IdempotentCall, status: number | null, body: object | null, keepMs: number) => {
    const { accountId, key } = call
    const now = clock.now()
    const expired: Statement = {
      sql: `DELETE FROM idempotency_keys WHERE account_id = ? AND key = ? AND expires_at <= ${times.sql}`,
      values: [accountId, key, times.value(now, 0)],
    }
    const row: Statement = {
      sql: `INSERT INTO idempotency_keys (account_id, key, digest, status, body_sealed, expires_at)
        VALUES (?, ?, ?, ?, ?, ${times.sql}) ON CONFLICT DO NOTHING`,
      values: [
        accountId,
        key,
        storedDigest(call),
        status,
        body && sealed(call, body),
        times.value(now, keepMs),
      ],
      expectRows: 1,
    }
    return [expired, row]
  }

  const ofKey = (call: IdempotentCall) => [call.accountId, call.key, storedDigest(call)]

  async function finish(call: IdempotentCall, status: number, body: object, joined: boolean): Promise<void> {
    if (joined) return
    if (call.joins) {
      await store.commit(insertion(call, status, body, DAY_MS))
      return
    }
    const until = times.value(clock.now(), DAY_MS)
    const sql = `UPDATE idempotency_keys SET status = ?, body_sealed = ?, expires_at = ${times.sql}
      WHERE account_id = ? AND key = ? AND digest = ? AND status IS NULL`
    await store.commit([{ sql, values: [status, sealed(call, body), until, ...ofKey(call)] }])
  }

  async function abandon(call: IdempotentCall): Promise<void> {
    if (call.joins) return
    const sql =
      'DELETE FROM idempotency_keys WHERE account_id = ? AND key = ? AND digest = ? AND status IS NULL'
    await store.commit([{ sql, values: ofKey(call) }])
  }

  async function first(
    call: IdempotentCall,
    act: (record: IdempotencyRecord) => Promise<object>,
  ): Promise<object> {
    if (!call.joins) await store.commit(insertion(call, null, null, RUNNING_MS))
    let joined = false
    const record: IdempotencyRecord = {
      statements(body, keepUntil) {
        joined = true
        return insertion(call, 200, body, Math.max(keepUntil - clock.now(), 0) + DAY_MS)
      },
    }
    let result: object
    try {
      result = await act(record)
    } catch (error) {
      if (error instanceof StaleWrite) throw error
      const { status, body } = answerTo(error, clock.now())
      const kept = status < 500 && status !== 429
      await (kept ? finish(call, status, body, false) : abandon(call)).catch(ignoreStale)
      throw error
    }
    const content = result instanceof Reply ? result.content : ({ kind: 'json', body: result } as const)
    const status = result instanceof Reply ? result.status : 200
    if (content.kind === 'json') await finish(call, status, content.body as object, joined).catch(ignoreStale)
    else await abandon(call)
    return result
  }

  async function runFirst(
    call: IdempotentCall,
    act: (record: IdempotencyRecord) => Promise<object>,
  ): Promise<object> {
    const known = await replay(call)
    if (known) return known
    try {
      return await first(call, act)
    } catch (error) {
      // Another process committed under this key first: nothing of ours was written.
      const answer = error instanceof StaleWrite ? await replay(call) : null
      if (!answer) throw error
      return answer
    }
  }

  /** True when the promise is settled by then. */
  async function endsBefore(other: Promise<unknown>, until: number): Promise<boolean> {
    const { promise: late, resolve } = Promise.withResolvers<boolean>()
    const timer = clock.setTimer(until - clock.monotonic(), () => resolve(false))
    const ended = other.then(
      () => true,
      () => true,
    )
    return Promise.race([ended, late]).finally(() => timer.cancel())
  }

  return {
    async run(call, act) {
      const name = JSON.stringify([call.accountId, call.key])
      const until = clock.monotonic() + WAIT_MS
      for (let other = running.get(name); other; other = running.get(name)) {
        if (!(await endsBefore(other, until))) throw new Conflict(STILL_RUNNING, { retrySeconds: 1 })
      }
      const run = runFirst(call, act)
      running.set(name, run)
      try {
        return await run
      } finally {
        if (running.get(name) === run) running.delete(name)
      }
    },
    async sweep() {
      await store.db
        .deleteFrom('idempotency_keys')
        .where('expires_at', '<=', times.expression(clock.now(), 0))
        .execute()
    },
  }
}

function ignoreStale(error: unknown): void {
  if (!(error instanceof StaleWrite)) throw error
}
