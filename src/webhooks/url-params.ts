/** Reads the URL and type parameters of the registration operations. */
import { BadRequest } from '../base/errors.ts'
import type { Params } from '../http/params.ts'
import type { HttpClient } from '../http-posts/http-client.ts'
import { tooMany, URLS_PER_TYPE_MAX } from './domain-webhooks.ts'
import { type WebhookType, webhookType } from './types.ts'
import { bareUrl, maskedUrl } from './webhook-url.ts'

/** The distinct `url` values. @throws BadRequest without any, or with more than a type may have */
export function urlsParam(params: Params): string[] {
  const urls = [...new Set(params.texts('url').map((url) => url.trim()))].filter((url) => url !== '')
  if (urls.length === 0) throw new BadRequest('url is required', { form: 'Reason' })
  if (urls.length > URLS_PER_TYPE_MAX) throw tooMany()
  return urls
}

/** The distinct `event_types` values. @throws BadRequest without any, or with an unknown one */
export function typesParam(params: Params): WebhookType[] {
  const types = [...new Set(params.texts('event_types'))]
  if (types.length === 0) throw new BadRequest('event_types is required', { form: 'Reason' })
  return types.map(webhookType)
}

/** @throws BadRequest for a URL that cannot be called now; `text` makes its message, from the masked URL and the reason */
export async function checkUrls(
  client: HttpClient,
  urls: readonly string[],
  text: (url: string, reason: string) => string,
): Promise<void> {
  const faults = await Promise.all(urls.map((url) => client.fault(bareUrl(url))))
  for (const [index, fault] of faults.entries()) {
    if (fault !== null)
      throw new BadRequest(text(maskedUrl(urls[index] as string), fault), { form: 'Reason' })
  }
}
