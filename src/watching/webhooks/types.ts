/** The types of webhooks, and the type of each event (webhooks.md section 2). */
import { BadRequest } from '../../base/process/errors.ts'

export const WEBHOOK_TYPES = [
  'accepted',
  'clicked',
  'opened',
  'unsubscribed',
  'delivered',
  'permanent_fail',
  'temporary_fail',
  'complained',
] as const

export type WebhookType = (typeof WEBHOOK_TYPES)[number]

const isType = (text: string): text is WebhookType => (WEBHOOK_TYPES as readonly string[]).includes(text)

/** @throws BadRequest for anything else, including legacy names */
export function webhookType(text: string): WebhookType {
  if (!isType(text)) throw new BadRequest(`invalid webhook type '${text.slice(0, 100)}'`, { form: 'Reason' })
  return text
}

/** The type of an event; null: it has none (rule 10). */
export function typeOfEvent(event: string, payload: Readonly<Record<string, unknown>>): WebhookType | null {
  if (event === 'failed') return payload['severity'] === 'temporary' ? 'temporary_fail' : 'permanent_fail'
  return isType(event) ? event : null
}
