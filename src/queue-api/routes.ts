/** Deliveries and the queue over HTTP (own-operations.md sections 2 and 3). */
import { BadRequest } from '../base/errors.ts'
import { invalidFormat, isPlainObject, jsonText } from '../base/values.ts'
import type { Caller } from '../http/auth.ts'
import { type Operation, operation } from '../http/operation.ts'
import { limitOf, pageName, pivotPaging } from '../http/paging.ts'
import type { Params } from '../http/params.ts'
import { ACTIONS, type ActionParts, type QueueFilter, runAction } from './actions.ts'
import { listDeliveries, readTranscripts } from './deliveries.ts'

export interface QueueRouteParts extends ActionParts {
  baseUrl: string
  /** The operator's: its callers see and change the queues of all accounts. */
  firstAccountId: string
}

const BASE = '/sendwright/v1'
const TAG = 'Queue'
const READ = { area: 'events', access: 'read' } as const
const WRITE = { area: 'domains', access: 'write' } as const
const PAGE_SIZE = 100

export function queueRoutes(parts: QueueRouteParts): Operation[] {
  const scope = (caller: Caller) => (caller.accountId === parts.firstAccountId ? null : caller.accountId)
  return [
    operation({
      method: 'GET',
      path: `${BASE}/messages/{message_id}/deliveries`,
      id: 'listDeliveries',
      tag: TAG,
      summary: 'Where a message is, recipient by recipient, and why',
      auth: READ,
      params: [
        { name: 'limit', type: 'integer', description: 'Page size, 1 to 1000', default: PAGE_SIZE },
        { name: 'page', type: 'string', description: 'From a paging link' },
        { name: 'id', type: 'string', description: 'From a paging link' },
      ],
      responses: { 200: { description: 'A page of deliveries' } },
      async handler({ params, path, caller }) {
        const limit = limitOf(params, { default: PAGE_SIZE, max: 1000 })
        const pivot = params.text('id')
        const page = { name: pageName(params), pivot, limit }
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
    operation({
      method: 'GET',
      path: `${BASE}/deliveries/{id}/transcript`,
      id: 'readTranscript',
      tag: TAG,
      summary: 'The SMTP dialogue of each attempt that was kept',
      auth: READ,
      params: [],
      responses: { 200: { description: 'Dialogues, first attempt first' } },
      handler: async ({ path, caller }) => ({
        items: await readTranscripts(parts.store, caller.accountId, path.id),
      }),
    }),
    operation({
      method: 'GET',
      path: `${BASE}/queue/lanes`,
      id: 'listLanes',
      tag: TAG,
      summary: 'What waits for each lane, and what holds there',
      auth: READ,
      params: [],
      responses: { 200: { description: 'Lanes' } },
      handler: async ({ caller }) => ({ items: await parts.totals.lanes(scope(caller)) }),
    }),
    operation({
      method: 'GET',
      path: `${BASE}/queue/domains`,
      id: 'listQueueDomains',
      tag: TAG,
      summary: 'What waits per sending domain and per recipient domain',
      auth: READ,
      params: [],
      responses: { 200: { description: 'Domains' } },
      handler: async ({ caller }) => parts.totals.domains(scope(caller)),
    }),
    operation({
      method: 'POST',
      path: `${BASE}/queue/actions`,
      id: 'runQueueAction',
      audit: {
        action: 'queue.act',
        given: ['action', 'filter', 'pool', 'dry_run'],
        made: ['matched', 'changed'],
      },
      tag: TAG,
      summary: 'Pause, resume, retry, drop or move what a filter matches',
      auth: WRITE,
      params: [],
      body: {
        description: 'Action, filter and whether to count only',
        schema: {
          type: 'object',
          required: ['action', 'filter'],
          properties: {
            action: { type: 'string', enum: ACTIONS },
            filter: {
              type: 'object',
              properties: Object.fromEntries(FILTER_NAMES.map((name) => [name, { type: 'string' }])),
            },
            pool: { type: 'string' },
            dry_run: { type: 'boolean' },
          },
        },
      },
      responses: { 200: { description: '`{matched, changed}`' } },
      async handler({ params, caller, log }) {
        const action = params.oneOf('action', ACTIONS)
        if (action === undefined) throw new BadRequest('Missing mandatory parameter: action')
        const filter = filterOf(params)
        const order = action === 'move' ? { action, pool: params.required('pool') } : { action }
        const dryRun = params.boolean('dry_run') ?? false
        const result = await runAction(parts, scope(caller), order, filter, dryRun)
        log.info({ ...order, filter, dryRun, key: caller.keyId, ...result }, 'queue action')
        return { ...result }
      },
    }),
  ]
}

const FILTER_NAMES = [
  'domain',
  'recipient_domain',
  'provider',
  'lane',
  'tag',
  'message_id',
  'older_than',
] as const

/** @throws BadRequest without a filter, and for members that are unknown or not strings */
function filterOf(params: Params): QueueFilter {
  const given = params.value('filter')
  if (!isPlainObject(given) || Object.keys(given).length === 0)
    throw new BadRequest('Missing mandatory parameter: filter')
  const texts = new Map<string, string>()
  for (const [name, value] of Object.entries(given)) {
    if (!FILTER_NAMES.some((known) => known === name))
      throw new BadRequest(`Unknown filter: ${name.slice(0, 100)}`)
    if (typeof value !== 'string' || value === '') throw invalidFormat(`filter.${name}`, jsonText(value))
    texts.set(name, value)
  }
  const filter: QueueFilter = {}
  const take = (name: (typeof FILTER_NAMES)[number], set: (value: string) => void) => {
    const value = texts.get(name)
    if (value !== undefined) set(value)
  }
  take('domain', (value) => (filter.domain = value))
  take('recipient_domain', (value) => (filter.recipientDomain = value))
  take('provider', (value) => (filter.provider = value))
  take('lane', (value) => (filter.lane = value))
  take('tag', (value) => (filter.tag = value))
  take('message_id', (value) => (filter.messageId = value))
  take('older_than', (value) => (filter.olderThanMs = spanOf(value)))
  return filter
}

const UNIT_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** `30s`, `10m`, `2h` or `1d` in milliseconds. */
function spanOf(text: string): number {
  const match = /^(\d{1,9})([smhd])$/.exec(text)
  if (!match) throw invalidFormat('filter.older_than', text)
  return Number(match[1]) * (UNIT_MS[match[2] as string] as number)
}
