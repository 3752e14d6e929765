/** URLs and types as the registration operations read them. */
import { BadRequest } from '../base/errors.ts'
import type { Params } from '../http/params.ts'
import type { HttpClient } from '../outgoing/http-client.ts'
import { tooMany, URLS_PER_TYPE_MAX } from './domain-webhooks.ts'
import { type WebhookType, webhookType } from './types.ts'
import { bareUrl, maskedUrl } from './webhook-url.ts'

/** The `url` values, each once. @throws BadRequest without any, or with more than a type may have */
export function urlsParam(params: Params): string[] {
  const urls = [...new Set(params.texts('url').map((url) => url.trim()))].filter((url) => url !== '')
  if (urls.length === 0) throw new BadRequest('url is required', { form: 'Reason' })
  if (urls.length > URLS_PER_TYPE_MAX) throw tooMany()
  return urls
}

/** The `event_types` values, each once. @throws BadRequest without any, or with an unknown one */
export function typesParam(params: Params): WebhookType[] {
  const types = [...new Set(params.texts('event_types'))]
  if (types.length === 0) throw new BadRequest('event_types is required', { form: 'Reason' })
  return types.map(webhookType)
}

/** Refuses URLs that could not be called now. `text` words it as the operation does; user info is masked in it. */
export async function checkUrls(
  client: HttpClient,
  urls: readonly string[],
  text: (url: string, why: string) => string,
): Promise<void> {
  const faults = await Promise.all(urls.map((url) => client.fault(bareUrl(url))))
  for (const [index, why] of faults.entries()) {
    if (why !== null) throw new BadRequest(text(maskedUrl(urls[index] as string), why), { form: 'Reason' })
  }
}
