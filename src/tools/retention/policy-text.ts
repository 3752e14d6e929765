/** What is kept, for how long, as a passage for a privacy policy. Pure. */
import type { Effective } from './effective.ts'

/** `subject`: the domain, or null for all of an account. Plain text; lines end in LF. */
export function policyText(items: readonly Effective[], subject: string | null): string {
  const personal = items.filter(({ personal }) => personal !== null)
  const whose = subject === null ? 'we send' : `we send from ${subject}`
  return [
    'What we store, and for how long',
    '',
    `For mail that ${whose}, and for the people who receive it, we store the following personal data:`,
    '',
    ...personal.map((item) => `- ${item.title}: ${item.personal}. ${sentenceOf(item)}`),
    '',
    'We remove data of each kind automatically when its time has passed; where space is short, some of it earlier.',
    'Mail that waits to be sent is stored until it is delivered or given up.',
    'Backups may contain removed data until they are deleted.',
    '',
    'You may ask us at any time which data we hold about you, and have it corrected or erased.',
    '',
  ].join('\n')
}

function sentenceOf({ keptDays, since }: Effective): string {
  if (keptDays === null) return 'We store it until it is removed on request, or no longer needed.'
  if (keptDays === 0) return `We remove it as soon as ${since}.`
  return `We store it for ${spanOf(keptDays)} after ${since}.`
}

/** A span as people say it: whole days from one day on, else hours. */
export function spanOf(days: number): string {
  if (days >= 1) return counted(Math.ceil(days), 'day')
  return counted(Math.max(1, Math.ceil(days * 24)), 'hour')
}

const counted = (count: number, unit: string) => `${count} ${unit}${count === 1 ? '' : 's'}`
