/**
 * Stops and releases accounts and domains. Each change is one commit: the standing, what the domain shows, and the row of the
 * audit log. What a release makes due again is noted with it, so that a crash in between loses nothing.
 */
import { BadRequest } from '../../base/process/errors.ts'
import type { Clock } from '../../base/time/clock.ts'
import { HOUR_MS, MINUTE_MS } from '../../base/time/durations.ts'
import type { AccountHolds } from '../../mail/deliver/claim/account-holds.ts'
import { type Actor, auditStatement } from '../../people/accounts/audit-log.ts'
import type { DomainRow, StandingRow } from '../../platform/store/schema.ts'
import { insert, type Statement, type Store } from '../../platform/store/store.ts'
import { domainOfRow, enabledState } from '../domains/domain.ts'
import { type Disablement, STOPPED_CODE } from '../domains/fields.ts'
import type { DomainDirectory } from '../domains/names/directory.ts'
import { forgetCounts, hourOf, sentSince } from './counts.ts'
import type { Verdict } from './judge.ts'
import type { KnownStandings } from './known-standings.ts'
import type { StandingLimits } from './policy.ts'

export type StandingChanges = ReturnType<typeof createStandingChanges>

interface ChangeParts {
  store: Store
  clock: Clock
  domains: DomainDirectory
  known: Pick<KnownStandings, 'changed'>
  holds: Pick<AccountHolds, 'release'>
  /** Released mail is due. */
  wakeDelivery(): void
}

/** The code of a domain that the operator has disabled. */
const OPERATOR_CODE = 'operator'
/** Even a slowed sender may send that many. */
const PER_MINUTE_MIN = 60
/** A rate is not judged by less time. */
const RATE_OVER_MIN_MS = MINUTE_MS / 2
/** By then no process has the former state in memory, and what was being put aside has been. */
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

const ofStanding = `account_id = ? AND domain_name = ?`
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

export function createStandingChanges({ store, clock, domains, known, holds, wakeDelivery }: ChangeParts) {
  const now = () => Math.floor(clock.now())

  const rowOf = (accountId: string, name: string) => domainRow(store, accountId, name)

  async function commit(unit: readonly Statement[], domain: DomainRow | null): Promise<void> {
    await store.commit(unit)
    if (domain !== null) domains.changed(domain)
    await known.changed()
  }

  /** All mail that waits is due; done again until no process can have put aside more. */
  async function settle(row: StandingRow, signal: AbortSignal): Promise<void> {
    const isLast = now() >= Number(row.since_at) + SETTLE_MS
    await holds.release(row.account_id, signal)
    wakeDelivery()
    if (!isLast || signal.aborted) return
    const values = [row.account_id, row.domain_name, row.since_at]
    const sql = `UPDATE standings SET is_settled = 1 WHERE ${ofStanding} AND since_at = ? AND state = 'good'`
    await store.commit([{ sql, values }])
  }

  /** `actor` null: its time is over. `isEnabled`: what the operator has disabled ends as well. */
  async function endNow(
    accountId: string,
    name: string,
    actor: Actor | null,
    isEnabled = false,
  ): Promise<StandingRow> {
    const domain = await rowOf(accountId, name)
    const shown = domain?.disabled_json ? (JSON.parse(domain.disabled_json) as Disablement) : null
    const isOver = (shown?.until ?? Number.POSITIVE_INFINITY) <= now()
    const isShownEnded = shown !== null && (isEnabled || isOver || shown.code === STOPPED_CODE)
    const at = now()
    const good: StandingRow = {
      ...{ account_id: accountId, domain_name: name, state: 'good', code: '', reason: '' },
      figures_json: '{}',
      ...{ per_minute: null, since_at: at, until_at: null, told_json: '[]', is_told: 1, is_settled: 0 },
    }
    const change = {
      action: 'standing.release',
      subject: name || accountId,
      detail: { by: actor === null ? 'time' : 'operator' },
    }
    await commit(
      [
        write(good),
        forgetCounts(accountId, name),
        ...(domain && isShownEnded ? [disablement(domain, null)] : []),
        // In the log of the account that it is about.
        auditStatement(actor === null ? SELF(accountId) : asParent(actor, accountId), change, at),
      ],
      domain,
    )
    return good
  }

  /** By hand: what waits is due at once. What that leaves, or a stop interrupts, the job does. */
  async function endByHand(accountId: string, name: string, actor: Actor, isEnabled: boolean): Promise<void> {
    const good = await endNow(accountId, name, actor, isEnabled)
    void settle(good, AbortSignal.timeout(SETTLE_MS)).catch(() => {})
  }

  return {
    /**
     * @param releasedAt when something of the account was released last, as known before its figures were read; 0: never
     * @throws StaleWrite if something of it was released meanwhile
     */
    async stop(
      accountId: string,
      verdict: Verdict,
      limits: StandingLimits,
      releasedAt: number,
    ): Promise<void> {
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
      const given = { code: STOPPED_CODE, note: code, reason, permanently: false, until }
      await commit(
        [
          unlessReleased(accountId, releasedAt),
          write(row),
          ...(shown ? [disablement(domain, given)] : []),
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
      for (const { account_id, domain_name } of over) await endNow(account_id, domain_name, null)
      const disabled = await store.db
        .selectFrom('domains')
        .selectAll()
        .where('state', '=', 'disabled')
        .execute()
      for (const row of disabled)
        if (domainOfRow(row, now()).state !== 'disabled') await endNow(row.account_id, row.name, null)
      const unsettled = await store.db
        .selectFrom('standings')
        .selectAll()
        .where('state', '=', 'good')
        .where('is_settled', '=', 0)
        .execute()
      for (const row of unsettled) if (!signal.aborted) await settle(row, signal)
    },

    ...operatorChanges({ clock, rowOf, commit, endByHand }),
  }
}

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
