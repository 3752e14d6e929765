import type { IconName } from './icons.tsx'

/**
 * The sections of the dashboard in the order of the bar. A section is listed once its page exists; still missing
 * are events, queue, suppressions, templates and settings.
 */
export const SECTIONS = [
  { label: 'Inbox', icon: 'mail', to: '/', holds: /^\/(?:$|inbox\/)/ },
  { label: 'Domains', icon: 'globe', to: '/domains', holds: /^\/domains(?:\/|$)/ },
] as const satisfies readonly {
  label: string
  icon: IconName
  to: string
  /** Matches the paths of the section's pages. */
  holds: RegExp
}[]
