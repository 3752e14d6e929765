/** The types of webhooks, the type of each event (webhooks.md section 2), and the parameters that name types and URLs. */

import { BadRequest } from '../../base/process/errors.ts'
import { parsedParam } from '../../platform/http/request/inputs.ts'
import type { Params } from '../../platform/http/request/params.ts'
import { type HttpClient, withAdvice } from '../../platform/posts/http-client.ts'
import { bareUrl, maskedUrl } from './webhook-url.ts'

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

/** Separately for the domain and for the account (rule 3). */
export const URLS_PER_TYPE_MAX = 3

export const tooMany = () =>
  new BadRequest(`a maximum of ${URLS_PER_TYPE_MAX} urls is allowed per event type`, { form: 'Reason' })

export const missing = (name: string) => new BadRequest(`${name} is required`, { form: 'Reason' })

/** The distinct values. @throws BadRequest without any, or with more than a type may have */
function urlsOf(params: Params, name: string): string[] {
  const urls = [...new Set(params.texts(name).map((url) => url.trim()))].filter((url) => url !== '')
  if (urls.length === 0) throw missing(name)
  if (urls.length > URLS_PER_TYPE_MAX) throw tooMany()
  return urls
}

/** The distinct values. @throws BadRequest without any, or with an unknown one */
function typesOf(params: Params, name: string): WebhookType[] {
  const types = [...new Set(params.texts(name))]
  if (types.length === 0) throw missing(name)
  return types.map(webhookType)
}

export const URLS = parsedParam('http or https; at most three', urlsOf, { required: true, repeated: true })
export const ONE_URL = parsedParam('http or https', (params, name) => urlsOf(params, name)[0] ?? '', {
  required: true,
})
export const TYPES = parsedParam('Types of events', typesOf, {
  ...{ required: true, repeated: true, values: WEBHOOK_TYPES },
})

/** @throws BadRequest for a URL that cannot be called now; `text` makes its message, from the masked URL and the reason */
export async function checkUrls(
  client: HttpClient,
  urls: readonly string[],
  text: (url: string, reason: string) => string,
): Promise<void> {
  const faults = await Promise.all(urls.map((url) => client.fault(bareUrl(url))))
  for (const [index, fault] of faults.entries()) {
    if (fault !== null)
      throw new BadRequest(text(maskedUrl(urls[index] as string), withAdvice(fault)), { form: 'Reason' })
  }
}

/** The same of one URL, in the words of the operations on one. */
export const checkUrl = (client: HttpClient, url: string): Promise<void> =>
  checkUrls(client, [url], (bad, reason) => `invalid parameters: ${bad} is not a valid url: ${reason}`)
