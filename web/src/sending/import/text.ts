/** Texts of imports and exports. */
export const TEXT = {
  file: 'File (CSV or JSON)',
  choose: 'Choose a file',
  paste: 'or paste it here',
  tooLarge: (limit: string) => `The file is over ${limit}. Split it into smaller ones.`,
  cannotRead: 'The file cannot be read as text.',
  found: (count: string) => `${count} found`,
  start: (count: string) => `Import ${count}`,
  importing: 'Importing',
  stop: 'Stop',
  close: 'Close',
  cancel: 'Cancel',
  done: (count: string) => `${count} imported`,
  skipped: (count: string) => `${count} left out`,
  line: (number: number) => `No. ${number.toLocaleString('en')}`,
  stopped: 'The import stopped',
  more: (count: number) => `and ${count.toLocaleString('en')} more`,
} as const
