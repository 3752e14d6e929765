/** Webhooks of a whole account over HTTP (webhooks.md W10 to W15). */

import { BadRequest } from '../../base/process/errors.ts'
import { nothing, type Of } from '../../base/shape.ts'
import { formatRfc3339 } from '../../base/time/dates.ts'
import { noContent } from '../../platform/http/answer/reply.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import {
  flagParam,
  givenParam,
  type InputOf,
  parsedParam,
  wordParam,
} from '../../platform/http/request/inputs.ts'
import type { HttpClient } from '../../platform/posts/http-client.ts'
import type { AccountWebhooks, ShownWebhook } from './account-webhooks.ts'
import {
  ACCOUNT_WEBHOOK,
  ACCOUNT_WEBHOOK_CREATED,
  ACCOUNT_WEBHOOKS,
  DUPLICATE,
  UNKNOWN,
  WEBHOOK_POST,
} from './shapes.ts'
import { checkUrl, ONE_URL, TYPES } from './types.ts'

const PATH = '/v1/webhooks'
const ONE = `${PATH}/{webhook_id}` as const
const api = operationsOf({ tag: 'Webhooks', auth: { area: 'domains' }, rateLimit: 'domains' })

/** Free text, shown in lists. */
const DESCRIPTION_LENGTH_MAX = 1000
const FIELDS = {
  url: ONE_URL,
  event_types: TYPES,
  description: parsedParam('Free text', (params, name) => {
    const text = params.given(name) ?? ''
    if (text.length <= DESCRIPTION_LENGTH_MAX) return text
    throw new BadRequest(`${name} is longer than ${DESCRIPTION_LENGTH_MAX} characters`, { form: 'Reason' })
  }),
}

export function accountWebhookRoutes(stored: AccountWebhooks, client: HttpClient): Operation[] {
  const checked = async ({ event_types: types, ...given }: InputOf<typeof FIELDS>) => {
    await checkUrl(client, given.url)
    return { ...given, types }
  }
  return [
    api.get(PATH, {
      id: 'listAccountWebhooks',
      summary: 'List the webhooks of the account',
      params: { webhook_ids: wordParam('Only these, separated by commas', idsIn) },
      answers: { 200: ACCOUNT_WEBHOOKS },
      handler: async ({ input, caller }) => ({
        webhooks: (await stored.list(caller.accountId, input().webhook_ids)).map(view),
      }),
    }),
    api.post(PATH, {
      id: 'createAccountWebhook',
      audit: { given: ['url', 'event_types'], made: ['webhook_id'] },
      summary: 'Register a URL for events of all domains',
      params: FIELDS,
      webhooks: { webhook: WEBHOOK_POST },
      answers: { 200: ACCOUNT_WEBHOOK_CREATED, 409: DUPLICATE },
      handler: async ({ input, caller }) => ({
        webhook_id: await stored.create(caller.accountId, await checked(input())),
      }),
    }),
    api.get(ONE, {
      id: 'readAccountWebhook',
      summary: 'Read one webhook of the account',
      answers: { 200: ACCOUNT_WEBHOOK, 404: UNKNOWN },
      handler: async ({ path, caller }) => view(await stored.read(caller.accountId, path.webhook_id)),
    }),
    api.put(ONE, {
      id: 'updateAccountWebhook',
      audit: { given: ['url', 'event_types'] },
      summary: 'Replace URL, types and description of a webhook',
      params: FIELDS,
      answers: { 204: nothing('Updated'), 404: UNKNOWN, 409: DUPLICATE },
      async handler({ path, input, caller }) {
        await stored.read(caller.accountId, path.webhook_id)
        await stored.replace(caller.accountId, { id: path.webhook_id, ...(await checked(input())) })
        return noContent()
      },
    }),
    api.delete(ONE, {
      id: 'deleteAccountWebhook',
      summary: 'Remove one webhook of the account',
      answers: { 204: nothing('Removed'), 404: UNKNOWN },
      async handler({ path, caller }) {
        await stored.remove(caller.accountId, path.webhook_id)
        return noContent()
      },
    }),
    api.delete(PATH, {
      id: 'deleteAccountWebhooks',
      audit: { given: ['webhook_ids'] },
      summary: 'Remove some or all webhooks of the account',
      params: {
        all: flagParam('All of them', { default: false }),
        webhook_ids: givenParam('Ids, separated by commas'),
      },
      answers: { 204: nothing('Removed'), 404: UNKNOWN },
      async handler({ input, caller }) {
        const { all, webhook_ids: ids = '' } = input()
        await stored.removeSome(caller.accountId, all ? undefined : checkedIds(ids))
        return noContent()
      },
    }),
  ]
}

const idsIn = (text: string) => text.split(',').map((id) => id.trim())

/** @throws BadRequest for an empty one */
function checkedIds(text: string): string[] {
  const ids = idsIn(text)
  if (ids.includes('')) {
    const reason = 'malformed webhook_ids parameter: empty values not allowed'
    throw new BadRequest(`Invalid parameter: webhook_ids ${reason}`)
  }
  return ids
}

const view = (webhook: ShownWebhook): Of<typeof ACCOUNT_WEBHOOK> => ({
  webhook_id: webhook.id,
  description: webhook.description,
  url: webhook.url,
  event_types: webhook.types,
  created_at: formatRfc3339(new Date(webhook.createdAt)),
})
