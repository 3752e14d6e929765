/** The queues of a domain and scheduled mail over HTTP (messages.md M6, M7; own-operations.md section 2). */
import { NotFound } from '../base/errors.ts'
import { invalidFormat } from '../base/values.ts'
import type { DomainDirectory } from '../domains/directory.ts'
import type { Domain } from '../domains/domain.ts'
import type { Caller } from '../http/auth.ts'
import { type Operation, operation } from '../http/operation.ts'
import { limitOf, pageUrl } from '../http/paging.ts'
import type { Params } from '../http/params.ts'
import { checkDeliveryTime } from './request/options.ts'
import {
  cancelScheduled,
  dropQueue,
  listScheduled,
  moveScheduled,
  type ScheduledParts,
} from './stored/scheduled.ts'

export interface ScheduledRouteParts extends ScheduledParts {
  domains: DomainDirectory
  baseUrl: string
}

const TAG = 'Messages'
const MESSAGE = { type: 'object', properties: { message: { type: 'string' } } }
const READ = { area: 'messages:stored', access: 'read' } as const
const WRITE = { area: 'messages:send', access: 'write' } as const
/** The most that any domain may schedule ahead; its own limit is checked at acceptance. */
const MOVE_MAX_MS = 7 * 86_400_000
const LIST_PATH = '/sendwright/v1/scheduled'

export function scheduledRoutes(parts: ScheduledRouteParts): Operation[] {
  return [
    operation({
      method: 'GET',
      path: '/v3/domains/{name}/sending_queues',
      aliases: ['/v3/{name}/sending_queues'],
      id: 'readSendingQueues',
      tag: TAG,
      summary: 'Whether the queues of a domain take mail',
      auth: { area: 'domains', access: 'read' },
      rateLimit: 'domains',
      params: [],
      responses: { 200: { description: 'The regular and the scheduled queue' } },
      handler: async ({ path, caller }) =>
        parts.queueLimits.status(await ownDomain(parts, caller, path.name, 'Domain not found')),
    }),
    operation({
      method: 'DELETE',
      path: '/v3/{domain_name}/envelopes',
      id: 'dropQueue',
      tag: TAG,
      summary: 'Drop scheduled and undelivered mail of a domain',
      auth: { area: 'domains', access: 'write' },
      params: [],
      responses: { 200: { description: 'Dropped', schema: MESSAGE } },
      async handler({ path, caller }) {
        await dropQueue(parts, await ownDomain(parts, caller, path.domain_name, 'domain not found'))
        return { message: 'done' }
      },
    }),
    operation({
      method: 'GET',
      path: LIST_PATH,
      id: 'listScheduled',
      tag: TAG,
      summary: 'List mail that is not due yet',
      auth: READ,
      params: [
        { name: 'domain', type: 'string', description: 'Sending domain' },
        { name: 'recipient', type: 'string', description: 'Bare address' },
        { name: 'tag', type: 'string', description: 'One whole tag' },
        { name: 'before', type: 'date', description: 'Due before' },
        { name: 'after', type: 'date', description: 'Due after' },
        { name: 'limit', type: 'integer', description: '1 to 1000', default: 100 },
        { name: 'page', type: 'string', description: 'From a paging link' },
      ],
      responses: { 200: { description: 'By due time' } },
      handler: async ({ params, caller }) => scheduledPage(parts, caller, params),
    }),
    operation({
      method: 'PATCH',
      path: `${LIST_PATH}/{message_id}`,
      id: 'moveScheduled',
      tag: TAG,
      summary: 'Move scheduled mail to another time',
      auth: WRITE,
      params: [{ name: 'deliverytime', type: 'date', required: true, description: 'The new time' }],
      responses: { 200: { description: 'Moved', schema: MESSAGE } },
      async handler({ params, path, caller }) {
        params.required('deliverytime')
        const time = params.date('deliverytime')?.getTime() ?? 0
        checkDeliveryTime(time, { now: parts.clock.now(), scheduleMaxMs: MOVE_MAX_MS })
        await moveScheduled(parts, caller.accountId, path.message_id, time)
        return { message: 'Message has been rescheduled' }
      },
    }),
    operation({
      method: 'DELETE',
      path: `${LIST_PATH}/{message_id}`,
      id: 'cancelScheduled',
      tag: TAG,
      summary: 'Cancel scheduled mail',
      auth: WRITE,
      params: [],
      responses: { 200: { description: 'Cancelled', schema: MESSAGE } },
      async handler({ path, caller }) {
        await cancelScheduled(parts, caller.accountId, path.message_id)
        return { message: 'Message has been cancelled' }
      },
    }),
  ]
}

async function ownDomain(
  { domains }: ScheduledRouteParts,
  caller: Caller,
  name: string,
  notFoundText: string,
): Promise<Domain> {
  const domain = await domains.byName(name)
  if (!domain || domain.accountId !== caller.accountId) throw new NotFound(notFoundText)
  return domain
}

async function scheduledPage(parts: ScheduledRouteParts, caller: Caller, params: Params): Promise<object> {
  const limit = limitOf(params, { default: 100, max: 1000 })
  const filter = {
    domain: params.text('domain'),
    recipient: params.text('recipient'),
    tag: params.text('tag'),
    before: params.date('before')?.getTime(),
    after: params.date('after')?.getTime(),
  }
  const from = positionOf(params.text('page'))
  const { items, last } = await listScheduled(parts, caller.accountId, filter, from, limit)
  const carried = ['domain', 'recipient', 'tag', 'before', 'after'].map(
    (name) => [name, params.text(name)] as const,
  )
  const next = last ?? from
  const page = next ? `${next.dueAt}.${next.id}` : undefined
  const link = (position: string | undefined) =>
    pageUrl(parts.baseUrl, LIST_PATH, [...carried, ['limit', limit], ['page', position]])
  return { items, paging: { first: link(undefined), next: link(page) } }
}

function positionOf(page: string | undefined): { dueAt: number; id: string } | null {
  if (page === undefined) return null
  const match = /^(\d{1,15})\.([-0-9A-Z_a-z]{22})$/.exec(page)
  if (!match) throw invalidFormat('page', page)
  return { dueAt: Number(match[1]), id: match[2] as string }
}
