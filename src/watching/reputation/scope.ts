/** Whose figures a caller sees, of which days, and which part of them: common to all operations of reputation.md. */
import { DAY_MS, SECOND_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import type { AccountDirectory } from '../../people/accounts/account-directory.ts'
import { flagParam, type InputOf, integerParam, limitParam } from '../../platform/http/request/inputs.ts'
import type { Caller } from '../../platform/http/rights/auth.ts'
import type { Store } from '../../platform/store/store.ts'
import { dedicatedTo, sharedFor } from '../../sending/ips/address-book.ts'
import type { KnownAddresses } from '../../sending/ips/known-addresses.ts'
import { type DayRange, KEPT_MS } from './days.ts'
import { dayOf } from './google/figures.ts'
import type { SourceName } from './sources.ts'

export const INCLUDE = { include_subaccounts: flagParam('Those of subaccounts too', { default: false }) }

/** The public description requires all of them; here each may be absent. */
export const PAGE_PARAMS = {
  offset: integerParam('Items to leave out', { min: 0, default: 0 }),
  limit: limitParam(100, 1_000, { above: 'cut' }),
}

export const RANGE_PARAMS = {
  timeRangeStart: integerParam('Unix seconds, from the day of which on; default 30 days before the end', {
    min: 0,
  }),
  timeRangeEnd: integerParam('Unix seconds, to the day of which; default now', { min: 0 }),
}

const PERIOD_MS = 30 * DAY_MS

export function rangeOf(given: InputOf<typeof RANGE_PARAMS>, now: number): DayRange {
  const end = given.timeRangeEnd === undefined ? now : Math.min(given.timeRangeEnd * SECOND_MS, now)
  const start = given.timeRangeStart === undefined ? end - PERIOD_MS : given.timeRangeStart * SECOND_MS
  return { from: dayOf(Math.max(start, now - KEPT_MS)), to: dayOf(end) }
}

export interface ScopeParts extends Pick<Core, 'store' | 'clock'> {
  accounts: Pick<AccountDirectory, 'childrenOf'>
  known: Pick<KnownAddresses, 'book'>
}

export async function accountsOf(
  { accounts }: Pick<ScopeParts, 'accounts'>,
  { accountId }: Caller,
  { include_subaccounts: all }: InputOf<typeof INCLUDE>,
): Promise<string[]> {
  return all ? [accountId, ...(await accounts.childrenOf(accountId))] : [accountId]
}

/** Addresses that these accounts may use, each once. */
export function addressesOf({ known }: Pick<ScopeParts, 'known'>, accountIds: readonly string[]): string[] {
  const book = known.book()
  const found = accountIds.flatMap((id) => [...dedicatedTo(book, id), ...sharedFor(book, id)])
  return [...new Set(found.map(({ ip }) => ip))]
}

/** Whether the operator has stored credentials. */
export async function isConfigured(store: Store, name: SourceName): Promise<boolean> {
  const row = await store.db
    .selectFrom('reputation_sources')
    .select('name')
    .where('name', '=', name)
    .executeTakeFirst()
  return row !== undefined
}
