/**
 * Stops and releases accounts and domains. Each change is one commit: the standing, what the domain shows, and the row of the
 * audit log. What a release makes due again is noted with it, so that a crash in between loses nothing.
 */
import { BadRequest } from '../../base/process/errors.ts'
import { formatRfc3339 } from '../../base/time/dates.ts'
import { HOUR_MS, MINUTE_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import type { AccountHolds } from '../../mail/deliver/claim/account-holds.ts'
import { type Actor, auditStatement } from '../../people/accounts/audit-log.ts'
import type { DomainRow, StandingRow } from '../../platform/store/schema.ts'
import { insert, type Statement, type Store } from '../../platform/store/store.ts'
import { domainOfRow, enabledState } from '../domains/domain.ts'
import { type Disablement, STOPPED_CODE } from '../domains/fields.ts'
import { forgetCounts, hourOf, sentSince } from './counts.ts'
import type { Verdict } from './judge.ts'
import type { KnownStandings } from './known-standings.ts'
import type { StandingLimits } from './policy.ts'

export type StandingChanges = ReturnType<typeof createStandingChanges>

interface ChangeParts extends Pick<Core, 'store' | 'clock' | 'domains'> {
  known: Pick<KnownStandings, 'changed'>
  holds: Pick<AccountHolds, 'release'>
  /** Notifies the account, where it has settings for that. */
  notices: StandingNotices
  /** Released mail is due. */
  wakeDelivery(): void
}

/** Notices to the channels of an account (alerts.md section 2). */
export interface StandingNotices {
  /** For the transaction of the event. */
  statements(event: {
    accountId: string
    type: 'sender_stopped' | 'sender_released'
    subject: string
    text: string
    details: Readonly<Record<string, unknown>>
  }): Promise<Statement[]>
  /** The statements are committed. */
  written(): void
}

/** The code of a domain that the operator has disabled. */
const OPERATOR_CODE = 'operator'
/** Even a slowed sender may send that many. */
const PER_MINUTE_MIN = 60
/** A rate is not judged by less time. */
const RATE_OVER_MIN_MS = MINUTE_MS / 2
/** By then no process has the former state in memory, and what one was putting aside is in the database. */
const SETTLE_MS = MINUTE_MS

/** What the audit log names where the service itself acts. */
const SELF = (accountId: string): Actor => ({
  caller: { accountId, keyId: 'service' },
  remoteAddress: '',
  requestId: '',
})

/** The operator, in the audit log of another account. */
const asParent = ({ caller, ...where }: Actor, accountId: string): Actor => ({
  ...where,
  caller: {
    ...caller,
    accountId,
    ...(caller.accountId !== accountId && { parentAccountId: caller.accountId }),
  },
})

const STANDING = 'account_id = ? AND domain_name = ?'
/** The row may be there from a former time. */
const OVER = `ON CONFLICT (account_id, domain_name) DO UPDATE SET
  ${[
    'state',
    'code',
    'reason',
    'figures_json',
    'per_minute',
    'since_at',
    'until_at',
    'told_json',
    'is_told',
    'is_settled',
  ]
    .map((name) => `${name} = excluded.${name}`)
    .join(', ')}`

/** What a domain shows while the service holds it. */
const shownOf = ({ code, reason, until_at: until }: StandingRow): Disablement => ({
  ...{ code: STOPPED_CODE, note: code, reason, permanently: false },
  ...(until !== null && { until: Number(until) }),
})

/** Fails the unit if something of the account was released after `releasedAt`: what was counted before does not count then. */
const unlessReleased = (accountId: string, releasedAt: number): Statement => ({
  sql: `SELECT 1 FROM standings WHERE account_id = ? AND state = 'good' AND since_at > ?`,
  values: [accountId, releasedAt],
  expectRows: 0,
})

const write = (row: StandingRow): Statement => {
  const { sql, values } = insert('standings', row)
  return { sql: `${sql} ${OVER}`, values }
}

/** Sets what the domain shows, unless that has changed meanwhile; null: it is not disabled any more. */
const disablement = (domain: DomainRow, disabled: Disablement | null): Statement => ({
  sql: `UPDATE domains SET state = ?, disabled_json = ? WHERE id = ? AND COALESCE(disabled_json, '') = ?`,
  values: [
    disabled === null ? enabledState(domain) : 'disabled',
    disabled === null ? null : JSON.stringify(disabled),
    domain.id,
    domain.disabled_json ?? '',
  ],
  expectRows: 1,
})

/** The notice of a standing for the channels of its account. */
function noticeOf({ account_id, domain_name: domain, state, code, reason, until_at }: StandingRow) {
  const who = domain === '' ? `The account ${account_id}` : domain
  const until = until_at === null ? null : formatRfc3339(new Date(Number(until_at)))
  const what = state === 'good' ? 'released' : state
  return {
    accountId: account_id,
    type: state === 'good' ? ('sender_released' as const) : ('sender_stopped' as const),
    subject: `${who} is ${what}`,
    text: `${who} is ${what}${reason && `: ${reason}`}.${until === null ? '' : `\n\nThis ends by itself at ${until}.`}\n`,
    details: {
      sender: {
        account_id,
        ...(domain !== '' && { domain }),
        state,
        ...(code !== '' && { code, reason }),
        ...(until !== null && { until }),
      },
    },
  }
}

export function createStandingChanges(parts: ChangeParts) {
  const { store, clock, domains, known, notices } = parts
  const now = () => Math.floor(clock.now())

  const rowOf = (accountId: string, name: string) => domainRow(store, accountId, name)

  async function commit(unit: readonly Statement[], domain: DomainRow | null): Promise<void> {
    await store.commit(unit)
    notices.written()
    if (domain !== null) domains.changed(domain)
    await known.changed()
  }

  const { settle, endByHand, endByTime, endShown } = createReleases(parts, commit)

  return {
    /**
     * @param releasedAt when something of the account was released last, as known before its figures were read; 0: never
     * @throws StaleWrite if something of it was released meanwhile
     */
    async stop(accountId: string, verdict: Verdict, limits: StandingLimits, releasedAt: number) {
      const { domain: name, state, code, reason, figures } = verdict
      const at = now()
      const until = at + limits.hold_hours * HOUR_MS
      const domain = await rowOf(accountId, name ?? '')
      const inHour = await sentSince(store, accountId, name ?? '', hourOf(at))
      const perMinute =
        state === 'slowed'
          ? await slowedRate(store, at, { accountId, name: name ?? '', percent: limits.slow_percent })
          : null
      const row: StandingRow = {
        ...{ account_id: accountId, domain_name: name ?? '', state, code, reason },
        figures_json: JSON.stringify({ ...figures, sentInHour: inHour.sent }),
        ...{ per_minute: perMinute, since_at: at, until_at: until },
        ...{ told_json: '[]', is_told: 0, is_settled: 1 },
      }
      const shown = state === 'held' && domain !== null && domain.disabled_json === null
      await commit(
        [
          unlessReleased(accountId, releasedAt),
          write(row),
          ...(await notices.statements(noticeOf(row))),
          ...(shown ? [disablement(domain, shownOf(row))] : []),
          auditStatement(
            SELF(accountId),
            { action: `standing.${state}`, subject: name ?? accountId, detail: { code, reason, until } },
            at,
          ),
        ],
        domain,
      )
    },

    /** @throws BadRequest if it is not stopped */
    async release(accountId: string, name: string, actor: Actor): Promise<void> {
      const stopped = await store.db
        .selectFrom('standings')
        .select('state')
        .where('account_id', '=', accountId)
        .where('domain_name', '=', name)
        .where('state', '<>', 'good')
        .executeTakeFirst()
      if (stopped === undefined)
        throw new BadRequest(name === '' ? 'The account is not stopped' : 'The domain is not stopped')
      await endByHand(accountId, name, actor, false)
    },

    /** Ends what is over, and makes due what releases have left. */
    async endOver(signal: AbortSignal): Promise<void> {
      const over = await store.db
        .selectFrom('standings')
        .select(['account_id', 'domain_name'])
        .where('state', '<>', 'good')
        .where('until_at', '<=', now())
        .execute()
      for (const { account_id, domain_name } of over) await endByTime(account_id, domain_name, signal)
      for (const row of await disabledDomains(store))
        if (domainOfRow(row, now()).state !== 'disabled') await endShown(row, signal)
      for (const row of await unsettled(store)) if (!signal.aborted) await settle(row, signal)
    },

    ...operatorChanges({ clock, rowOf, commit, endByHand }),
  }
}

/** Ends standings, and makes the mail due that they have kept. */
function createReleases(
  { store, clock, holds, notices, wakeDelivery }: ChangeParts,
  commit: (unit: readonly Statement[], domain: DomainRow | null) => Promise<void>,
) {
  const now = () => Math.floor(clock.now())

  /** All mail of the account that waits is due. */
  async function releaseMail(accountId: string, signal: AbortSignal): Promise<void> {
    await holds.release(accountId, signal)
    wakeDelivery()
  }

  /** Once no process can put aside more: mail that one did put aside after the release, or that a crash left, is due as well. */
  async function settle(row: StandingRow, signal: AbortSignal): Promise<void> {
    // A clock that was set back must not put it off.
    if (Math.abs(now() - Number(row.since_at)) < SETTLE_MS) return
    await releaseMail(row.account_id, signal)
    if (signal.aborted) return
    const values = [row.account_id, row.domain_name, row.since_at]
    const sql = `UPDATE standings SET is_settled = 1 WHERE ${STANDING} AND since_at = ? AND state = 'good'`
    await store.commit([{ sql, values }])
  }

  /** `actor` null: its time is over. `isEnabled`: what the operator has disabled ends as well. */
  async function endNow(accountId: string, name: string, actor: Actor | null, isEnabled = false) {
    const domain = await domainRow(store, accountId, name)
    const shown = domain?.disabled_json ? (JSON.parse(domain.disabled_json) as Disablement) : null
    const isOver = (shown?.until ?? Number.POSITIVE_INFINITY) <= now()
    const isShownEnded = shown !== null && (isEnabled || isOver || shown.code === STOPPED_CODE)
    const at = now()
    const good = goodSince(accountId, name, at)
    const change = {
      action: 'standing.release',
      subject: name || accountId,
      detail: { by: actor === null ? 'time' : 'operator' },
    }
    await commit(
      [
        write(good),
        ...(await notices.statements(noticeOf(good))),
        forgetCounts(accountId, name),
        ...(domain && isShownEnded ? [disablement(domain, null)] : []),
        // In the log of the account that it is about.
        auditStatement(actor === null ? SELF(accountId) : asParent(actor, accountId), change, at),
      ],
      domain,
    )
  }

  /** By hand: what waits is due at once. What that leaves, or a stop interrupts, the job does. */
  async function endByHand(accountId: string, name: string, actor: Actor, isEnabled: boolean): Promise<void> {
    await endNow(accountId, name, actor, isEnabled)
    void releaseMail(accountId, AbortSignal.timeout(SETTLE_MS)).catch(() => {})
  }

  async function endByTime(accountId: string, name: string, signal: AbortSignal): Promise<void> {
    await endNow(accountId, name, null)
    await releaseMail(accountId, signal)
  }

  /** The time of what a domain shows is over. What the service has stopped for longer stays so, and is shown then. */
  async function endShown(domain: DomainRow, signal: AbortSignal): Promise<void> {
    const { account_id: accountId, name } = domain
    const stopped = await stoppedAfter(store, domain, now())
    if (stopped === undefined) return endByTime(accountId, name, signal)
    const shown = stopped.state === 'held' ? shownOf(stopped) : null
    const change = { action: 'domain.enable', subject: name, detail: { by: 'time' } }
    await commit([disablement(domain, shown), auditStatement(SELF(accountId), change, now())], domain)
    if (shown === null) await releaseMail(accountId, signal)
  }

  return { settle, endByHand, endByTime, endShown }
}

const goodSince = (account_id: string, domain_name: string, since_at: number): StandingRow => ({
  ...{ account_id, domain_name, state: 'good', code: '', reason: '', figures_json: '{}' },
  ...{ per_minute: null, since_at, until_at: null, told_json: '[]', is_told: 1, is_settled: 0 },
})

const disabledDomains = (store: Store) =>
  store.db.selectFrom('domains').selectAll().where('state', '=', 'disabled').execute()

/** Releases after which mail may still be put aside. */
const unsettled = (store: Store) =>
  store.db
    .selectFrom('standings')
    .selectAll()
    .where('state', '=', 'good')
    .where('is_settled', '=', 0)
    .execute()

/** The standing of a domain that is stopped for longer than until `time`. */
const stoppedAfter = (store: Store, { account_id, name }: DomainRow, time: number) =>
  store.db
    .selectFrom('standings')
    .selectAll()
    .where('account_id', '=', account_id)
    .where('domain_name', '=', name)
    .where('state', '<>', 'good')
    .where('until_at', '>', time)
    .executeTakeFirst()

/** Null: there is no such domain, or `name` is empty. */
async function domainRow(store: Store, accountId: string, name: string): Promise<DomainRow | null> {
  if (name === '') return null
  const row = await store.db
    .selectFrom('domains')
    .selectAll()
    .where('name', '=', name)
    .where('account_id', '=', accountId)
    .executeTakeFirst()
  return row ?? null
}

/** Messages a minute that are left of the rate of an account or domain in this hour and the one before. */
async function slowedRate(
  store: Store,
  now: number,
  { accountId, name, percent }: { accountId: string; name: string; percent: number },
): Promise<number> {
  const { sent, firstAt } = await sentSince(store, accountId, name, hourOf(now) - HOUR_MS)
  const minutes = Math.max(RATE_OVER_MIN_MS, now - (firstAt ?? now)) / MINUTE_MS
  return Math.max(PER_MINUTE_MIN, Math.round(((sent / minutes) * percent) / 100))
}

interface OperatorParts extends Pick<ChangeParts, 'clock'> {
  rowOf(accountId: string, name: string): Promise<DomainRow | null>
  commit(unit: readonly Statement[], domain: DomainRow | null): Promise<void>
  endByHand(accountId: string, name: string, actor: Actor, isEnabled: boolean): Promise<void>
}

/** Domains that the operator disables. */
function operatorChanges({ clock, rowOf, commit, endByHand }: OperatorParts) {
  const now = () => Math.floor(clock.now())
  return {
    /** @throws BadRequest if it is so already */
    async disable(
      accountId: string,
      name: string,
      why: { reason: string; note: string; until: number | null },
    ) {
      const domain = await rowOf(accountId, name)
      if (domain === null) throw new BadRequest('Domain not found')
      if (domainOfRow(domain, now()).disabled?.code === OPERATOR_CODE)
        throw new BadRequest('The domain is disabled already')
      const { until, ...words } = why
      const given = {
        code: OPERATOR_CODE,
        ...words,
        permanently: until === null,
        ...(until !== null && { until }),
      }
      await commit([disablement(domain, given)], domain)
    },

    /** Also ends what the service itself has stopped. @throws BadRequest if it is not disabled */
    async enable(accountId: string, name: string, actor: Actor): Promise<void> {
      const domain = await rowOf(accountId, name)
      if (domain === null || domainOfRow(domain, now()).state !== 'disabled')
        throw new BadRequest('The domain is not disabled')
      await endByHand(accountId, name, actor, true)
    },
  }
}
