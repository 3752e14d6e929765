/**
 * Judges all accounts that have sent lately (judge.ts), ends what is over, and sends a mail to the admins of a stopped
 * account or domain.
 */
import { formatRfc3339 } from '../../base/time/dates.ts'
import { DAY_MS, HOUR_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import type { AccountDirectory } from '../../people/accounts/account-directory.ts'
import { adminMailboxes } from '../../people/accounts/user-directory.ts'
import type { SystemMail } from '../../people/users/mails.ts'
import { createJob, type Job } from '../../platform/jobs/job.ts'
import type { StandingRow } from '../../platform/store/schema.ts'
import { StaleWrite, type Store } from '../../platform/store/store.ts'
import type { StandingChanges } from './changes.ts'
import { activeAccounts, countsOf, type DomainCounts, hourOf, sentSince } from './counts.ts'
import { judgeAccount, NO_FIGURES, plus, type StandingState } from './judge.ts'
import type { KnownStandings } from './known-standings.ts'
import { WINDOW_HOURS_MAX } from './policy.ts'

/** What the outbound check said of mail of these accounts since a time; where there is such a check. */
export type ContentFigures = (
  accountIds: readonly string[],
  sinceMs: number,
) => Promise<readonly { accountId: string; domain: string; checked: number; bad: number }[]>

interface CheckParts extends Pick<Core, 'store' | 'clock' | 'log'> {
  accounts: Pick<AccountDirectory, 'byId'>
  known: KnownStandings
  changes: StandingChanges
  contentFigures: ContentFigures | null
  sendMail: SystemMail
}

const EVERY_MS = 20_000
/** Mails of one run. */
const MAILS_MAX = 50
const KEPT_MS = 30 * DAY_MS

export function createStandingChecks(parts: CheckParts): Job {
  const { store, clock, log, known, changes } = parts
  const now = () => Math.floor(clock.now())

  async function judgeAll(signal: AbortSignal): Promise<void> {
    // Who has sent nothing bad in the last two hours was judged before.
    const since = hourOf(now()) - HOUR_MS
    const active = await activeAccounts(store, since, parts.contentFigures === null)
    const byWindow = Map.groupBy(active, (accountId) => known.policyFor(accountId).limits?.window_hours ?? 0)
    byWindow.delete(0)
    for (const [hours, accountIds] of byWindow) {
      const sinceHour = hourOf(now() - hours * HOUR_MS)
      // Before the figures, so that one during their reading is noticed.
      const releasedAt = await releasesIn(store)
      const counts = [
        ...(await countsOf(store, accountIds, sinceHour)),
        ...(await contentCounts(accountIds, sinceHour, releasedAt)),
      ]
      for (const [accountId, own] of Map.groupBy(counts, (count) => count.accountId)) {
        if (signal.aborted) return
        await judgeOne(accountId, own, releasedAt.get(accountId) ?? 0).catch((error: unknown) => {
          // It was released, or the domain changed, meanwhile: judged again at the next check.
          if (!(error instanceof StaleWrite)) throw error
        })
      }
    }
  }

  async function judgeOne(accountId: string, counts: readonly DomainCounts[], releasedAt: number) {
    const { limits, isOwn } = known.policyFor(accountId)
    const account = await parts.accounts.byId(accountId)
    if (limits === null || account === null || account.status === 'closed') return
    const rows = known.list().filter((row) => row.account_id === accountId)
    const rowOf = (name: string) => rows.find(({ domain_name }) => domain_name === name)
    const stateOf = (name: string) => (rowOf(name)?.state ?? 'good') as StandingState
    const domains = []
    const byName = Map.groupBy(counts, ({ domainName }) => domainName)
    // One that was stopped counts for its account even if it has sent nothing in the window.
    for (const { domain_name: name } of rows) if (name !== '' && !byName.has(name)) byName.set(name, [])
    for (const [name, some] of byName) {
      const figures = some.reduce((sum, count) => plus(sum, count.figures), NO_FIGURES)
      domains.push({ name, figures, state: stateOf(name), sentSince: await sentAfter(rowOf(name)) })
    }
    const verdicts = judgeAccount({
      ...{ limits, domains, state: stateOf(''), sentSince: await sentAfter(rowOf('')) },
      // The operator's own account is stopped only if the operator has chosen that (decision 195).
      isWarnedOnly: account.parentId === null && !isOwn,
    })
    for (const verdict of verdicts) {
      const { domain, state, reason } = verdict
      log.warn({ account: accountId, domain, state, reason }, 'a sender is stopped')
      await changes.stop(accountId, verdict, limits, releasedAt)
    }
  }

  /** Messages since it was slowed. */
  async function sentAfter(row: StandingRow | undefined): Promise<number> {
    if (row?.state !== 'slowed') return 0
    const { sentInHour = 0 } = JSON.parse(row.figures_json) as { sentInHour?: number }
    const { sent } = await sentSince(store, row.account_id, row.domain_name, hourOf(Number(row.since_at)))
    return sent - sentInHour
  }

  /** What the outbound check said, since an hour. The hour of a release, and those before it, do not count. */
  async function contentCounts(
    accountIds: readonly string[],
    sinceHour: number,
    releasedAt: ReadonlyMap<string, number>,
  ): Promise<DomainCounts[]> {
    const { contentFigures } = parts
    if (contentFigures === null) return []
    const sinceOf = (id: string) => Math.max(sinceHour, hourOf(releasedAt.get(id) ?? 0) + HOUR_MS)
    const found = []
    for (const [since, ids] of Map.groupBy(accountIds, sinceOf))
      found.push(...(await contentFigures(ids, since)))
    return found.map(({ accountId, domain: domainName, checked, bad: badContent }) => ({
      ...{ accountId, domainName },
      figures: { ...NO_FIGURES, checked, badContent },
    }))
  }

  return createJob({
    name: 'standing-checks',
    everyMs: EVERY_MS,
    scope: 'database',
    async work(signal) {
      await changes.endOver(signal)
      await judgeAll(signal)
      await removeOld(parts, now())
      await notifyAdmins(parts, signal)
    },
  })
}

/** When something of each account was released last, in Unix milliseconds. */
async function releasesIn(store: Store): Promise<Map<string, number>> {
  const rows = await store.db
    .selectFrom('standings')
    .select(['account_id', ({ fn }) => fn.max('since_at').as('at')])
    .where('state', '=', 'good')
    .groupBy('account_id')
    .execute()
  return new Map(rows.map(({ account_id, at }) => [account_id, Number(at)]))
}

/** A mail to the admins about each that was stopped, once. */
async function notifyAdmins(parts: CheckParts, signal: AbortSignal): Promise<void> {
  const { store, log } = parts
  const due = await store.db
    .selectFrom('standings')
    .selectAll()
    .where('is_told', '=', 0)
    .where('state', '<>', 'good')
    .limit(MAILS_MAX)
    .execute()
  for (const row of due) {
    if (signal.aborted) return
    const account = await parts.accounts.byId(row.account_id)
    const to = await adminMailboxes(store, row.account_id, account?.parentId ?? null)
    const notified = {
      sql: `UPDATE standings SET is_told = 1, told_json = ?
        WHERE account_id = ? AND domain_name = ? AND since_at = ? AND is_told = 0`,
      values: [JSON.stringify(to), row.account_id, row.domain_name, row.since_at],
      expectRows: 1,
    }
    try {
      if (to.length === 0) await store.commit([notified])
      else await parts.sendMail({ to, ...noticeOf(row, account?.name ?? row.account_id) }, [notified])
    } catch (error) {
      // Another process has sent it, or it is over. One that cannot be sent now holds up no other.
      if (!(error instanceof StaleWrite))
        log.warn({ err: error, account: row.account_id }, 'cannot notify admins of a stopped sender')
    }
  }
}

async function removeOld({ store, known }: CheckParts, now: number): Promise<void> {
  await store.commit([
    {
      sql: 'DELETE FROM standing_counts WHERE hour_at < ?',
      values: [hourOf(now - (WINDOW_HOURS_MAX + 1) * HOUR_MS)],
    },
    {
      sql: `DELETE FROM standings WHERE state = 'good' AND is_settled = 1 AND since_at < ?`,
      values: [now - KEPT_MS],
    },
  ])
  await known.removeOldDays()
}

const EFFECTS: Readonly<Record<string, string>> = {
  warned: 'It goes on sending. Find the cause before receivers block it.',
  slowed:
    'Its mail is sent at a fraction of the rate. If the figure stays as high, it is held: its mail waits in the queue then, and nothing is lost.',
  held: 'Its mail waits in the queue; nothing is lost.',
}

/** What was stopped, why, and the way out. */
function noticeOf({ domain_name: domain, state, reason, until_at: until }: StandingRow, account: string) {
  const who = domain === '' ? `The account "${account}"` : `The domain ${domain} of the account "${account}"`
  return {
    subject: `${domain === '' ? account : domain}: sending is ${state === 'warned' ? 'judged badly' : state}`,
    text: `${who} is ${state}: ${reason}.

${EFFECTS[state]} This ends by itself at ${formatRfc3339(new Date(Number(until)))}, or when the operator releases it.

Find the list that the addresses came from, and remove it. Remove recipients that have not opened anything for months.
`,
  }
}
