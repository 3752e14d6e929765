/** Deliveries and the queue over HTTP (own-operations.md sections 2 and 3). */

import { createKeyedGate } from '../../base/flow/gate.ts'
import { BadRequest, TooManyWaiting } from '../../base/process/errors.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../base/time/durations.ts'
import { invalidFormat, isPlainObject, jsonText } from '../../base/values.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import { limitParam, parsedParam, textParam } from '../../platform/http/request/inputs.ts'
import { pageName, pivotPaging } from '../../platform/http/request/paging.ts'
import type { Params } from '../../platform/http/request/params.ts'
import type { Caller } from '../../platform/http/rights/auth.ts'
import { type ActionParts, listQueue, runAction } from './actions.ts'
import { listDeliveries, readTranscripts } from './deliveries.ts'
import {
  ACTION_RESULT,
  ACTIONS,
  DELIVERIES,
  LANES,
  QUEUE_ACTION,
  QUEUE_DOMAINS,
  QUEUED_DELIVERIES,
  TRANSCRIPTS,
} from './shapes.ts'
import type { Place, QueueFilter } from './waiting-rows.ts'

interface QueueRouteParts extends ActionParts {
  baseUrl: string
  /** The operator's: its callers see and change the queues of all accounts. */
  firstAccountId: string
}

const BASE = '/sendwright/v1'
const api = operationsOf({ tag: 'Queue', auth: { area: 'events' } })
const WRITE = { area: 'domains', access: 'write' } as const
/** Actions of tenants hold the mail of all: one at a time. */
const TENANT_ACTIONS = { openMax: 1, waitingMax: 50, ownOpenMax: 1, ownWaitingMax: 5 }
const ACTIONS_RETRY_SECONDS = 5

export function queueRoutes(parts: QueueRouteParts): Operation[] {
  return [...deliveryRoutes(parts), ...waitingRoutes(parts), actionRoute(parts)]
}

/** Null: the operator, whose calls are about the mail of all accounts. */
const scopeOf = ({ firstAccountId }: QueueRouteParts, { accountId }: Caller) =>
  accountId === firstAccountId ? null : accountId

/** Where one message is. */
function deliveryRoutes(parts: QueueRouteParts): Operation[] {
  return [
    api.get(`${BASE}/messages/{message_id}/deliveries`, {
      id: 'listDeliveries',
      summary: 'Where a message is, recipient by recipient, and why',
      params: {
        limit: limitParam(100, 1000),
        page: parsedParam('From a paging link', pageName),
        id: textParam('From a paging link'),
      },
      answers: { 200: DELIVERIES },
      async handler({ input, path, caller }) {
        const { limit, page: name, id: pivot } = input()
        const page = { name, pivot, limit }
        const items = await listDeliveries(parts, caller.accountId, path.message_id, page)
        const paging = pivotPaging({
          baseUrl: parts.baseUrl,
          path: `${BASE}/messages/${encodeURIComponent(path.message_id)}/deliveries`,
          pivotName: 'id',
          firstItem: items.at(0)?.id,
          lastItem: items.at(-1)?.id,
          pivot,
          carry: { limit },
        })
        return { items, paging }
      },
    }),
    api.get(`${BASE}/deliveries/{id}/transcript`, {
      id: 'readTranscript',
      summary: 'The SMTP dialogue of each attempt that was kept',
      answers: { 200: TRANSCRIPTS },
      handler: async ({ path, caller }) => ({
        items: await readTranscripts(parts.store, caller.accountId, path.id),
      }),
    }),
  ]
}

/** What waits. */
function waitingRoutes(parts: QueueRouteParts): Operation[] {
  return [
    api.get(`${BASE}/queue/lanes`, {
      id: 'listLanes',
      summary: 'What waits for each lane, and what holds there',
      answers: { 200: LANES },
      handler: async ({ caller }) => ({ items: await parts.totals.lanes(scopeOf(parts, caller)) }),
    }),
    api.get(`${BASE}/queue/domains`, {
      id: 'listQueueDomains',
      summary: 'What waits per sending domain and per recipient domain',
      answers: { 200: QUEUE_DOMAINS },
      handler: async ({ caller }) => parts.totals.domains(scopeOf(parts, caller)),
    }),
    api.get(`${BASE}/queue/deliveries`, {
      id: 'listQueuedDeliveries',
      summary: 'What waits, delivery by delivery, and why',
      params: {
        ...FILTER_PARAMS,
        limit: limitParam(100, 1000),
        page: parsedParam('From a paging link', pageName),
        id: textParam('From a paging link'),
      },
      answers: { 200: QUEUED_DELIVERIES },
      async handler({ input, caller }) {
        const { limit, page, id, ...given } = input()
        const backwards = page === 'previous' || page === 'last'
        const from = (page === 'next' || page === 'previous') && id !== undefined ? placeOf(id) : null
        const { items, first, last } = await listQueue(parts, scopeOf(parts, caller), filterOf(given), {
          ...{ from, backwards, limit },
        })
        const paging = pivotPaging({
          baseUrl: parts.baseUrl,
          path: `${BASE}/queue/deliveries`,
          pivotName: 'id',
          firstItem: first ? pivotOf(first) : undefined,
          lastItem: last ? pivotOf(last) : undefined,
          pivot: id,
          carry: { ...given, limit },
        })
        return { items, paging }
      },
    }),
  ]
}

function actionRoute(parts: QueueRouteParts): Operation {
  const turns = createKeyedGate(TENANT_ACTIONS)
  return api.post(`${BASE}/queue/actions`, {
    id: 'runQueueAction',
    audit: {
      action: 'queue.act',
      given: ['action', 'filter', 'pool', 'dry_run'],
      made: ['matched', 'changed'],
    },
    summary: 'Pause, resume, retry, expire, drop or move what a filter matches',
    auth: WRITE,
    body: QUEUE_ACTION,
    answers: { 200: ACTION_RESULT },
    async handler({ params, caller, log, signal }) {
      const action = params.oneOf('action', ACTIONS)
      if (action === undefined) throw new BadRequest('Missing mandatory parameter: action')
      const filter = bodyFilter(params)
      const order = action === 'move' ? { action, pool: params.required('pool') } : { action }
      const dryRun = params.boolean('dry_run') ?? false
      const accountId = scopeOf(parts, caller)
      const run = () => runAction(parts, accountId, order, filter, dryRun)
      const result = dryRun || accountId === null ? await run() : await turns.run(accountId, signal, run)
      if (result === null) throw new TooManyWaiting(ACTIONS_RETRY_SECONDS)
      log.info({ ...order, filter, dryRun, key: caller.keyId, ...result }, 'queue action')
      return result
    },
  })
}

const pivotOf = ({ accountId, id }: Place) => `${accountId}.${id}`

/** @throws BadRequest for what `pivotOf` has not made */
function placeOf(pivot: string): Place {
  const [accountId, id, ...more] = pivot.split('.')
  if (accountId === undefined || id === undefined || more.length > 0) throw invalidFormat('id', pivot)
  return { accountId, id }
}

const FILTER_PARAMS = {
  domain: textParam('Sending domain'),
  recipient_domain: textParam('Domain of recipients'),
  provider: textParam('Display name of the provider'),
  lane: textParam('Name of a lane'),
  tag: textParam('Tag of the message'),
  message_id: textParam('Message-Id'),
  reason: textParam('Code of the reason'),
  older_than: textParam('Accepted before: 30s, 10m, 2h or 1d ago'),
}

type GivenFilter = { readonly [Name in keyof typeof FILTER_PARAMS]?: string | undefined }

/** @throws BadRequest without a filter, and for members that are unknown or not strings */
function bodyFilter(params: Params): QueueFilter {
  const given = params.value('filter')
  if (!isPlainObject(given) || Object.keys(given).length === 0)
    throw new BadRequest('Missing mandatory parameter: filter')
  for (const [name, value] of Object.entries(given)) {
    if (!Object.hasOwn(FILTER_PARAMS, name)) throw new BadRequest(`Unknown filter: ${name.slice(0, 100)}`)
    if (typeof value !== 'string' || value === '') throw invalidFormat(`filter.${name}`, jsonText(value))
  }
  return filterOf(given as GivenFilter, 'filter.')
}

/** @param prefix of the names in a BadRequest */
function filterOf(given: GivenFilter, prefix = ''): QueueFilter {
  const {
    domain,
    recipient_domain: recipientDomain,
    provider,
    lane,
    tag,
    message_id: messageId,
    reason,
  } = given
  const age = given.older_than
  const olderThanMs = age === undefined ? undefined : spanOf(age, `${prefix}older_than`)
  return { domain, recipientDomain, provider, lane, tag, messageId, reason, olderThanMs }
}

const UNIT_MS: Readonly<Record<string, number>> = { s: SECOND_MS, m: MINUTE_MS, h: HOUR_MS, d: DAY_MS }

/** `30s`, `10m`, `2h` or `1d` in milliseconds. */
function spanOf(text: string, name: string): number {
  const match = /^(\d{1,9})([smhd])$/.exec(text)
  if (!match) throw invalidFormat(name, text)
  return Number(match[1]) * (UNIT_MS[match[2] as string] as number)
}
