/** Answers of the operation on one recipient (own-operations.md section 16). */
import { flag, list, named, nullable, oneOf, rfc3339, text } from '../../base/shape.ts'

const SUPPRESSION = named('RecipientSuppression', 'A record of an address in a list of a domain', {
  domain: text('Sending domain'),
  kind: oneOf('The list', ['bounces', 'complaints', 'unsubscribes', 'whitelists']),
  code: text('SMTP code of a bounce; else empty'),
  detail: text('Error text of a bounce, reason of an entry of the allowlist; else empty'),
  tags: list('Tags that an unsubscribe is for; * is all mail', text('Tag')),
  created_at: rfc3339('When it was added'),
  expires_at: nullable(rfc3339('When it ends; null: never')),
})

const MEMBERSHIP = named('RecipientMembership', 'A mailing list that an address is on', {
  address: text('Address of the list'),
  title: text('Name of the list; may be empty'),
  member_name: text('Name of the member; may be empty'),
  subscribed: flag('The member gets copies'),
  pending: flag('It was asked and has not confirmed yet'),
})

export const RECIPIENT = named('Recipient', 'What the lists of an account say of an address', {
  address: text('The address, in lower case'),
  suppressions: list('Suppressions and entries of the allowlist, of all domains; up to 1,000', SUPPRESSION),
  lists: list('Mailing lists; up to 1,000', MEMBERSHIP),
})
