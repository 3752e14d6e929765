import type { Retention } from './retention-api.ts'

const counted = (count: number, unit: string) => `${count} ${unit}${count === 1 ? '' : 's'}`

export const TEXT = {
  title: 'Retention',
  lead: 'What is kept, and for how long. What is older is removed by itself.',
  account: 'All domains of the account',
  columns: { what: 'What', kept: 'Kept', source: 'Who says so' },
  personal: (what: string) => `Personal data: ${what}`,
  none: 'No personal data',
  sources: {
    fixed: 'The service',
    service: 'The operator',
    account: 'The account',
    domain: 'The domain',
    message_ttl: 'message_ttl of the domain',
  } satisfies Record<Retention['source'], string>,
  change: 'Change',
  changeOf: (title: string) => `Change how long ${title.toLowerCase()} are kept`,
  days: 'Days',
  range: (min: number, max: number) => `From ${min} to ${max}. Empty: not decided here`,
  zero: '0: a message is removed within a minute after its last recipient is finished. It cannot be read or sent again then.',
  save: 'Save',
  saved: (title: string) => `${title}: saved`,
  shorter: 'What is older than that is removed within the hour, and cannot be brought back.',
  policy: 'For your privacy policy',
  policyWhy: 'A passage made from the list above. It is no legal advice.',
  copy: 'Copy the passage',
} as const

/** How long, in words. */
export function keptWords({ days }: Pick<Retention, 'days'>): string {
  if (days === null) return 'until it is removed'
  if (days === 0) return 'not at all'
  if (days < 1) return counted(Math.max(1, Math.ceil(days * 24)), 'hour')
  return counted(Math.ceil(days), 'day')
}
