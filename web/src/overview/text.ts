import type { CountId } from './overview-search.ts'

export const TEXT = {
  title: 'Overview',
  lead: 'The last 30 days beside the 30 before, and what needs a hand now.',
  figures: 'Last 30 days',
  today: 'today',
  inSpan: 'in 30 days',
  before: '30 days before',
  last: 'Last 30 days',
  cannotRead: 'The figures cannot be read',
  noFigures: 'No mail in the last 60 days',
  noFiguresWhy: 'Curves begin with the first message that your application sends.',

  worst: 'Providers, last 7 days',
  worstOf: (provider: string, share: string) => `${provider} refuses ${share} of your mail`,
  noneWorse: 'No provider refuses more than 2% of your mail.',
  nothingSent: 'No mail was sent in the last 7 days.',
  mostly: 'Most often',
  meaning: 'What it means',
  seeFailures: 'See its bounces',
  seeSample: 'See an example',
  provider: 'Provider',
  delivered: 'Delivered',
  failedColumn: 'Refused',
  deferred: 'Deferred',

  hand: 'Needs attention',
  deferredMeans: 'The provider said “not now”: the mail is tried again by itself.',
  failedMeans: 'Given up: the provider refused it for good, or for too long.',
  allWell: 'Nothing needs a hand now.',
  records: (name: string) => `DNS records of ${name} are missing or wrong`,
  disabled: (name: string) => `${name} is disabled and cannot send`,
  standing: {
    warned: (domain = 'This account') => `${domain} sends too much bad mail`,
    slowed: (domain = 'This account') => `${domain} is slowed for what it sends`,
    held: (domain = 'This account') => `${domain} is held for what it sends: its mail waits`,
  },
  openRecords: 'Show the records',
  open: 'Open',
  moreDomains: (count: number) => `${count} more domains wait for their records`,
  showDomains: 'Show the domains',
  webhook: (url: string, count: number) =>
    `${url} did not take ${count === 1 ? 'an event' : `${count} events`}`,
  webhookWhy: (said: string) => `It last answered: ${said}`,
  replay: 'Send them again',
  replayed: (count: number) => `${count === 1 ? '1 event is' : `${count} events are`} being sent again`,
  waiting: (count: number, where: string, source: string) =>
    `${count === 1 ? '1 message waits' : `${count.toLocaleString('en')} messages wait`} for ${where}${source === 'any' ? '' : ` from ${source}`}`,
  since: 'due since',
  stopped: (site: string) => `All mail to ${site} is stopped`,
  stoppedWaiting: (count: number) =>
    count === 1 ? '1 message waits' : `${count.toLocaleString('en')} messages wait`,
  retry: 'Retry now',
  retried: (count: number) => `${count === 1 ? '1 delivery is' : `${count} deliveries are`} tried again now`,
  since_: 'since',

  start: 'Getting started',
  done: (count: number, of: number) => `${count} of ${of} done`,
  hide: 'Hide',
  steps: {
    domain: { title: 'Add your domain', why: 'A name of its own for sending, such as mail.example.com.' },
    records: { title: 'Publish its DNS records', why: 'Receivers trust mail that SPF and DKIM prove.' },
    mail: { title: 'Send the first mail', why: 'From your application, or with this command:' },
    webhook: { title: 'Add a webhook', why: 'Your application hears of deliveries, bounces and clicks.' },
  },
  addDomain: 'Add a domain',
  addWebhook: 'Add a webhook',
  isDone: 'done',
  isOpen: 'to do',
} as const

export const COUNT_LABELS: Record<CountId, string> = {
  accepted: 'Accepted',
  delivered: 'Delivered',
  bounced: 'Bounced',
  complained: 'Complaints',
  opened: 'Opened',
  clicked: 'Clicked',
}

/** What the share under a count is a share of. */
export const SHARE_LABELS: Partial<Record<CountId, string>> = {
  delivered: 'of outcomes',
  bounced: 'of outcomes',
  complained: 'of delivered',
  opened: 'of delivered',
  clicked: 'of delivered',
}
