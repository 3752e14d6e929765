/** Webhooks of a whole account over HTTP (webhooks.md W10 to W15). */
import { formatRfc3339 } from '../base/dates.ts'
import { BadRequest } from '../base/errors.ts'
import { type Operation, operation, type ParamDoc } from '../http/operation.ts'
import type { Params } from '../http/params.ts'
import { noContent } from '../http/reply.ts'
import type { HttpClient } from '../http-posts/http-client.ts'
import type { AccountWebhooks, ShownWebhook } from './account-webhooks.ts'
import { WEBHOOK_TYPES } from './types.ts'
import { checkUrls, typesParam, urlsParam } from './url-params.ts'

const PATH = '/v1/webhooks'
const ONE = `${PATH}/{webhook_id}` as const
const READ = { area: 'domains', access: 'read' } as const
const WRITE = { area: 'domains', access: 'write' } as const

const FIELDS: ParamDoc[] = [
  { name: 'url', type: 'string', required: true, description: 'http or https' },
  {
    name: 'event_types',
    type: 'string',
    required: true,
    repeated: true,
    description: 'Types of events',
    values: WEBHOOK_TYPES,
  },
  { name: 'description', type: 'string', description: 'Free text' },
]
/** Free text, shown in lists. */
const DESCRIPTION_LENGTH_MAX = 1000

export function accountWebhookRoutes(stored: AccountWebhooks, client: HttpClient): Operation[] {
  const common = { tag: 'Webhooks', rateLimit: 'domains' } as const
  const readInput = async (params: Params) => {
    const [url = ''] = urlsParam(params)
    const types = typesParam(params)
    const description = params.given('description') ?? ''
    if (description.length > DESCRIPTION_LENGTH_MAX) {
      throw new BadRequest(`description is longer than ${DESCRIPTION_LENGTH_MAX} characters`, {
        form: 'Reason',
      })
    }
    await checkUrls(
      client,
      [url],
      (bad, reason) => `invalid parameters: ${bad} is not a valid url: ${reason}`,
    )
    return { url, types, description }
  }
  return [
    operation({
      ...common,
      method: 'GET',
      path: PATH,
      id: 'listAccountWebhooks',
      summary: 'List the webhooks of the account',
      auth: READ,
      params: [{ name: 'webhook_ids', type: 'string', description: 'Only these, separated by commas' }],
      responses: { 200: { description: 'Webhooks' } },
      async handler({ params, caller }) {
        const ids = params.text('webhook_ids')?.split(',')
        const rows = await stored.list(
          caller.accountId,
          ids?.map((id) => id.trim()),
        )
        return { webhooks: rows.map(view) }
      },
    }),
    operation({
      ...common,
      method: 'POST',
      path: PATH,
      id: 'createAccountWebhook',
      audit: { given: ['url', 'event_types'], made: ['webhook_id'] },
      summary: 'Register a URL for events of all domains',
      auth: WRITE,
      params: FIELDS,
      responses: { 200: { description: 'The id of the webhook' } },
      handler: async ({ params, caller }) => ({
        webhook_id: await stored.create(caller.accountId, await readInput(params)),
      }),
    }),
    operation({
      ...common,
      method: 'GET',
      path: ONE,
      id: 'readAccountWebhook',
      summary: 'Read one webhook of the account',
      auth: READ,
      params: [],
      responses: { 200: { description: 'The webhook' } },
      handler: async ({ path, caller }) => view(await stored.read(caller.accountId, path.webhook_id)),
    }),
    operation({
      ...common,
      method: 'PUT',
      path: ONE,
      id: 'updateAccountWebhook',
      audit: { given: ['url', 'event_types'] },
      summary: 'Replace URL, types and description of a webhook',
      auth: WRITE,
      params: FIELDS,
      responses: { 204: { description: 'Updated' } },
      async handler({ path, params, caller }) {
        await stored.read(caller.accountId, path.webhook_id)
        await stored.replace(caller.accountId, { id: path.webhook_id, ...(await readInput(params)) })
        return noContent()
      },
    }),
    operation({
      ...common,
      method: 'DELETE',
      path: ONE,
      id: 'deleteAccountWebhook',
      summary: 'Remove one webhook of the account',
      auth: WRITE,
      params: [],
      responses: { 204: { description: 'Removed' } },
      async handler({ path, caller }) {
        await stored.remove(caller.accountId, path.webhook_id)
        return noContent()
      },
    }),
    operation({
      ...common,
      method: 'DELETE',
      path: PATH,
      id: 'deleteAccountWebhooks',
      audit: { given: ['webhook_ids'] },
      summary: 'Remove some or all webhooks of the account',
      auth: WRITE,
      params: [
        { name: 'webhook_ids', type: 'string', description: 'Ids, separated by commas' },
        { name: 'all', type: 'boolean', description: 'All of them', default: false },
      ],
      responses: { 204: { description: 'Removed' } },
      async handler({ params, caller }) {
        await stored.removeSome(caller.accountId, params.boolean('all') ? undefined : idsOf(params))
        return noContent()
      },
    }),
  ]
}

function idsOf(params: Params): string[] {
  const ids = (params.given('webhook_ids') ?? '').split(',').map((id) => id.trim())
  if (ids.includes('')) {
    const reason = 'malformed webhook_ids parameter: empty values not allowed'
    throw new BadRequest(`Invalid parameter: webhook_ids ${reason}`)
  }
  return ids
}

const view = (webhook: ShownWebhook) => ({
  webhook_id: webhook.id,
  description: webhook.description,
  url: webhook.url,
  event_types: webhook.types,
  created_at: formatRfc3339(new Date(webhook.createdAt)),
})
