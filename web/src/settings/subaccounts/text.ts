/** Texts of the pages of subaccounts. */
import type { Feature, Subaccount } from './subaccounts-api.ts'

export const TEXT = {
  title: 'Subaccounts',
  lead: 'Each has its own domains, keys, users and statistics. Open one to set its limits, or act for it to see its pages.',
  add: 'Create a subaccount',
  create: 'Create',
  name: 'Name',
  namePlaceholder: 'Customer or department',
  created: (name: string) => `${name} created`,
  search: 'Find by name',
  state: 'State',
  allStates: 'Open and disabled',
  states: { enabled: 'Open only', disabled: 'Disabled only', closed: 'Closed ones too' },
  statuses: { open: 'Open', disabled: 'Disabled', closed: 'Closed' } satisfies Record<
    Subaccount['status'],
    string
  >,
  since: 'Created',
  none: 'No subaccounts',
  noneWhy: 'Make one for each customer or department whose mail is to be kept apart.',
  noneFound: 'No subaccount matches',
  noneFoundWhy: 'Clear the filters to see all.',
  act: 'Act for it',
  actOf: (name: string) => `Act for it: ${name}`,
  gone: 'There is no such subaccount',
  features: 'Features',
  featuresWhy: 'Switched off, the operations of a feature are refused.',
  featureNames: {
    sending: 'Sending',
    validations: 'Validation of single addresses',
    validations_bulk: 'Validation of lists',
    email_preview: 'Previews',
    inbox_placement: 'Inbox placement',
  } satisfies Record<Feature, string>,
  featureMeanings: {
    sending: 'Without it mail is refused, and what is queued is held',
    validations: 'Checks one address',
    validations_bulk: 'Checks lists of addresses',
    email_preview: 'Pictures of messages in mail programs',
    inbox_placement: 'Tests where mail ends up at the receiver',
  } satisfies Record<Feature, string>,
  on: (what: string) => `${what} is on`,
  off: (what: string) => `${what} is off`,
  disable: 'Disable',
  disableTitle: 'Disable the subaccount',
  disableWhy:
    'It cannot send, and its queued mail is held until it is enabled again. Its keys can still read.',
  reason: 'Reason',
  note: 'Note',
  disabledNow: (name: string) => `${name} is disabled`,
  disabledFor: 'Disabled',
  enable: 'Enable',
  enabledNow: (name: string) => `${name} may send again`,
  delete: 'Delete',
  deleteTitle: 'Delete this subaccount for good?',
  deleteWhy:
    'Its keys, logins, users and links stop at once. Its domains, mail, lists and statistics are deleted. This cannot be undone.',
  deleted: (name: string) => `${name} deleted`,
  closedWhy: 'This subaccount was deleted. Its name, dates and audit log remain.',
} as const

const count = (number: number) => number.toLocaleString('en')

export const STANDING_TEXT = {
  title: 'Good name',
  account: 'The account',
  states: {
    warned: (who: string) => `${who} has figures that are too high`,
    slowed: (who: string) => `${who} is slowed`,
    held: (who: string) => `${who} is held: its mail waits`,
  },
  until: 'It ends by itself on',
  release: 'Release',
  releaseOf: (who: string) => `Release: ${who}`,
  released: (who: string) => `${who} is released`,
  releaseTitle: 'Release it?',
  releaseWhy: 'What waits is sent at once, and its figures begin anew. Has the list been cleaned?',
  figures: (sent: number, bounced: number, complained: number, trapped: number) =>
    `${count(sent)} messages sent lately: ${count(bounced)} hard bounces, ${count(complained)} complaints, ${count(trapped)} to spam traps.`,
  budget: (used: number, limit: number) => `Today ${count(used)} of ${count(limit)} messages are used.`,
  policies: {
    off: 'It is not judged by these figures.',
    standard: 'It is judged by the policy standard.',
    strict: 'It is judged by the policy strict.',
    custom: 'It is judged by figures of your own.',
  },
} as const
