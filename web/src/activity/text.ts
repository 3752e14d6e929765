import type { Field, Kind, Span } from './activity-search.ts'

export const TEXT = {
  title: 'Activity',
  lead: 'Everything that happened to your mail, newest first. Open a row to see why.',
  search: 'Search activity',
  placeholder: 'Recipient, subject or message id',
  by: 'Search in',
  byForm: 'In: as typed',
  event: 'Event',
  anyEvent: 'All events',
  span: 'Period',
  live: 'Live',
  paused: 'Paused',
  pause: 'Pause the list',
  resume: 'Update the list by itself',
  notLive: 'This search reads many events, so it does not repeat itself.',
  refresh: 'Search again',
  events: 'Events',
  people: 'By whom',
  peopleAndMachines: 'People and machines',
  peopleOnly: 'People only',
  empty: (span: string) => `No mail in the ${span.toLowerCase()}`,
  emptyWhy: 'Events appear here seconds after your application sends its first message.',
  nothing: 'Nothing matches',
  nothingWhy: 'Try a longer period, a part of the address, or another field.',
  more: 'Only a part was searched so far. Next goes on.',
  longer: 'Search 30 days',
  noRecipient: 'no recipient',
  noSubject: '(no subject)',
  columns: { event: 'Event', recipient: 'Recipient', subject: 'Subject', detail: 'Why', time: 'Time' },
} as const

export const FIELD_LABELS: Record<Field, string> = {
  recipient: 'In: recipient',
  from: 'In: sender',
  subject: 'In: subject',
  tag: 'In: tag',
  message_id: 'In: message id',
  domain: 'In: domain',
}

export const KIND_LABELS: Record<Kind, string> = {
  accepted: 'Accepted',
  delivered: 'Delivered',
  deferred: 'Deferred',
  bounced: 'Bounced',
  suppressed: 'Suppressed',
  opened: 'Opened',
  clicked: 'Clicked',
  unsubscribed: 'Unsubscribed',
  complained: 'Complained',
  rejected: 'Rejected',
  stored: 'Stored',
}

export const SPAN_LABELS: Record<Span, string> = {
  '1h': 'Last hour',
  '24h': 'Last 24 hours',
  '7d': 'Last 7 days',
  '30d': 'Last 30 days',
}

/** By `bot` of an event (docs/api/tracking.md). */
export const MACHINES: Readonly<Record<string, string>> = {
  apple: 'Apple’s proxy',
  gmail: 'Gmail’s proxy',
  generic: 'A machine',
}

export const MACHINE_WHY: Readonly<Record<string, string>> = {
  apple: 'Apple fetches images in advance, whether somebody reads the message or not.',
  gmail: 'Google fetches images for its readers, so neither place nor program are those of the reader.',
  generic: 'A program that scans links, known by its name or because it came too fast for a reader.',
}

export const MESSAGE_TEXT = {
  back: 'Activity',
  unknown: 'No events of this message',
  unknownWhy: 'The id is another, or the events are older than what is kept.',
  recipients: 'Recipients',
  content: 'Content',
  from: 'From',
  to: 'To',
  sent: 'Accepted',
  tags: 'Tags',
  domain: 'Domain',
  ignored: 'Parameters that were not understood',
  id: 'Message id',
  by: (method: string) => `by ${method}`,
  resend: 'Send again',
  resendTitle: 'Send this message again',
  resendTo: 'To',
  resendHelp: 'One address, or several with commas. They get the same message, with the same id.',
  resent: (to: string) => `Sent again to ${to}`,
  close: 'Close',
  retry: 'Retry now',
  retried: (count: number) =>
    count === 1 ? '1 delivery is tried again now' : `${count} deliveries are tried again now`,
  cancel: 'Cancel',
  cancelTitle: 'Cancel what has not been delivered?',
  cancelWhy: 'Recipients that have the message keep it; the others will not get it. This cannot be undone.',
  cancelled: 'Cancelled',
  pause: 'Pause',
  paused: 'Paused',
  resume: 'Resume',
  resumed: 'Resumed',
  nothingChanged: 'Nothing was waiting any more',
  why: 'Why',
  reply: 'Reply',
  meaning: 'What it means',
  next: 'Next attempt',
  until: 'Tried until',
  attempts: 'Attempts',
  timeline: 'What happened',
  noEvents: 'Its events are older than what is kept.',
  dialogue: 'SMTP dialogue',
  noDialogue:
    'No dialogue was kept. SENDWRIGHT_TRANSCRIPTS decides which are: those of failures, all, or none.',
  attempt: (n: number) => `Attempt ${n}`,
  failed: 'cannot be read',
  text: 'Text',
  html: 'HTML',
  headers: 'Headers',
  source: 'Source',
  files: 'Files',
  gone: 'The content is no longer stored.',
  noText: 'The message has no text part.',
  tooLarge: 'The HTML is too large to show here. Look at the source.',
  showContent: 'Show the content',
} as const

export const STATE_LABELS: Record<string, { label: string; color: string }> = {
  scheduled: { label: 'Scheduled', color: 'gray' },
  queued: { label: 'Waiting', color: 'orange' },
  sending: { label: 'Sending', color: 'petrol' },
  delivered: { label: 'Delivered', color: 'teal' },
  bounced: { label: 'Bounced', color: 'red' },
  expired: { label: 'Given up', color: 'red' },
  suppressed: { label: 'Suppressed', color: 'red' },
  rejected: { label: 'Rejected', color: 'red' },
  cancelled: { label: 'Cancelled', color: 'gray' },
}
