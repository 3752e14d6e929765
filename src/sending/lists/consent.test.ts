/** The state of members after calls, and what the consent trail says of it: tables. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DAY_MS } from '../../base/time/durations.ts'
import type { ListMemberRow } from '../../platform/store/schema.ts'
import { asksForMail, type Cause, NOT_PENDING, standingOf } from './consent.ts'
import { actionOf } from './trail.ts'

const AT = Date.UTC(2026, 5, 1, 12)
const CAUSE: Cause = { source: 'api', at: AT }
const row = (more: Partial<ListMemberRow>): ListMemberRow => ({
  ...{ list_id: 'l', address_key: 'a@b.example', address: 'a@b.example', name: '', vars_json: '{}' },
  ...{ subscribed: 1, by_link: 0, ...NOT_PENDING, ...more },
})
const SUBSCRIBED = row({})
const LEFT = row({ subscribed: 0 })
const PENDING = row({ subscribed: 0, pending_id: 'p', pending_until: AT + DAY_MS, pending_source: 'form' })

test('who is asked, who stays, and when the mail is due', () => {
  for (const [what, before, subscribed, confirm, mailedAt, expected] of [
    ['new, asked', undefined, undefined, true, undefined, 'pending at 0'],
    ['new, not asked', undefined, undefined, false, undefined, 'subscribed'],
    ['new, as unsubscribed', undefined, false, true, undefined, 'unsubscribed'],
    ['subscribed, asked', SUBSCRIBED, true, true, undefined, 'subscribed'],
    ['subscribed, untouched', SUBSCRIBED, undefined, true, undefined, 'subscribed'],
    ['left, asked', LEFT, true, true, undefined, 'pending at 0'],
    ['left, untouched', LEFT, undefined, true, undefined, 'unsubscribed'],
    ['mailed an hour ago', undefined, true, true, AT - DAY_MS / 24, `pending at ${(DAY_MS * 23) / 24}`],
    ['pending, untouched', PENDING, undefined, false, undefined, 'pending'],
    ['pending, asked on the same day', PENDING, true, true, AT - 1, 'pending'],
    ['pending, asked a day later', PENDING, true, true, AT - DAY_MS, 'pending at 0'],
    ['pending, by the account', PENDING, true, false, undefined, 'subscribed'],
    ['pending, refused by the account', PENDING, false, true, undefined, 'unsubscribed'],
  ] as const) {
    const after = {
      ...SUBSCRIBED,
      ...standingOf({ confirmDays: 7 }, before, { subscribed, confirm }, CAUSE, mailedAt),
    }
    const due = after.pending_mail_at === null ? '' : ` at ${after.pending_mail_at - AT}`
    const state =
      after.pending_id !== null ? `pending${due}` : after.subscribed === 1 ? 'subscribed' : 'unsubscribed'
    assert.equal(state, expected, what)
    assert.equal(asksForMail(before, after), due !== '', what)
    if (due !== '') assert.equal(after.pending_until, (after.pending_mail_at ?? 0) + 7 * DAY_MS, what)
  }
})

test('a change of a member is one action, and a change of nothing none', () => {
  for (const [before, after, source, expected] of [
    [undefined, SUBSCRIBED, 'api', 'added'],
    [undefined, SUBSCRIBED, 'import', 'imported'],
    [undefined, PENDING, 'form', 'pending'],
    [undefined, LEFT, 'import', 'unsubscribed'],
    [PENDING, SUBSCRIBED, 'mail', 'confirmed'],
    [PENDING, SUBSCRIBED, 'dashboard', 'added'],
    [PENDING, SUBSCRIBED, 'import', 'imported'],
    [PENDING, undefined, 'api', 'removed'],
    [SUBSCRIBED, LEFT, 'one_click', 'unsubscribed'],
    [LEFT, SUBSCRIBED, 'api', 'resubscribed'],
    [LEFT, PENDING, 'form', 'pending'],
    [SUBSCRIBED, undefined, 'dashboard', 'removed'],
    [SUBSCRIBED, row({ name: 'New' }), 'api', null],
    [PENDING, { ...PENDING, pending_mail_at: AT }, 'form', null],
  ] as const)
    assert.equal(actionOf(before, after, { source }), expected)
  for (const ended of ['declined', 'expired'] as const) {
    assert.equal(actionOf(PENDING, undefined, { source: 'mail', ended }), ended)
    assert.equal(actionOf(PENDING, LEFT, { source: 'mail', ended }), ended)
  }
})
