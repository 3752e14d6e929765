/**
 * How many confirmation mails strangers may cause by the forms of lists in a day: to one mailbox, by all lists of one account,
 * and by these to one domain. Counted in the transaction that asks for the mail, so that calls at once count too.
 */

import { listOf } from '../../platform/store/lists.ts'
import { StaleWrite, type Statement, type Store } from '../../platform/store/store.ts'
import { dayOf } from '../lists/consent.ts'
import type { ReadAddress } from '../lists/list.ts'

/** By forms of all accounts. */
const PER_MAILBOX_MAX = 5
export const PER_ACCOUNT_MAX = 3_000
/** Below what a list may ask for in all: half of a list's people have the same large provider. */
export const PER_RECIPIENT_DOMAIN_MAX = 500

export type FormLimits = ReturnType<typeof createFormLimits>

/** @param digest keyed, so that no table names who was asked */
export function createFormLimits(store: Store, digest: (text: string) => string) {
  return {
    /** Statements that count one mail; null: a limit is reached. */
    async count(accountId: string, { key, domain }: ReadAddress, at: number) {
      const limits: [subject: string, max: number][] = [
        [digest(`mailbox ${mailboxOf(key)}`), PER_MAILBOX_MAX],
        [digest(`domain ${accountId} ${domain}`), PER_RECIPIENT_DOMAIN_MAX],
        [digest(`account ${accountId}`), PER_ACCOUNT_MAX],
      ]
      const day = dayOf(at)
      const subjects = listOf(
        store.kind,
        limits.map(([subject]) => subject),
      )
      const rows = await store.read({
        sql: `SELECT subject, mails FROM form_mails WHERE day = ? AND subject IN ${subjects.sql}`,
        values: [day, ...subjects.values],
      })
      const used = new Map(rows.map(({ subject, mails }) => [subject, Number(mails)]))
      if (limits.some(([subject, max]) => (used.get(subject) ?? 0) >= max)) return null
      return limits.map(([subject, max]) => counting(subject, day, max))
    },
  }
}

/** Rolls its unit back at the limit. */
const counting = (subject: string, day: number, max: number): Statement => ({
  sql: `INSERT INTO form_mails (subject, day, mails) VALUES (?, ?, 1) ON CONFLICT (subject) DO UPDATE
    SET mails = CASE WHEN form_mails.day = excluded.day THEN form_mails.mails + 1 ELSE 1 END, day = excluded.day
    WHERE form_mails.day <> excluded.day OR form_mails.mails < ${max}`,
  values: [subject, day],
  expectRows: 1,
})

/**
 * Address keys that many providers deliver to one mailbox have one: without what follows a `+` (RFC 5233 §1), and without
 * dots in the local part.
 */
export function mailboxOf(key: string): string {
  const at = key.lastIndexOf('@')
  const local = key.slice(0, at)
  const plus = local.indexOf('+')
  return (plus > 0 ? local.slice(0, plus) : local).replaceAll('.', '') + key.slice(at)
}

export const isLimit = (error: unknown, counts: readonly Statement[]): boolean =>
  error instanceof StaleWrite && counts.includes(error.statement)
