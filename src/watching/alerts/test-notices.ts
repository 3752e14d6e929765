/** What a test sends to a channel: a notice of the event type in which nothing has happened (alerts.md section 6). */
import type { AlertHitRow } from '../../platform/store/schema.ts'
import { type Alert, alertView, hitView } from './alert.ts'
import type { MailContent } from './notices.ts'
import type { EventType } from './settings.ts'

/** The words of mail and Slack. */
export const testWords = (eventType: EventType): MailContent => ({
  subject: `Test: ${eventType}`,
  text: `This is a test of the notices for ${eventType}. Nothing has happened.\n`,
})

/** `event-data` of a webhook; marked by `test`. `nowMs`: of its dates. */
export function testEventData(eventType: EventType, accountId: string, nowMs: number): object {
  const event = { event: eventType, test: true }
  if (eventType === 'validation_job') return { ...event, job: VALIDATED }
  if (eventType === 'validation_preview') return { ...event, preview: VALIDATED }
  if (eventType === 'sender_stopped' || eventType === 'sender_released')
    return { ...event, sender: { account_id: accountId, domain: 'test.example', state: 'good' } }
  const hit = exampleHit(eventType, accountId, Math.floor(nowMs))
  return { ...event, alert: alertView(exampleAlert(hit), null), hit: hitView(hit, null) }
}

const VALIDATED = {
  id: 'test',
  quantity: 1,
  records_processed: 1,
  summary: { result: { deliverable: 1, do_not_send: 0, undeliverable: 0, catch_all: 0, unknown: 0 } },
}

function exampleHit(eventType: EventType, accountId: string, now: number): AlertHitRow {
  const ofIp = eventType.startsWith('ip_')
  const isOver = eventType.endsWith('_delisted')
  return {
    ...{ id: 'test', account_id: accountId, source: 'test', name: 'test', metric: 'hard_bounce_rate' },
    ...{ comparator: '>', limit_text: '0.05', latest_value: '0.06', advice: '' },
    dimension: ofIp ? 'ip' : 'domain',
    dimension_value: ofIp ? '192.0.2.1' : 'test.example',
    ...{ triggered: isOver ? 0 : 1, misses: 0, since_at: now, created_at: now, updated_at: now },
    expires_at: isOver ? now : null,
  }
}

const exampleAlert = (hit: AlertHitRow): Alert => ({
  ...{ id: hit.id, accountId: hit.account_id, name: hit.name, description: '', accountGroup: null },
  ...{ metric: 'hard_bounce_rate', comparator: '>', limit: hit.limit_text },
  dimension: hit.dimension === 'ip' ? 'ip' : 'domain',
  ...{ channels: ['email'], filters: [], period: '1h' },
  ...{ createdAt: hit.created_at, updatedAt: hit.updated_at, lastCheckedAt: null },
})
