/** Webhooks of a domain over HTTP (webhooks.md W1 to W9). */
import { BadRequest, NotFound } from '../base/errors.ts'
import type { DomainDirectory } from '../domains/directory.ts'
import { ownDomain } from '../domains/routes.ts'
import type { Caller } from '../http/auth.ts'
import { type Operation, operation, type ParamDoc } from '../http/operation.ts'
import type { Params } from '../http/params.ts'
import type { HttpClient } from '../http-posts/http-client.ts'
import type { DomainWebhooks } from './domain-webhooks.ts'
import { WEBHOOK_TYPES, webhookType } from './types.ts'
import { checkUrls, typesParam, urlsParam } from './url-params.ts'
import { maskedUrl } from './webhook-url.ts'
import type { Webhooks } from './webhooks.ts'

const TAG = 'Webhooks'
const READ = { area: 'domains', access: 'read' } as const
const WRITE = { area: 'domains', access: 'write' } as const
const V3 = '/v3/domains/{domain}/webhooks'
const V4 = '/v4/domains/{domain}/webhooks'

const URLS: ParamDoc = {
  name: 'url',
  type: 'string',
  required: true,
  repeated: true,
  description: 'At most three',
}
const ONE_URL: ParamDoc = { name: 'url', type: 'string', required: true, description: 'http or https' }
const TYPES: ParamDoc = {
  name: 'event_types',
  type: 'string',
  required: true,
  repeated: true,
  description: 'Types of events',
  values: WEBHOOK_TYPES,
}

export interface DomainWebhookParts {
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
  const common = { tag: TAG, rateLimit: 'domains' } as const
  /** Checks ownership of the domain before the type. */
  const target = async (caller: Caller, path: { domain: string; type: string }) => {
    const domain = await domainOf(parts, caller, path.domain)
    return { domain, type: webhookType(path.type) }
  }
  return [
    operation({
      ...common,
      method: 'GET',
      path: V3,
      id: 'listDomainWebhooks',
      summary: 'List the webhooks of a domain by type',
      auth: READ,
      params: [],
      responses: { 200: { description: 'URLs by type' } },
      handler: async ({ path, caller }) => ({
        webhooks: await stored.list(await domainOf(parts, caller, path.domain)),
      }),
    }),
    operation({
      ...common,
      method: 'POST',
      path: V3,
      id: 'createDomainWebhook',
      audit: { given: ['id', 'url'] },
      summary: 'Register the URLs of a type that has none',
      auth: WRITE,
      params: [
        { name: 'id', type: 'string', required: true, description: 'The type', values: WEBHOOK_TYPES },
        URLS,
      ],
      responses: { 200: { description: 'Created' } },
      async handler({ path, caller, params }) {
        const domain = await domainOf(parts, caller, path.domain)
        const id = params.text('id')
        if (id === undefined) throw new BadRequest('id is required', { form: 'Reason' })
        const type = webhookType(id)
        const given = urlsParam(params)
        await checkUrls(client, given, (url, reason) => `'${url}' is not a valid url: ${reason}`)
        const urls = await stored.create(domain, type, given)
        return { message: 'Webhook has been created', webhook: { urls } }
      },
    }),
    operation({
      ...common,
      method: 'GET',
      path: `${V3}/{type}`,
      id: 'readDomainWebhook',
      summary: 'Read the URLs of one type',
      auth: READ,
      params: [],
      responses: { 200: { description: 'The URLs' } },
      async handler({ path, caller }) {
        const { domain, type } = await target(caller, path)
        const urls = await stored.urls(domain, type)
        if (urls.length === 0) throw new NotFound('Webhook not found')
        return { webhook: { urls } }
      },
    }),
    operation({
      ...common,
      method: 'PUT',
      path: `${V3}/{type}`,
      id: 'updateDomainWebhook',
      audit: { given: ['url'] },
      summary: 'Replace the URLs of one type',
      auth: WRITE,
      params: [URLS],
      responses: { 200: { description: 'Updated' } },
      async handler({ path, caller, params }) {
        const { domain, type } = await target(caller, path)
        const given = urlsParam(params)
        await checkUrls(client, given, (url, reason) => `'${url}' is not a valid url: ${reason}`)
        const urls = await stored.replace(domain, type, given)
        return { message: 'Webhook has been updated', webhook: { urls } }
      },
    }),
    operation({
      ...common,
      method: 'DELETE',
      path: `${V3}/{type}`,
      id: 'deleteDomainWebhook',
      summary: 'Remove all URLs of one type',
      auth: WRITE,
      params: [],
      responses: { 200: { description: 'Deleted, with the URLs that were removed' } },
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
) => Promise<{ domain: { accountId: string; name: string }; type: ReturnType<typeof webhookType> }>

function testRoute({ webhooks }: DomainWebhookParts, target: FindTarget): Operation {
  return operation({
    method: 'PUT',
    path: `${V3}/{type}/test`,
    id: 'testDomainWebhook',
    audit: { given: ['url'] },
    tag: TAG,
    summary: 'Send a sample of a type to a URL',
    auth: WRITE,
    rateLimit: 'domains',
    params: [ONE_URL],
    responses: { 200: { description: 'The response of the receiver; code 0: no response, with the reason' } },
    async handler({ path, caller, params }) {
      const { domain, type } = await target(caller, path)
      const [url = ''] = urlsParam(params)
      const outcome = await webhooks.test(domain, type, url)
      if (outcome.kind === 'answered') return { code: outcome.status, message: outcome.reason }
      return { code: 0, message: outcome.why }
    },
  })
}

/** W7 to W9: one URL with several types. */
function urlRoutes(parts: DomainWebhookParts): Operation[] {
  const { stored, client } = parts
  const common = { path: V4, tag: TAG, rateLimit: 'domains', auth: WRITE } as const
  const readInput = async (params: Params) => {
    const [url = ''] = urlsParam(params)
    const types = typesParam(params)
    await checkUrls(
      client,
      [url],
      (bad, reason) => `invalid parameters: ${bad} is not a valid url: ${reason}`,
    )
    return { url, types }
  }
  return [
    operation({
      ...common,
      method: 'POST',
      id: 'createDomainWebhookUrl',
      audit: { given: ['url', 'event_types'] },
      summary: 'Register a URL for several types',
      params: [ONE_URL, TYPES],
      responses: { 200: { description: 'All webhooks of the domain' } },
      async handler({ path, caller, params }) {
        const domain = await domainOf(parts, caller, path.domain)
        const { url, types } = await readInput(params)
        return { webhooks: await stored.addUrl(domain, url, types) }
      },
    }),
    operation({
      ...common,
      method: 'PUT',
      id: 'updateDomainWebhookUrl',
      audit: { given: ['url', 'event_types'] },
      summary: 'Replace the types of a URL',
      params: [ONE_URL, TYPES],
      responses: { 200: { description: 'All webhooks of the domain' } },
      async handler({ path, caller, params }) {
        const domain = await domainOf(parts, caller, path.domain)
        const { url, types } = await readInput(params)
        return { webhooks: await stored.setUrl(domain, url, types) }
      },
    }),
    operation({
      ...common,
      method: 'DELETE',
      id: 'deleteDomainWebhookUrls',
      audit: { given: ['url'] },
      summary: 'Remove URLs from all types',
      params: [{ ...ONE_URL, description: 'One, or several separated by commas' }],
      responses: { 200: { description: 'The remaining webhooks' } },
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
