/** Answers of the operations on consent (consent.md). */
import { LANGUAGES } from '../../base/languages.ts'
import { flag, integer, list, named, object, oneOf, optional, rfc3339, text } from '../../base/shape.ts'
import { CONSENT_ACTIONS, CONSENT_SOURCES } from '../lists/trail.ts'

export const LIST_CONSENT = named('ListConsent', 'How people come onto a mailing list', {
  title: text('What people call the list; empty: it is no topic of the preference page'),
  language: oneOf('Language of the confirmation mail', LANGUAGES),
  confirm: flag('Added members are asked first, unless the call says otherwise'),
  form: flag('Anybody may ask for a confirmation mail by the hosted form'),
  form_url: optional(text('Address of the form; absent: it is off')),
  form_html: optional(text('The form as HTML for other sites; absent: it is off')),
  redirect_url: optional(text('Where the form leads; absent: to a page of the service')),
  template: optional(text('Stored template of the confirmation mail; absent: the built-in text')),
  page_template: optional(text("Stored template of the list's pages; absent: the built-in pages")),
  expire_days: integer('Days for which a member may confirm'),
})

const CONSENT_CHANGE = named('ConsentChange', 'How an address came onto a list, or left it', {
  list: text('Address of the list, as it was; empty: it is about a topic of a domain'),
  list_title: optional(text('Title of the list; absent: it has none, or is gone')),
  domain: text('Domain of the list or topic'),
  topic: optional(text('Tag that the person left or came back to; `*`: all mail of the domain')),
  action: oneOf('What happened', CONSENT_ACTIONS),
  source: oneOf('By which way', CONSENT_SOURCES),
  at: rfc3339('When'),
  ip: optional(text('Address of the person, for what the person did')),
  user_agent: optional(text('Browser or program of the person')),
  by: optional(text('Id of the user or key, for what the account did')),
})
export const CONSENT_TRAIL = object('The last 100 changes', { items: list('Newest first', CONSENT_CHANGE) })
