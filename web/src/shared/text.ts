/** Texts of the shared pieces. */
export const TEXT = {
  pageFault: 'This page cannot be shown',
  pageFaultWhy: 'It is a fault of the dashboard, not of the service: mail is accepted and sent as before.',
  pageFaultDetail: 'What happened',
  tryAgain: 'Try again',
  loading: 'Loading',
  previous: 'Previous',
  next: 'Next',
  first: 'First page',
  pages: 'Pages',
  undo: 'Undo',
  dismiss: 'Dismiss',
  cancel: 'Cancel',
  clearFilters: 'Clear filters',
  any: 'Any',
  notices: 'Notices',
  copied: (text: string) => `Copied ${text}`,
  cannotCopy: 'Cannot copy: select it',
  copyNumber: (value: string) => `Copy ${value}`,
  showTable: 'Show as table',
  showCurve: 'Show as curve',
  chartHelp: 'Left and right arrow keys move along the curve',
  change: 'Change',
  time: 'Time',
  total: 'Total',
  domain: 'Domain',
  sendsNot: {
    disabled: 'Disabled: it sends no mail',
    unverified: 'Its DNS records are not verified: it sends no mail yet',
    sandbox: 'A sandbox: it sends to allowed recipients only',
  },
  checks: {
    title: 'Checks before sending',
    lead: 'Authentication, one-click unsubscribing, links, size and more. Nothing is sent.',
    run: 'Check',
    again: 'Check again',
    isOld: 'The message has changed since.',
    passed: (count: string) => `${count} passed`,
    states: { ok: 'All right', warning: 'Could be better', failed: 'Must be changed' },
    names: {
      acceptance: 'Acceptance',
      spf: 'SPF',
      dkim: 'DKIM',
      dmarc: 'DMARC',
      bimi: 'BIMI',
      'one-click-unsubscribe': 'One-click unsubscribing',
      'reply-address': 'Address for replies',
      subject: 'Subject',
      'text-part': 'Plain text',
      'html-size': 'Size of the HTML',
      images: 'Images',
      links: 'Links',
      placeholders: 'Placeholders',
      size: 'Size',
      spam: 'Spam score',
    } as Readonly<Record<string, string>>,
  },
} as const

export const LEAVE_TEXT = {
  title: 'Leave without saving?',
  leave: 'Leave',
} as const

export const CHOOSER_TEXT = {
  placeholder: 'Type to find',
  nothing: 'Nothing has this name.',
  found: (count: number, more: boolean) => `${count}${more ? ' or more' : ''} found`,
} as const

/** About stopping the mail to a provider. */
export const ORDER_TEXT = {
  stoppedNow: (site: string) => `Mail to ${site} is stopped`,
  stoppedUntil: 'until',
  resume: 'Resume',
  resumeOf: (name: string) => `Resume mail to ${name}`,
  resumed: (site: string) => `Mail to ${site} leaves again`,
} as const

export const SHELL_TEXT = {
  skip: 'Skip to the page',
  menu: 'Menu',
  sections: 'Sections',
  jump: 'Search or jump to…',
  help: 'Keyboard shortcuts',
  signIn: 'Sign in',
  signOut: 'Sign out',
  ownAccount: 'Own account',
  account: 'Account',
  acting: (name: string) => `Acting for ${name}`,
  actingWhy: 'Everything on these pages belongs to this subaccount.',
  backToOwn: 'Back to the own account',
  stopActing: 'Stop acting for it',
  findSubaccount: 'Find a subaccount',
  noSubaccount: 'No subaccount has this name.',
} as const

export const PALETTE_TEXT = {
  label: 'Search or jump',
  placeholder: 'A page, an address, a domain, a message id…',
  results: 'Results',
  nothing: 'Nothing is called that.',
  pages: 'Pages',
  hint: 'Arrow keys choose, Enter opens, Escape closes',
} as const

export const SHORTCUT_TEXT = {
  title: 'Keyboard shortcuts',
  everywhere: 'Everywhere',
  goTo: 'Go to',
  search: 'Search on this page',
  palette: 'Search or jump',
  nextRow: 'Next row',
  previousRow: 'Previous row',
  openRow: 'Open the row',
  help: 'This help',
  close: 'Close a window',
  single: 'Shortcuts of a single key',
  singleWhy: 'Off if your screen reader or speech input uses these keys.',
} as const
