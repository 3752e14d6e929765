import type { UserRole } from '../../../src/platform/http/rights/rights.ts'
import type { KeyRole, SystemCheck } from './settings-api.ts'
import type { AuditFilter } from './settings-search.ts'

const ROLE_MEANINGS: Record<UserRole, string> = {
  admin: 'May do everything',
  developer: 'Everything except keys, credentials and the account',
  support: 'Reads all, changes suppressions and lists',
  basic: 'Reads',
  billing: 'Reads, and changes message limits',
}

export const TEXT = {
  title: 'Settings',
  leads: {
    '/settings/keys': 'What programs sign in with: create and delete',
    '/settings/users': 'Who may sign in here, and with which rights',
    '/settings/subaccounts': 'Accounts within this one: create, disable, delete, act for one',
    '/settings/limits': 'Messages a month, and calls in a time',
    '/settings/addresses': 'Where keys and SMTP logins work from',
    '/settings/alerts': 'What is wrong now, alerts on rates, and where notices go',
    '/settings/audit': 'Who changed what, when and from where',
    '/settings/system': 'Checks, space and its forecast, periodic jobs',
  } as Readonly<Record<string, string>>,
  nothingAllowed: 'Your role has no settings',
  nothingAllowedWhy: 'An admin of the account can change that on the page of users.',
} as const

export const KEY_TEXT = {
  title: 'API keys',
  lead: 'A program signs in with a key. The secret of a key is shown once, when it is created.',
  reference: 'Code that calls the API',
  add: 'Create a key',
  description: 'What is it for',
  descriptionPlaceholder: 'Shop, production',
  role: 'Role',
  roles: {
    ...ROLE_MEANINGS,
    sending: 'Sends for one domain, nothing else',
  } satisfies Record<KeyRole, string> & Record<UserRole, string>,
  domain: 'Domain',
  ends: 'Ends',
  lifetimes: [
    ['', 'never'],
    ['2592000', 'in 30 days'],
    ['7776000', 'in 90 days'],
    ['31536000', 'in a year'],
  ] as const,
  create: 'Create the key',
  createdTitle: 'The key',
  createdWhy: 'Copy it now: it is not shown again.',
  secret: 'the secret',
  done: 'I have copied it',
  key: 'Key',
  created: 'Created',
  expired: 'Ended',
  never: 'never',
  remove: 'Delete',
  removeOf: (name: string) => `Delete the key ${name}`,
  removeTitle: 'Delete this key?',
  removeWhy: (name: string) =>
    `Programs that use ${name} are refused within seconds. A deleted key cannot be brought back.`,
  removed: 'Key deleted',
  unnamed: 'without a description',
  none: 'No API key',
  noneWhy: 'Create one for each program, so that one of them can be replaced without the others.',
} as const

export const USER_TEXT = {
  title: 'Users',
  lead: 'People who sign in to these pages. An invitation is a mail with a link that works for 7 days.',
  add: 'Invite a user',
  email: 'Email address',
  name: 'Name',
  role: 'Role',
  roleOf: (email: string) => `Role of ${email}`,
  roles: ROLE_MEANINGS,
  invite: 'Send the invitation',
  invited: (email: string) => `Invitation sent to ${email}`,
  again: 'Invite again',
  againOf: (email: string) => `Invite again: ${email}`,
  roleSet: (email: string, role: string) => `${email} is ${role} now`,
  user: 'User',
  state: 'State',
  states: { invited: 'Invited', active: 'Active', disabled: 'Disabled', master: 'Owner' },
  secondFactor: 'Second factor',
  reset: 'Reset second factor',
  resetOf: (email: string) => `Reset second factor of ${email}`,
  resetTitle: 'Remove the second factor?',
  resetWhy: (email: string) =>
    `For somebody who has lost it: authenticator app, passkeys and recovery codes of ${email} are removed. The password alone signs in until a new one is set up.`,
  resetDone: (email: string) => `${email} has no second factor now`,
  yes: 'yes',
  no: 'no',
  remove: 'Remove',
  removeOf: (email: string) => `Remove ${email}`,
  removeTitle: 'Remove this user?',
  removeWhy: (email: string) =>
    `${email} is signed out and cannot sign in any more. A new invitation is the only way back.`,
  removed: (email: string) => `${email} removed`,
  none: 'No users',
  noneWhy:
    'You are signed in with a key. Invite yourself and your colleagues, each with the rights they need.',
} as const

export const AUDIT_TEXT = {
  title: 'Audit log',
  lead: 'Every change of the account and every sign-in, newest first.',
  filters: {
    subject: 'What was changed, such as a domain',
    action: 'Action, such as key.create',
    user_id: 'User id',
    key_id: 'Key id',
    remote_address: 'Address',
  } satisfies Record<AuditFilter, string>,
  when: 'When',
  action: 'Action',
  subject: 'Of',
  by: 'By',
  from: 'From',
  result: 'Result',
  detail: 'Details',
  unfinished: 'did not finish',
  byUser: 'a former user',
  byKey: 'a key',
  byDeletedKey: 'a deleted key',
  keyOf: (role: string) => `key, ${role}`,
  unnamed: 'without a description',
  byCommand: 'a command on the machine',
  bySystem: 'the machine itself',
  none: 'Nothing matches these filters',
  noneWhy: 'Texts are compared whole: an action such as domain.create, a subject such as mail.example.com.',
  noneAtAll: 'Nothing has been changed yet',
} as const

export const SYSTEM_TEXT = {
  title: 'System',
  lead: (version: string, mode: string, database: string) =>
    `Version ${version}, delivery mode ${mode}, database ${database}`,
  running: 'running since',
  checks: 'Checks',
  again: 'Check again',
  states: { ok: 'In order', warning: 'Warning', failed: 'Failed', skipped: 'Not checked' } satisfies Record<
    SystemCheck['state'],
    string
  >,
  checkNames: {
    disk: 'Free space',
    files: 'Rights of files',
    database: 'Database',
    nodes: 'Nodes',
    clock: 'Clock',
    'open-files': 'Open files',
    resolver: 'DNS resolver',
    'tls-certificate': 'Certificate of the SMTP port',
    'tracking-certificates': 'Certificates of tracking hosts',
    'own-records': 'DNS records of the service',
    'return-paths': 'Ways back for bounces',
    relays: 'Relays',
    'outbound-port-25': 'Outbound port 25',
    'public-address': 'Address that receivers see',
    'egress-proxies': 'Proxies that mail leaves through',
    'reverse-names': 'Reverse names of addresses',
    ipv6: 'IPv6',
    'helo-names': 'Names in EHLO',
    'sender-policy': 'SPF of the service',
    blocklists: 'Blocklists',
    scanners: 'Content scanners',
    refusals: 'Refusals',
  } as Readonly<Record<string, string>>,
  noChecks: 'No check has run',
  space: 'Space',
  notMeasured: 'Not measured yet',
  notMeasuredWhy: 'The space is measured every hour; the first time soon after the start.',
  free: 'Free',
  reserved: 'Kept free',
  growth: 'Growth a day',
  full: 'Full',
  notFull: 'not within ten years',
  measured: 'Measured',
  unknown: '–',
  kind: 'Kind',
  size: 'Size',
  rows: 'Rows',
  kept: 'Kept',
  days: (days: number) => `${days.toLocaleString('en')} days`,
  limit: (size: string) => `at most ${size}`,
  jobs: 'Periodic jobs',
  job: 'Job',
  every: 'Every',
  lastRun: 'Last run',
  state: 'State',
  runsNow: 'Running',
  waits: 'In order',
  neverRun: 'never',
} as const

/** 90 as "90 s", 3600 as "1 h". */
export function spanWords(seconds: number): string {
  if (seconds >= 86_400 && seconds % 86_400 === 0) return `${seconds / 86_400} d`
  if (seconds >= 3_600 && seconds % 3_600 === 0) return `${seconds / 3_600} h`
  if (seconds >= 60 && seconds % 60 === 0) return `${seconds / 60} min`
  return `${seconds} s`
}
