/** Standings, policies and spam traps, as the API shows them (standing.md). */
import {
  flag,
  integer,
  list,
  named,
  number,
  object,
  oneOf,
  optional,
  rfc3339,
  text,
} from '../../base/shape.ts'
import { CODES } from './judge.ts'
import { POLICIES } from './policy.ts'

const FIGURES = named('SendingFigures', 'What was sent, and what came of it', {
  sent: integer('Messages delivered or refused for good'),
  bounced: integer('Hard bounces'),
  unknown_users: integer('Those of them that say that there is no such user'),
  complained: integer('Complaints'),
  spam_trap_hits: integer('Messages delivered to spam traps'),
  checked: integer('Messages that the outbound check has judged'),
  bad_content: integer('Those of them with bad content'),
})

const LIMITS = named('StandingLimits', 'Figures that stop a sender; 0: not judged', {
  bounce_percent: number('Hard bounces', { unit: 'percent' }),
  unknown_user_percent: number('No such user', { unit: 'percent' }),
  complaint_percent: number('Complaints', { unit: 'percent' }),
  bad_content_percent: number('Bad content, of what the outbound check has judged', { unit: 'percent' }),
  spam_trap_hits: integer('Messages delivered to spam traps'),
  window_hours: integer('Time that is judged', { unit: 'hours' }),
  min_messages: integer('Percentages of fewer messages are not judged'),
  slow_percent: integer('What is left of the rate of a slowed sender', { unit: 'percent' }),
  hold_hours: integer('How long a sender stays slowed or held', { unit: 'hours' }),
})

const POLICY_NAME = oneOf('Which figures stop a sender', POLICIES)

export const GENERAL_POLICY = named('StandingPolicy', 'The policy of all accounts without one of their own', {
  policy: POLICY_NAME,
  limits: optional(LIMITS),
  new_account_daily: integer('Messages on the first day of a new subaccount; 0: no budget'),
})

export const ACCOUNT_POLICY = named('AccountStandingPolicy', 'The policy of an account', {
  policy: POLICY_NAME,
  limits: optional(LIMITS),
  is_own: flag('It was set for this account'),
})

export const STANDING = named('Standing', 'An account or a domain that is stopped', {
  account_id: text('Its account'),
  domain: optional(text('The domain; absent: the account as a whole')),
  state: oneOf('warned: it goes on as before', ['warned', 'slowed', 'held']),
  code: oneOf('Which figure is too high', CODES),
  reason: text('The same in words, with the figure and its limit'),
  figures: FIGURES,
  messages_per_minute: optional(integer('What it may send while it is slowed')),
  since: rfc3339('When it was stopped'),
  until: rfc3339('When it is released by itself'),
  told: list('Addresses of admins that a mail has gone to', text('Address')),
})

export const STANDINGS = object('Who is stopped, and by which policy senders are judged', {
  policy: GENERAL_POLICY,
  items: list('Stopped accounts and domains, the latest first', STANDING),
})

export const ACCOUNT_STANDING = named('AccountStanding', 'How an account stands', {
  account_id: text('The account'),
  state: oneOf('Of the account as a whole', ['good', 'warned', 'slowed', 'held']),
  policy: ACCOUNT_POLICY,
  figures: FIGURES,
  stopped: list('The account, and domains of it, that are stopped', STANDING),
  daily_budget: optional(
    object('What it may send today (UTC); absent: no limit', {
      limit: integer('Messages'),
      used: integer('Messages sent'),
    }),
  ),
})

export const TRAP = named('SpamTrap', 'An address that only senders with a bad list write to', {
  address: text('In lower case'),
  note: text('Free text'),
  created_at: rfc3339('When it was named'),
})
export const TRAPS = object('All of them', { items: list('By address', TRAP) })

export const DOMAIN_DISABLED = object('As it is now', {
  name: text('The domain'),
  is_disabled: flag('Nothing is sent, and no mail is accepted'),
})
