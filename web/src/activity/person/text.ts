import type { ConsentChange, StoreCount } from './person-api.ts'

export const TEXT = {
  lead: 'What was sent to this address, what came of it, and what is stored about it.',
  figures: 'What happened',
  nothingYet: 'Nothing that is still kept.',
  all: 'All events that are kept.',
  newest: (count: number) => `Of the newest ${count} events.`,
  events: 'Events',
  noEvents: 'No events of this address',
  noEventsWhy: 'Nothing was sent to it, or the events are older than what is kept.',
  columns: { event: 'Event', subject: 'Subject', detail: 'Detail', time: 'Time' },
  lists: 'Mailing lists',
  noLists: 'On no mailing list.',
  subscribed: 'subscribed',
  unsubscribed: 'unsubscribed',
  pending: 'not confirmed yet',
  suppressions: 'Suppressions',
  noSuppressions: 'Not suppressed for any domain.',
  noRights: 'Your role may not read suppressions.',
  ofDomain: (domain: string) => `for ${domain}`,
  until: 'until',
  consent: 'Consent',
  noConsent: 'Nothing is recorded.',
  consentColumns: { when: 'When', what: 'What', list: 'List or topic', source: 'How' },
  allMail: 'all mail',
  topic: (topic: string, place: string) => `${topic}, of ${place}`,
  export: 'Export',
  exportTitle: 'Everything about this address',
  exporting: 'It is collected. The window may be closed: the export goes on.',
  exported: 'An archive with everything that is stored about the address, mails included.',
  download: 'Download the archive',
  erase: 'Erase',
  eraseTitle: 'Erase this person',
  counting: 'What is stored is being counted; nothing is changed yet.',
  nothing: 'Nothing is stored about this address.',
  counted: 'This is what erasing does:',
  cannotUndo: 'This cannot be undone. Data of others stays as it is.',
  mustType: 'to confirm',
  erasing: 'It is being erased. The window may be closed: the work goes on.',
  erased: 'It is done:',
  report: 'Download the report',
  failed: 'It has failed',
  close: 'Close',
  cancel: 'Cancel',
  working: 'Working',
} as const

export const SUPPRESSION_LABELS: Readonly<Record<string, string>> = {
  bounces: 'Bounce',
  complaints: 'Complaint',
  unsubscribes: 'Unsubscribe',
  whitelists: 'Always allowed',
}

export const ACTION_LABELS: Readonly<Record<ConsentChange['action'], string>> = {
  added: 'Added',
  pending: 'Asked to confirm',
  confirmed: 'Confirmed',
  declined: 'Declined',
  expired: 'Did not confirm in time',
  unsubscribed: 'Unsubscribed',
  resubscribed: 'Subscribed again',
  removed: 'Removed',
  imported: 'Imported',
}

export const SOURCE_LABELS: Readonly<Record<ConsentChange['source'], string>> = {
  api: 'by the API',
  dashboard: 'in the dashboard',
  form: 'by the form',
  import: 'by an import',
  unsubscribe_link: 'by the link in a mail',
  one_click: 'by the button of the mail program',
  preference_page: 'on the preference page',
  mail: 'by mail',
}

/** One of a store, and several. */
const STORES: Readonly<Record<string, readonly [string, string]>> = {
  messages: ['message', 'messages'],
  deliveries: ['delivery', 'deliveries'],
  past_messages: ['fact about a message', 'facts about messages'],
  past_deliveries: ['fact about a delivery', 'facts about deliveries'],
  events: ['event', 'events'],
  transcripts: ['SMTP dialogue', 'SMTP dialogues'],
  suppressions: ['suppression', 'suppressions'],
  counted_bounces: ['counted bounce', 'counted bounces'],
  list_members: ['list membership', 'list memberships'],
  inbox: ['captured mail', 'captured mails'],
  validation_addresses: ['validated address', 'validated addresses'],
  tracking_links: ['tracked link', 'tracked links'],
  audit: ['row of the audit log', 'rows of the audit log'],
  consent_trail: ['change of consent', 'changes of consent'],
  outgoing_posts: ['queued webhook', 'queued webhooks'],
  webhook_attempts: ['attempt of a webhook', 'attempts of webhooks'],
}

const FATES = [
  ['exported', 'in the archive'],
  ['erased', 'removed'],
  ['pseudonymised', 'kept with a pseudonym for the address'],
  ['kept', 'kept, see the report'],
] as const

/** What a store has and what becomes of it, such as "3 messages: 2 removed, 1 kept with a pseudonym for the address". */
export function countWords(store: string, count: StoreCount): string {
  const plain = store.replaceAll('_', ' ')
  const [one, many] = STORES[store] ?? [`entry of ${plain}`, `entries of ${plain}`]
  const fates = FATES.flatMap(([fate, words]) => {
    const n = count[fate] ?? 0
    return n === 0 ? [] : [n === count.found ? words : `${n.toLocaleString('en')} ${words}`]
  })
  const found = `${count.found.toLocaleString('en')} ${count.found === 1 ? one : many}`
  return fates.length === 0 ? found : `${found}: ${fates.join(', ')}`
}
