/**
 * Whether a member has agreed to mail of the list (decision 228). A member that is asked first is `pending`: it is not
 * subscribed, gets a mail with a link, and is forgotten when it does not confirm in time. Pure.
 */
import { newId } from '../../base/ids.ts'
import { DAY_MS } from '../../base/time/durations.ts'
import type { ConsentSource, ListMemberRow } from '../../platform/store/schema.ts'
import type { List } from './list.ts'

/** Who changes members, and by which way. */
export interface Cause {
  source: ConsentSource
  /** Unix milliseconds. */
  at: number
  /** Id of the user or key. */
  calledBy?: string | undefined
  /** The person's, for changes that the person made. */
  ip?: string | undefined
  userAgent?: string | undefined
  /** Why a pending member goes; absent: somebody else removed it. */
  ended?: 'declined' | 'expired'
}

/** State columns of a member that is not pending. */
export const NOT_PENDING = {
  ...{ pending_id: null, pending_until: null, pending_mail_at: null, pending_source: null },
  is_rejoining: 0,
} as const

type Standing = Pick<ListMemberRow, 'subscribed' | keyof typeof NOT_PENDING>

/** Mails by calls, per list and day: what a bulk upload with `confirm` may ask for. */
export const MAILS_PER_DAY_MAX = 10_000
/** The part of it that strangers may use, by the form. */
export const FORM_MAILS_PER_DAY_MAX = 1_000

/** Confirmation mails that the list may still ask for on the day of `at`. */
export function mailsLeft({ mailsDay, mailsCount }: List, at: number, max = MAILS_PER_DAY_MAX): number {
  return mailsDay === dayOf(at) ? Math.max(0, max - mailsCount) : max
}

/** Days since 1970, UTC. */
export const dayOf = (at: number) => Math.floor(at / DAY_MS)

interface Wanted {
  /** Undefined: as it is. */
  subscribed: boolean | undefined
  /** Whether it must confirm before it is subscribed. */
  confirm: boolean
}

/** The state of a member after a call. `mailedAt`: the last confirmation mail of the list to it; at most one is sent a day. */
export function standingOf(
  list: Pick<List, 'confirmDays'>,
  before: ListMemberRow | undefined,
  { subscribed, confirm }: Wanted,
  cause: Cause,
  mailedAt = Number.NEGATIVE_INFINITY,
): Standing {
  if (subscribed === undefined && before) return present(before)
  if (subscribed === false) return { subscribed: 0, ...NOT_PENDING }
  if (!confirm || before?.subscribed === 1) return { subscribed: 1, ...NOT_PENDING }
  const mailAt = Math.max(Math.floor(cause.at), mailedAt + DAY_MS)
  const times = { pending_until: mailAt + list.confirmDays * DAY_MS, pending_mail_at: mailAt }
  if (before && before.pending_id !== null) {
    const isMailed = before.pending_mail_at === null && mailedAt + DAY_MS <= cause.at
    return isMailed ? { ...present(before), ...times } : present(before)
  }
  return {
    ...{ subscribed: 0, pending_id: newId(cause.at), ...times, pending_source: cause.source },
    is_rejoining: before ? 1 : 0,
  }
}

const present = (row: ListMemberRow): Standing => ({
  subscribed: row.subscribed,
  pending_id: row.pending_id,
  pending_until: row.pending_until,
  pending_mail_at: row.pending_mail_at,
  pending_source: row.pending_source,
  is_rejoining: row.is_rejoining,
})

/** Whether the change asks for a mail. */
export const asksForMail = (before: ListMemberRow | undefined, after: ListMemberRow): boolean =>
  after.pending_mail_at !== null && after.pending_mail_at !== before?.pending_mail_at
