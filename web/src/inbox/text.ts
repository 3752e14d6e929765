/** Texts of the checks of captured mail. */

export const CHECK_TEXT = {
  authentication: 'SPF, DKIM and DMARC',
  authenticationWhy:
    'What a receiver would find for the sending domain, by its records in DNS as they were last looked up.',
  programs: 'Mail programs',
  cannotCheck: 'It cannot be checked',
  checking: 'Checking',
  score: (score: number) => `${score} % supported`,
  programsWhy: (features: number, clients: number, date: string) =>
    `${features} features of HTML and CSS that are used, in ${clients} mail programs, by caniemail.com of ${date}.`,
  incomplete: 'The HTML is too long or too deep: only its beginning was read.',
  noFindings: 'All programs that were tested show what is used.',
  notIn: (unsupported: number, partly: number, clients: number) => {
    const counts = [unsupported > 0 && `not in ${unsupported}`, partly > 0 && `partly in ${partly}`]
    return `${counts.filter(Boolean).join(', ')} of ${clients}`
  },
  unsupportedIn: 'Not shown by',
  partlyIn: 'Partly by',
  more: 'Details at caniemail.com',
} as const

export const LINK_TEXT = {
  check: 'Check links and images',
  again: 'Check again',
  why: 'The service calls each address, without credentials. A link that unsubscribes or confirms by itself does so.',
  leftOut: (count: number) => `${count} further were not called.`,
  failed: 'The links cannot be checked',
  image: 'Image',
  states: { ok: 'Works', failed: 'Broken', 'not called': 'Not called' },
  leadsTo: (redirects: readonly string[]) => `leads to ${redirects.join(', then ')}`,
} as const

export const TAGS_TEXT = {
  edit: 'Edit tags',
  title: 'Tags of this message',
  label: 'Tags, separated by commas',
  save: 'Save',
  tooMany: 'At most 20 tags, each of up to 128 characters',
} as const

export const RELEASE_TEXT = {
  open: 'Release to real addresses',
  title: 'Release this message?',
  leaves: (subject: string, size: string, from: string) =>
    `“${subject || '(no subject)'}”, ${size}, leaves this service as it was captured, from ${from || '<>'}, with the links that it has. It cannot be called back.`,
  to: 'Addresses',
  toHow: 'Up to 10, separated by commas, blanks or lines',
  tooMany: 'At most 10 addresses',
  submitNone: 'Release',
  submit: (count: number) => (count === 1 ? 'Release to 1 address' : `Release to ${count} addresses`),
} as const
