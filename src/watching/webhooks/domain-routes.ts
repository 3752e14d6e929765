/** Webhooks of a domain over HTTP (webhooks.md W1 to W9). */
import { BadRequest, NotFound } from '../../base/process/errors.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import { otherParam, parsedParam } from '../../platform/http/request/inputs.ts'
import type { Caller } from '../../platform/http/rights/auth.ts'
import type { HttpClient } from '../../platform/posts/http-client.ts'
import { type DomainDirectory, ownDomain } from '../../sending/domains/names/directory.ts'
import type { DomainWebhooks } from './domain-webhooks.ts'
import {
  DOMAIN_WEBHOOKS,
  ONE_WEBHOOK,
  UNKNOWN,
  WEBHOOK_DONE,
  WEBHOOK_POST,
  WEBHOOK_TESTED,
} from './shapes.ts'
import {
  checkUrl,
  checkUrls,
  missing,
  ONE_URL,
  TYPES,
  URLS,
  WEBHOOK_TYPES,
  type WebhookType,
  webhookType,
} from './types.ts'
import { maskedUrl } from './webhook-url.ts'
import type { Webhooks } from './webhooks.ts'

const api = operationsOf({ tag: 'Webhooks', auth: { area: 'domains' }, rateLimit: 'domains' })
const V3 = '/v3/domains/{domain}/webhooks'
const V4 = '/v4/domains/{domain}/webhooks'

const ID = parsedParam(
  'The type',
  (params, name) => {
    const id = params.text(name)
    if (id === undefined) throw missing(name)
    return webhookType(id)
  },
  { required: true, values: WEBHOOK_TYPES },
)

interface DomainWebhookParts {
  domains: DomainDirectory
  stored: DomainWebhooks
  client: HttpClient
  webhooks: Webhooks
}

export function domainWebhookRoutes(parts: DomainWebhookParts): Operation[] {
  return [...typeRoutes(parts), ...urlRoutes(parts)]
}

const domainOf = ({ domains }: DomainWebhookParts, caller: Caller, name: string) =>
  ownDomain(domains, caller, name)

/** W1 to W6: one type at a time. */
function typeRoutes(parts: DomainWebhookParts): Operation[] {
  const { stored, client } = parts
  /** Checks ownership of the domain before the type. */
  const target = async (caller: Caller, path: { domain: string; type: string }) => {
    const domain = await domainOf(parts, caller, path.domain)
    return { domain, type: webhookType(path.type) }
  }
  return [
    api.get(V3, {
      id: 'listDomainWebhooks',
      summary: 'List the webhooks of a domain by type',
      answers: { 200: DOMAIN_WEBHOOKS },
      handler: async ({ path, caller }) => ({
        webhooks: await stored.list(await domainOf(parts, caller, path.domain)),
      }),
    }),
    api.post(V3, {
      id: 'createDomainWebhook',
      audit: { given: ['id', 'url'] },
      summary: 'Register the URLs of a type that has none',
      params: { id: ID, url: URLS },
      webhooks: { webhook: WEBHOOK_POST },
      answers: { 200: WEBHOOK_DONE },
      async handler({ path, caller, input }) {
        const domain = await domainOf(parts, caller, path.domain)
        const { id: type, url: given } = input()
        await checkUrls(client, given, (url, reason) => `'${url}' is not a valid url: ${reason}`)
        const urls = await stored.create(domain, type, given)
        return { message: 'Webhook has been created', webhook: { urls } }
      },
    }),
    api.get(`${V3}/{type}`, {
      id: 'readDomainWebhook',
      summary: 'Read the URLs of one type',
      answers: { 200: ONE_WEBHOOK },
      async handler({ path, caller }) {
        const { domain, type } = await target(caller, path)
        const urls = await stored.urls(domain, type)
        if (urls.length === 0) throw new NotFound('Webhook not found')
        return { webhook: { urls } }
      },
    }),
    api.put(`${V3}/{type}`, {
      id: 'updateDomainWebhook',
      audit: { given: ['url'] },
      summary: 'Replace the URLs of one type',
      params: { url: URLS },
      answers: { 200: WEBHOOK_DONE },
      async handler({ path, caller, input }) {
        const { domain, type } = await target(caller, path)
        const { url: given } = input()
        await checkUrls(client, given, (url, reason) => `'${url}' is not a valid url: ${reason}`)
        const urls = await stored.replace(domain, type, given)
        return { message: 'Webhook has been updated', webhook: { urls } }
      },
    }),
    api.delete(`${V3}/{type}`, {
      id: 'deleteDomainWebhook',
      summary: 'Remove all URLs of one type',
      answers: { 200: WEBHOOK_DONE },
      async handler({ path, caller }) {
        const { domain, type } = await target(caller, path)
        const urls = await stored.removeType(domain, type)
        return { message: 'Webhook has been deleted', webhook: { urls } }
      },
    }),
    testRoute(parts, target),
  ]
}

type FindTarget = (
  caller: Caller,
  path: { domain: string; type: string },
) => Promise<{ domain: { accountId: string; name: string }; type: WebhookType }>

function testRoute({ webhooks }: DomainWebhookParts, target: FindTarget): Operation {
  return api.put(`${V3}/{type}/test`, {
    id: 'testDomainWebhook',
    audit: { given: ['url'] },
    summary: 'Send a sample of a type to a URL',
    params: { url: ONE_URL },
    answers: { 200: WEBHOOK_TESTED },
    async handler({ path, caller, input }) {
      const { domain, type } = await target(caller, path)
      const outcome = await webhooks.test(domain, type, input().url)
      if (outcome.kind === 'answered') return { code: outcome.status, message: outcome.reason }
      return { code: 0, message: outcome.why }
    },
  })
}

/** W7 to W9: one URL with several types. */
function urlRoutes(parts: DomainWebhookParts): Operation[] {
  const { stored, client } = parts
  return [
    api.post(V4, {
      id: 'createDomainWebhookUrl',
      audit: { given: ['url', 'event_types'] },
      summary: 'Register a URL for several types',
      params: { url: ONE_URL, event_types: TYPES },
      answers: { 200: DOMAIN_WEBHOOKS },
      async handler({ path, caller, input }) {
        const domain = await domainOf(parts, caller, path.domain)
        const { url, event_types: types } = input()
        await checkUrl(client, url)
        return { webhooks: await stored.addUrl(domain, url, types) }
      },
    }),
    api.put(V4, {
      id: 'updateDomainWebhookUrl',
      audit: { given: ['url', 'event_types'] },
      summary: 'Replace the types of a URL',
      params: { url: ONE_URL, event_types: TYPES },
      answers: { 200: DOMAIN_WEBHOOKS, 404: UNKNOWN },
      async handler({ path, caller, input }) {
        const domain = await domainOf(parts, caller, path.domain)
        const { url, event_types: types } = input()
        await checkUrl(client, url)
        return { webhooks: await stored.setUrl(domain, url, types) }
      },
    }),
    api.delete(V4, {
      id: 'deleteDomainWebhookUrls',
      audit: { given: ['url'] },
      summary: 'Remove URLs from all types',
      params: { url: otherParam('One, or several separated by commas', { required: true }) },
      answers: { 200: DOMAIN_WEBHOOKS },
      async handler({ path, caller, params }) {
        const domain = await domainOf(parts, caller, path.domain)
        const texts = params.texts('url').map((text) => text.trim())
        if (texts.length === 0) throw new BadRequest('', { form: 'Field', field: 'url' })
        // A URL may itself contain a comma.
        const present = Object.values(await stored.list(domain)).flatMap(({ urls }) => urls)
        const known = new Set(present.map(maskedUrl))
        const urls = texts.flatMap((text) => (known.has(maskedUrl(text)) ? [text] : text.split(',')))
        return { webhooks: await stored.removeUrls(domain, urls.map((url) => url.trim()).filter(Boolean)) }
      },
    }),
  ]
}
