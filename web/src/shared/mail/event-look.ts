import type { IconName } from '../../look/icons.tsx'

export interface EventLook {
  icon: IconName
  color: string
  title: string
}

/** How an event is shown. `severity`: of failed ones. */
export function lookOf({ event, severity }: { event: string; severity?: string }): EventLook {
  const kind = event === 'failed' ? `failed ${severity}` : event
  return LOOKS[kind] ?? { icon: 'mail', color: 'gray', title: event.replaceAll('_', ' ') }
}

const LOOKS: Record<string, EventLook> = {
  accepted: { icon: 'arrowIn', color: 'gray', title: 'Accepted' },
  delivered: { icon: 'check', color: 'teal', title: 'Delivered' },
  'failed temporary': { icon: 'clock', color: 'orange', title: 'Deferred, will be tried again' },
  'failed permanent': { icon: 'cross', color: 'red', title: 'Failed for good' },
  rejected: { icon: 'cross', color: 'red', title: 'Rejected before delivery' },
  opened: { icon: 'eye', color: 'petrol', title: 'Opened' },
  clicked: { icon: 'link', color: 'petrol', title: 'Link clicked' },
  unsubscribed: { icon: 'cross', color: 'orange', title: 'Unsubscribed' },
  complained: { icon: 'cross', color: 'red', title: 'Reported as spam' },
  stored: { icon: 'arrowIn', color: 'gray', title: 'Stored' },
}
