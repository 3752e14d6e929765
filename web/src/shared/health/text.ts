/** Texts of the pages of health. */

export const TEXT = {
  title: 'Health',
  lead: 'How the mail of the last 30 days fared, and what to do next, what would bring the most first.',
  leadOf: (name: string) =>
    `How the mail of ${name} fares, and what to do next, what would bring the most first.`,
  overview: 'Overview',
  score: 'Score of 30 days',
  noMail: 'No mail in the last 30 days',
  delivered: (count: string) => `${count} delivered`,
  of100: 'of 100',
  next: 'What to do next',
  nothing: 'Nothing to do',
  nothingWhy: 'Nothing that was looked at needs a change.',
  partly: 'Not everything could be asked:',
  levels: { now: 'Now', soon: 'Soon', better: 'Better' },
  open: 'Open',
  areas: 'What was looked at',
  domains: 'Domains',
  domain: 'Domain',
  points: 'Score',
  blocklists: 'Blocklists',
  states: { healthy: 'on none', listed: 'listed', unknown: 'not known yet' },
  loading: 'Loading',
} as const

export const AREA_TEXT = {
  authentication: 'SPF, DKIM and DMARC',
  bounces: 'Bounces',
  complaints: 'Complaints',
  blocklists: 'Blocklists',
  rules: 'Rules of receivers',
  standing: 'Standing of the account',
  fine: 'All right',
  unknown: 'Not known',
  toDo: (count: number) => (count === 1 ? '1 step' : `${count} steps`),
} as const

export const STEP_TEXT = {
  points: (points: number) => `Costs ${points} ${points === 1 ? 'point' : 'points'} of the score.`,
  rates: {
    bounce_rate: {
      title: 'Fewer bounces',
      why: 'Look at why mail fails, and stop sending to addresses that do not take it.',
    },
    complaint_rate: {
      title: 'Fewer complaints',
      why: 'Send to those who asked for it only, and make unsubscribing easier than complaining.',
    },
    trap_rate: {
      title: 'No mail to spam traps',
      why: 'Validate the lists, and remove addresses that have not reacted for a year.',
    },
    full_mailbox_rate: {
      title: 'Fewer full mailboxes',
      why: 'Their owners have left them: pause addresses that are full again and again.',
    },
    bad_failure_rate: {
      title: 'Fewer addresses that do not exist',
      why: 'Validate addresses when they are entered, and lists before they are used.',
    },
  },
  rules: {
    spf: 'Mend the SPF record',
    dkim: 'Mend the DKIM record',
    dmarc: 'Publish a DMARC record',
    'spam-rate': 'Get the rate of complaints below the limit',
    'one-click-unsubscribe': 'Offer one-click unsubscribing',
    'reply-address': 'Let people reply',
    'list-hygiene': 'Remove addresses that do not exist',
    bimi: 'Show a logo (BIMI)',
  },
  listed: (domain: string, list: string) => `Get ${domain} off ${list}`,
  listedWhy: 'Receivers that ask this list refuse the mail or put it into spam.',
  standing: {
    warned: (domain: string | undefined) => `${domain ?? 'The account'} is near a limit of the service`,
    slowed: (domain: string | undefined) => `${domain ?? 'The account'} is slowed down`,
    held: (domain: string | undefined) => `Mail of ${domain ?? 'the account'} is held`,
  },
  reports: 'Find who sends without a signature',
  reportsWhy: (failed: number, messages: number) =>
    `By DMARC reports ${failed.toLocaleString('en')} of ${messages.toLocaleString('en')} messages in this name failed: a system of yours that is not set up, or somebody else.`,
  unverified: (domain: string) => `Verify ${domain}`,
  unverifiedWhy: 'Its records are missing in DNS, so nothing can be sent from it.',
} as const
