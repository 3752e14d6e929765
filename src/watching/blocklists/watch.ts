/**
 * Looks addresses and domains up in blocklists, politely: each four times a day in each list, a few a minute, and none in a list
 * whose test entries are not as they must be.
 *
 * 1. Every quarter of an hour the rows of `blocklist_checks` are made those of what is watched.
 * 2. Every minute, for each list, its due rows are looked up, at most ROWS_PER_RUN. Before that its test entries are, unless they were
 *    lately; and again, past the cache, before a new listing is believed.
 * 3. What changed is committed with its history and the notices to the accounts that have the domain or address.
 * 4. Then the addresses that providers refuse by what is listed now are left for them (pools.ts).
 */
import { newId } from '../../base/ids.ts'
import { HOUR_MS, MINUTE_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import { createJob } from '../../platform/jobs/job.ts'
import { commitUnlessStale } from '../../platform/store/commits.ts'
import type { BlocklistCheckRow, BlocklistEventRow, BlocklistStateRow } from '../../platform/store/schema.ts'
import { insert, insertMany, type Statement } from '../../platform/store/store.ts'
import {
  type BlocklistAnswer,
  type BlocklistKind,
  blocklistKind,
  queryBlocklist,
  testBlocklist,
} from '../../protocols/dns/blocklist.ts'
import type { Resolver } from '../../protocols/dns/resolver.ts'
import type { AddressBook } from '../../sending/ips/address-book.ts'
import { type Judged, judgeAnswer } from './judging.ts'
import type { Blocklist } from './lists.ts'
import {
  type Monitor,
  monitorsOfAddress,
  monitorsOfDomain,
  watchedAddresses,
  watchedDomains,
} from './subjects.ts'

/** What is told to an account; the statements belong into the transaction of the change. */
export interface ListingNotices {
  statements(event: {
    accountId: string
    type: 'ip_listed' | 'ip_delisted' | 'domain_listed' | 'domain_delisted'
    subject: string
    text: string
    details: Readonly<Record<string, unknown>>
  }): Promise<Statement[]>
  written(): void
}

interface WatchParts extends Pick<Core, 'store' | 'clock' | 'firstAccountId'> {
  random(): number
  resolver: Pick<Resolver, 'query'>
  lists: readonly Blocklist[]
  book(): AddressBook
  notices(): ListingNotices | null
  /** Called after each run. */
  leave(): Promise<void>
}

const EVERY_MS = MINUTE_MS
const SUBJECTS_EVERY_MS = 15 * MINUTE_MS
/** Rows of a list that are looked up in a run: at most 7,200 a day. More are looked up less often. */
const ROWS_PER_RUN = 5
/** What the test entries said counts for this long. */
const TESTED_MS = HOUR_MS
/** New rows are not all due at once. */
const SPREAD_MS = 10 * MINUTE_MS
/** Rows of one statement that removes some. */
const REMOVED_AT_A_TIME = 500

export function createWatch(parts: WatchParts) {
  const { store, clock, resolver, lists } = parts
  const now = () => Math.floor(clock.now())
  let subjectsAt = Number.NEGATIVE_INFINITY

  /** Rows for what is watched, and for nothing else. */
  async function refreshSubjects(): Promise<void> {
    if (clock.monotonic() - subjectsAt < SUBJECTS_EVERY_MS) return
    const subjects = [
      ...(lists.some(({ tests }) => tests.ipv4) ? watchedAddresses(parts.book()) : []),
      ...(lists.some(({ tests }) => tests.domain) ? await watchedDomains(store) : []),
    ]
    const wanted = lists.flatMap(({ zone: list, tests }) =>
      subjects.filter((subject) => tests[blocklistKind(subject)]).map((subject) => ({ list, subject })),
    )
    const rows = await store.db.selectFrom('blocklist_checks').select(['list', 'subject']).execute()
    const keyOf = ({ list, subject }: { list: string; subject: string }) => `${list} ${subject}`
    const present = new Set(rows.map(keyOf))
    const keys = new Set(wanted.map(keyOf))
    const added = wanted
      .filter((one) => !present.has(keyOf(one)))
      .map((one) => newRow(one, now() + Math.floor(parts.random() * SPREAD_MS)))
    const removed = rows.filter((row) => !keys.has(keyOf(row))).slice(0, REMOVED_AT_A_TIME)
    await store.commit([...insertMany('blocklist_checks', added), ...removed.map(removeStatement)])
    subjectsAt = clock.monotonic()
  }

  /** Why the answers of a list about a kind do not count; '': they do. `isFresh`: whatever was found lately. */
  async function faultOf(list: Blocklist, kind: BlocklistKind, isFresh: boolean): Promise<string> {
    const entries = list.tests[kind]
    if (entries === undefined) return `${list.zone} has no entries of that kind`
    const before = await store.db
      .selectFrom('blocklist_states')
      .selectAll()
      .where('list', '=', list.zone)
      .where('kind', '=', kind)
      .executeTakeFirst()
    if (!isFresh && before !== undefined && Number(before.checked_at) > now() - TESTED_MS) return before.fault
    const zone = { zone: list.askedZone, shown: list.zone, fresh: isFresh }
    const fault = await testBlocklist(resolver, zone, entries)
    await store.commit([stateStatement({ list: list.zone, kind, fault, checked_at: now() })])
    return fault
  }

  async function answerOf(
    list: Blocklist,
    row: BlocklistCheckRow,
  ): Promise<Pick<BlocklistAnswer, 'kind' | 'code'>> {
    const kind = blocklistKind(row.subject)
    if ((await faultOf(list, kind, false)) !== '') return NO_ANSWER
    const zone = { zone: list.askedZone, shown: list.zone }
    const answer = await queryBlocklist(resolver, row.subject, zone)
    const isNew = answer.kind === 'listed' && row.listed_since === null
    return isNew && (await faultOf(list, kind, true)) !== '' ? NO_ANSWER : answer
  }

  async function look(list: Blocklist, signal: AbortSignal): Promise<void> {
    const due = await store.db
      .selectFrom('blocklist_checks')
      .selectAll()
      .where('list', '=', list.zone)
      .where('next_at', '<=', now())
      .orderBy('next_at')
      .limit(ROWS_PER_RUN)
      .execute()
    for (const row of due) {
      const answer = await answerOf(list, row)
      // What a resolver that is being closed says does not count.
      if (signal.aborted) return
      await write(list, row, judgeAnswer(row, answer, now(), parts.random()))
    }
  }

  async function write(list: Blocklist, before: BlocklistCheckRow, { row, change }: Judged): Promise<void> {
    const unit: Statement[] = [checkStatement(before, row)]
    const notices = change === null ? null : parts.notices()
    if (change !== null) {
      const about = { list, row, change, now: now() }
      for (const event of await eventsOf(parts, about)) unit.push(insert('blocklist_events', event))
      if (notices !== null)
        for (const monitor of await monitorsOf(parts, about))
          unit.push(...(await notices.statements(noticeOf(about, monitor))))
    }
    // Unless it was made due meanwhile: the next run sees it.
    if ((await commitUnlessStale(store, unit)) && change !== null) notices?.written()
  }

  const job = createJob({
    name: 'blocklist-watch',
    everyMs: EVERY_MS,
    scope: 'database',
    async work(signal) {
      await refreshSubjects()
      for (const list of lists) {
        if (signal.aborted) return
        await look(list, signal)
      }
      await parts.leave()
    },
  })
  return {
    job,
    /** What is watched has changed. */
    renew(): void {
      subjectsAt = Number.NEGATIVE_INFINITY
      job.wake()
    },
  }
}

const NO_ANSWER = { kind: 'silent', code: '' } as const

interface Changed {
  list: Blocklist
  row: BlocklistCheckRow
  change: 'listed' | 'delisted'
  now: number
}

const kindOf = ({ subject }: BlocklistCheckRow) => (blocklistKind(subject) === 'domain' ? 'domain' : 'ip')

function noticeOf({ list, row, change, now }: Changed, { accountId, subject }: Monitor) {
  const kind = kindOf(row)
  const is = change === 'listed' ? 'is listed by' : 'is no longer listed by'
  const advice = `Receivers that use the list refuse mail ${kind === 'ip' ? 'from it' : 'that names it'}. Find out what caused it, end that, then ask for removal${list.page && `: ${list.page}`}.`
  return {
    accountId,
    type: `${kind}_${change}` as const,
    subject: `${subject} ${is} ${list.name}`,
    text: `${subject} ${is} ${list.name} (${list.zone}).\n${change === 'listed' ? `\n${advice}\n` : ''}`,
    details: {
      ...{ [kind]: subject, list: list.zone, name: list.name },
      timestamp: new Date(now).toISOString(),
    },
  }
}

const newRow = (key: { list: string; subject: string }, next_at: number): BlocklistCheckRow => ({
  ...key,
  ...{ checked_at: null, next_at, listed_since: null, listed_at: null, code: '', misses: 0 },
})

const removeStatement = ({ list, subject }: { list: string; subject: string }): Statement => ({
  sql: 'DELETE FROM blocklist_checks WHERE list = ? AND subject = ?',
  values: [list, subject],
})

/** Stale if the row was made due by a refusal meanwhile. */
const checkStatement = (before: BlocklistCheckRow, row: BlocklistCheckRow): Statement => ({
  sql: `UPDATE blocklist_checks SET checked_at = ?, next_at = ?, listed_since = ?, listed_at = ?, code = ?, misses = ?
    WHERE list = ? AND subject = ? AND next_at = ?`,
  values: [
    ...[row.checked_at, row.next_at, row.listed_since, row.listed_at, row.code, row.misses],
    ...[row.list, row.subject, Number(before.next_at)],
  ],
  expectRows: 1,
})

const stateStatement = ({ list, kind, fault, checked_at }: BlocklistStateRow): Statement => ({
  sql: `INSERT INTO blocklist_states (list, kind, fault, checked_at) VALUES (?, ?, ?, ?)
    ON CONFLICT (list, kind) DO UPDATE SET fault = excluded.fault, checked_at = excluded.checked_at`,
  values: [list, kind, fault, checked_at],
})

/** The history: of an address for the operator, of a domain for each account that has one there. */
async function eventsOf(
  { store, firstAccountId }: WatchParts,
  { list, row, change, now }: Changed,
): Promise<BlocklistEventRow[]> {
  const kind = kindOf(row)
  const monitors =
    kind === 'ip'
      ? [{ accountId: firstAccountId, subject: row.subject }]
      : await monitorsOfDomain(store, row.subject)
  return monitors.map(({ accountId, subject }) => ({
    ...{ id: newId(now), account_id: accountId, kind, subject },
    ...{ list: list.zone, event: change, created_at: now },
  }))
}

/** The accounts to notify; the service's own checks notify the first one. */
async function monitorsOf(
  { store, book, firstAccountId }: WatchParts,
  { row, change }: Changed,
): Promise<Monitor[]> {
  const all =
    kindOf(row) === 'ip'
      ? await monitorsOfAddress(store, book(), row.subject, `ip_${change}`)
      : await monitorsOfDomain(store, row.subject)
  return all.filter(({ accountId }) => accountId !== firstAccountId)
}
