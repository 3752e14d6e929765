/** The consent trail: how and when an address came onto a list or left it, written with each change (decision 228). */
import { newId } from '../../base/ids.ts'
import { DAY_MS } from '../../base/time/durations.ts'
import type {
  ConsentAction,
  ConsentSource,
  ConsentTrailRow,
  ListMemberRow,
} from '../../platform/store/schema.ts'
import { insert, type Statement } from '../../platform/store/store.ts'
import type { Cause } from './consent.ts'
import type { List } from './list.ts'

export const CONSENT_ACTIONS = [
  ...['added', 'pending', 'confirmed', 'declined', 'expired', 'unsubscribed', 'resubscribed', 'removed'],
  'imported',
] as const satisfies readonly ConsentAction[]

/**
 * `import`: an upload. `mail`: a mail to the unsubscribe address, or the link of a confirmation mail. `one_click`: by a mail
 * program (RFC 8058).
 */
export const CONSENT_SOURCES = [
  ...['api', 'dashboard', 'form', 'import', 'unsubscribe_link', 'one_click', 'preference_page', 'mail'],
] as const satisfies readonly ConsentSource[]

/** Rows of one address in one account; the oldest go first. */
export const TRAIL_PER_ADDRESS_MAX = 100
/** How long rows are kept of an address that never agreed: anybody can enter it into a form. */
const UNCONFIRMED_KEPT_MS = 90 * DAY_MS
const USER_AGENT_LENGTH_MAX = 255

/** What a row is about. */
export type TrailSubject = Pick<
  ConsentTrailRow,
  'account_id' | 'address_key' | 'list_id' | 'list_address' | 'domain_name' | 'topic'
>

/** One row of the trail. */
export function trailRow(subject: TrailSubject, action: ConsentAction, cause: Cause): Statement {
  const at = Math.floor(cause.at)
  const isUnconfirmed = action === 'pending' || action === 'expired' || action === 'declined'
  return insert('consent_trail', {
    ...subject,
    ...{ id: newId(at), action, source: cause.source, at },
    ip: cause.ip ?? null,
    user_agent: cause.userAgent?.replaceAll('\0', '').slice(0, USER_AGENT_LENGTH_MAX).toWellFormed() ?? null,
    called_by: cause.calledBy ?? null,
    expires_at: isUnconfirmed ? at + UNCONFIRMED_KEPT_MS : null,
  })
}

/** What happened to a member; null: nothing that concerns its consent. Without a row it is no member. */
export function actionOf(
  before: ListMemberRow | undefined,
  after: ListMemberRow | undefined,
  cause: Pick<Cause, 'source' | 'ended'>,
): ConsentAction | null {
  const [was, is] = [stateOf(before), stateOf(after)]
  if (was === is) return null
  if (was === 'pending' && cause.ended) return cause.ended
  switch (is) {
    case 'none':
      return 'removed'
    case 'pending':
      return 'pending'
    case 'unsubscribed':
      return 'unsubscribed'
    default:
      if (was === 'unsubscribed') return 'resubscribed'
      // Else the account decided, and not the person.
      if (was === 'pending' && cause.source === 'mail') return 'confirmed'
      return cause.source === 'import' ? 'imported' : 'added'
  }
}

const stateOf = (row: ListMemberRow | undefined) =>
  row === undefined
    ? 'none'
    : row.pending_id !== null
      ? 'pending'
      : row.subscribed === 1
        ? 'subscribed'
        : 'unsubscribed'

/**
 * The rows of a change of members. `changed`: the row before and after, by address key. New members of an upload trim nothing, so
 * that it has no statement for each: an address that leaves, to become new again, is trimmed then.
 */
export function memberTrail(
  list: List,
  changed: Iterable<
    readonly [key: string, before: ListMemberRow | undefined, after: ListMemberRow | undefined]
  >,
  cause: Cause,
): Statement[] {
  const rows: Statement[] = []
  const others: Statement[] = []
  for (const [key, before, after] of changed) {
    const action = actionOf(before, after, cause)
    if (action === null) continue
    rows.push(trailRow(listSubject(list, key), action, cause))
    if (before !== undefined || cause.source !== 'import') others.push(trimmed(list.accountId, key))
    if (stateOf(before) === 'pending' && stateOf(after) === 'subscribed') others.push(kept(list, key))
  }
  return [...rows, ...others]
}

const listSubject = (list: List, key: string): TrailSubject => ({
  account_id: list.accountId,
  address_key: key,
  ...{ list_id: list.id, list_address: list.address, domain_name: list.domainName, topic: null },
})

/**
 * Removes the rows of an address beyond the newest. One statement for many addresses took PostgreSQL 0.4 s for 250, before the
 * table had statistics: it read all rows of the account.
 */
export const trimmed = (accountId: string, key: string): Statement => ({
  sql: `DELETE FROM consent_trail WHERE account_id = ? AND address_key = ? AND id <= (SELECT id FROM consent_trail
    WHERE account_id = ? AND address_key = ? ORDER BY id DESC LIMIT 1 OFFSET ${TRAIL_PER_ADDRESS_MAX})`,
  values: [accountId, key, accountId, key],
})

/** Who has agreed is no stranger any more: when it was asked is kept as long as the rest. */
const kept = (list: List, key: string): Statement => ({
  sql: 'UPDATE consent_trail SET expires_at = NULL WHERE account_id = ? AND address_key = ? AND list_id = ?',
  values: [list.accountId, key, list.id],
})
