/** Texts of the shared pieces. */
export const TEXT = {
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
  total: 'Total',
  domain: 'Domain',
} as const

export const SHELL_TEXT = {
  skip: 'Skip to the page',
  menu: 'Menu',
  sections: 'Sections',
  jump: 'Search or jump to…',
  help: 'Keyboard shortcuts',
  signOut: 'Sign out',
  ownAccount: 'Own account',
  account: 'Account',
  acting: (name: string) => `Acting for ${name}`,
  actingWhy: 'Everything on these pages belongs to this subaccount.',
  backToOwn: 'Back to the own account',
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
  page: 'On this page',
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
