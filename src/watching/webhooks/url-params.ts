/** The URL and type parameters of the registration operations. */
import { BadRequest } from '../../base/process/errors.ts'
import { parsedParam } from '../../platform/http/request/inputs.ts'
import type { Params } from '../../platform/http/request/params.ts'
import { type HttpClient, withAdvice } from '../../platform/posts/http-client.ts'
import { tooMany, URLS_PER_TYPE_MAX } from './domain-webhooks.ts'
import { WEBHOOK_TYPES, type WebhookType, webhookType } from './types.ts'
import { bareUrl, maskedUrl } from './webhook-url.ts'

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
