/**
 * Failed sign-ins in the audit log, by whichever way they came: wrong keys and sessions, wrong SMTP logins, used links.
 *
 * An attacker must neither fill the disk with rows nor hide behind their number. So failures are counted for a minute
 * by address, way and login, and written then: a row for each of those with the most, and one row that sums up the
 * rest. A day brings at most ROWS_PER_DAY_MAX rows of the first kind and 1,440 of the second, about 1 MB.
 */
import type { Logger } from 'pino'
import type { Clock, Timer } from '../base/clock.ts'
import { formatRfc3339 } from '../http/dates.ts'
import { networkOf } from '../http/failed-attempts.ts'
import type { Statement, Store } from '../store/store.ts'
import { auditStatement } from './audit.ts'

export type SignInWay = 'api' | 'session' | 'link' | 'smtp'

export interface FailedSignIn {
  remoteAddress: string
  way: SignInWay
  /** The login that was tried, if there is one of that name; never what a stranger typed. */
  known?: { accountId: string; login: string } | null
}

export interface FailedSignIns {
  /** Counts one failure; it is written within a minute. Costs no more than a look into a map. */
  note(failure: FailedSignIn): void
  /** Writes what is counted. Never rejects. */
  flush(): Promise<void>
  close(): Promise<void>
}

const COUNT_FOR_MS = 60_000
/** Counted apart within a minute, some 300 kB; what comes after them is summed up. */
const GROUPS_MAX = 1_000
/** Rows of their own, from one minute. */
const ROWS_PER_MINUTE_MAX = 20
/** Rows of their own within a day, so that a long attack from many addresses stays small. */
const ROWS_PER_DAY_MAX = 2_000
const DAY_MS = 86_400_000

interface Group {
  accountId: string
  remoteAddress: string
  way: SignInWay
  login: string
  count: number
  firstAt: number
  lastAt: number
}

export interface FailedSignInParts {
  store: Store
  clock: Clock
  log: Logger
  /** Failures that belong to no account are the operator's. */
  firstAccountId: string
}

export function createFailedSignIns({ store, clock, log, firstAccountId }: FailedSignInParts): FailedSignIns {
  let groups = new Map<string, Group>()
  let beyond = 0
  let timer: Timer | null = null
  let day = { beganAt: Number.NEGATIVE_INFINITY, rows: 0 }
  let writing: Promise<void> = Promise.resolve()
  let closed = false

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
      beyond += 1
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

  /** Rows of their own that the day still has room for. */
  function rowsLeft(): number {
    if (clock.monotonic() - day.beganAt >= DAY_MS) day = { beganAt: clock.monotonic(), rows: 0 }
    return Math.min(ROWS_PER_MINUTE_MAX, ROWS_PER_DAY_MAX - day.rows)
  }

  function takeStatements(): Statement[] {
    const counted = [...groups.values()].sort((a, b) => b.count - a.count)
    const others = beyond
    groups = new Map()
    beyond = 0
    const own = counted.slice(0, rowsLeft())
    const rest = counted.slice(own.length)
    day.rows += own.length
    const now = clock.now()
    const statements = own.map((group) => rowOf(group, now))
    const count = rest.reduce((sum, group) => sum + group.count, others)
    if (count > 0) statements.push(sumOf(firstAccountId, count, rest.length, now))
    return statements
  }

  function flush(): Promise<void> {
    timer?.cancel()
    timer = null
    const statements = takeStatements()
    if (statements.length === 0) return writing
    // One after the other, so that a database that is away has one unit waiting and not one for each minute.
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
    async close() {
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

/** `addresses`: at least so many; those beyond GROUPS_MAX are not told apart. */
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
