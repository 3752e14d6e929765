/** Words for an event in a row. Pure. */
import type { LogItem } from './activity-api.ts'
import type { Kind } from './activity-search.ts'

/** The word that filters and rows have for it. */
export function kindOf({ event, severity, reason }: LogItem): Kind {
  if (event !== 'failed') return event as Kind
  if (severity === 'temporary') return 'deferred'
  return reason?.startsWith('suppress-') ? 'suppressed' : 'bounced'
}

/** The fact of an event that one looks for first. */
export function detailOf(item: LogItem): string {
  const status = item['delivery-status']
  if (item.event === 'failed' && status)
    return `${status.code} ${status.message || status.description}`.trim()
  if (item.event === 'delivered') return status?.['mx-host'] ? `to ${status['mx-host']}` : ''
  if (item.event === 'clicked') return item.url ?? ''
  if (item.event === 'opened')
    return [item['client-info']?.['client-name'], item.geolocation?.country].filter(Boolean).join(' · ')
  return item.tags.join(', ')
}
