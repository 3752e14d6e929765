/**
 * Failed sign-ins in the audit log, of every kind: wrong keys and sessions, wrong SMTP logins, used links.
 *
 * An attacker must neither fill the disk with rows nor hide among too many. So failures are counted for a minute by
 * address, way and login, and then written: one row each for the most frequent groups, and one row for the sum of
 * the rest. A day adds at most ROWS_PER_DAY_MAX rows of the first kind and 1,440 of the second, about 1 MB.
 */

import { networkOf } from '../../base/net/ip.ts'
import type { Timer } from '../../base/time/clock.ts'
import { formatRfc3339 } from '../../base/time/dates.ts'
import { DAY_MS, MINUTE_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import type { Statement } from '../../platform/store/store.ts'
import { auditStatement } from '../accounts/audit-log.ts'

type SignInWay = 'api' | 'session' | 'link' | 'smtp' | 'password' | 'passkey' | 'oidc'

interface FailedSignIn {
  remoteAddress: string
  way: SignInWay
  /** The login that was tried, if one of that name exists; never text from a stranger. */
  known?: { accountId: string; login: string } | null
}

export type FailedSignIns = ReturnType<typeof createFailedSignIns>

const COUNT_FOR_MS = MINUTE_MS
/** Groups counted separately within a minute, about 300 kB; further failures are only summed. */
const GROUPS_MAX = 1_000
/** Groups that get their own row, per minute. */
const ROWS_PER_MINUTE_MAX = 20
/** Groups that get their own row, per day, so that a long attack from many addresses stays small. */
const ROWS_PER_DAY_MAX = 2_000

interface Group {
  accountId: string
  remoteAddress: string
  way: SignInWay
  login: string
  count: number
  firstAt: number
  lastAt: number
}

interface FailedSignInParts extends Pick<Core, 'store' | 'clock' | 'log'> {
  /** Failures of no known account are recorded for the operator's. */
  firstAccountId: string
}

export function createFailedSignIns({ store, clock, log, firstAccountId }: FailedSignInParts) {
  let groups = new Map<string, Group>()
  let overflow = 0
  let timer: Timer | null = null
  let day = { beganAt: Number.NEGATIVE_INFINITY, rows: 0 }
  let writing: Promise<void> = Promise.resolve()
  let closed = false

  /** Counts one failure, which is written within a minute. Costs only a map lookup. */
  function note({ remoteAddress, way, known }: FailedSignIn): void {
    if (closed) return
    timer ??= clock.setTimer(COUNT_FOR_MS, () => void flush())
    const network = networkOf(remoteAddress)
    const [accountId, login] = known ? [known.accountId, known.login] : [firstAccountId, '']
    const name = JSON.stringify([accountId, network, way, login])
    const now = clock.now()
    const group = groups.get(name)
    if (group !== undefined) {
      group.count += 1
      group.lastAt = now
    } else if (groups.size >= GROUPS_MAX) {
      overflow += 1
    } else {
      groups.set(name, {
        accountId,
        remoteAddress: network,
        way,
        login,
        count: 1,
        firstAt: now,
        lastAt: now,
      })
    }
  }

  /** How many own rows the daily limit still allows. */
  function rowsLeft(): number {
    if (clock.monotonic() - day.beganAt >= DAY_MS) day = { beganAt: clock.monotonic(), rows: 0 }
    return Math.min(ROWS_PER_MINUTE_MAX, ROWS_PER_DAY_MAX - day.rows)
  }

  function takeStatements(): Statement[] {
    const counted = [...groups.values()].sort((a, b) => b.count - a.count)
    const uncounted = overflow
    groups = new Map()
    overflow = 0
    const own = counted.slice(0, rowsLeft())
    const rest = counted.slice(own.length)
    day.rows += own.length
    const now = clock.now()
    const statements = own.map((group) => rowOf(group, now))
    const count = rest.reduce((sum, group) => sum + group.count, uncounted)
    if (count > 0) statements.push(sumOf(firstAccountId, count, rest.length, now))
    return statements
  }

  /** Writes the counts. Never rejects. */
  function flush(): Promise<void> {
    timer?.cancel()
    timer = null
    const statements = takeStatements()
    if (statements.length === 0) return writing
    // Serialised, so that while the database is away one unit waits rather than one for each minute.
    writing = writing
      .then(() => store.commit(statements))
      .then(
        () => {},
        (error: unknown) => log.error({ err: error }, 'cannot write failed sign-ins to the audit log'),
      )
    return writing
  }

  return {
    note,
    flush,
    async close(): Promise<void> {
      closed = true
      await flush()
    },
  }
}

const ACTION = 'sign-in.failed'
const UNAUTHORIZED = 401

function rowOf({ accountId, remoteAddress, way, login, count, firstAt, lastAt }: Group, now: number) {
  const [first, last] = [firstAt, lastAt].map((at) => formatRfc3339(new Date(at)))
  const detail = { way, count, first_at: first, last_at: last }
  return statementOf(accountId, remoteAddress, login, detail, now)
}

/** `addresses`: at least this many; those over GROUPS_MAX are not counted separately. */
const sumOf = (accountId: string, count: number, addresses: number, now: number) =>
  statementOf(accountId, '', '', { way: 'others', count, addresses }, now)

const statementOf = (
  accountId: string,
  remoteAddress: string,
  subject: string,
  detail: unknown,
  now: number,
): Statement =>
  auditStatement(
    { caller: { accountId, keyId: '' }, remoteAddress, requestId: '' },
    { action: ACTION, subject, detail, status: UNAUTHORIZED },
    now,
  )
