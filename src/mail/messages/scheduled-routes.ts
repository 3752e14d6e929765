/** The queues of a domain and scheduled mail over HTTP (messages.md M6, M7; own-operations.md section 2). */
import { NotFound } from '../../base/process/errors.ts'
import { message, type Of } from '../../base/shape.ts'
import { invalidFormat } from '../../base/values.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import {
  dateParam,
  type InputOf,
  limitParam,
  textParam,
  wordParam,
} from '../../platform/http/request/inputs.ts'
import { pageUrl } from '../../platform/http/request/paging.ts'
import type { Params } from '../../platform/http/request/params.ts'
import type { Caller } from '../../platform/http/rights/auth.ts'
import type { Domain } from '../../sending/domains/domain.ts'
import type { DomainDirectory } from '../../sending/domains/names/directory.ts'
import { checkDeliveryTime } from '../request/options.ts'
import {
  cancelScheduled,
  dropQueue,
  listScheduled,
  moveScheduled,
  type ScheduledParts,
} from '../stored/scheduled.ts'
import { QUEUES, SCHEDULED_PAGE } from '../stored/shapes.ts'

export interface ScheduledRouteParts extends ScheduledParts {
  domains: DomainDirectory
  baseUrl: string
}

const api = operationsOf({ tag: 'Messages', auth: { area: 'domains' } })
const READ = { area: 'messages:stored', access: 'read' } as const
const WRITE = { area: 'messages:send', access: 'write' } as const
/** The most that any domain may schedule ahead; its own limit is checked at acceptance. */
const MOVE_MAX_MS = 7 * 86_400_000
const LIST_PATH = '/sendwright/v1/scheduled'

const LIST_PARAMS = {
  limit: limitParam(100, 1000),
  domain: textParam('Sending domain'),
  recipient: textParam('Bare address'),
  tag: textParam('One whole tag'),
  before: dateParam('Due before'),
  after: dateParam('Due after'),
  page: wordParam('From a paging link', positionOf),
}

export function scheduledRoutes(parts: ScheduledRouteParts): Operation[] {
  return [
    api.get('/v3/domains/{name}/sending_queues', {
      aliases: ['/v3/{name}/sending_queues'],
      id: 'readSendingQueues',
      summary: 'Whether the queues of a domain take mail',
      rateLimit: 'domains',
      answers: { 200: QUEUES },
      handler: async ({ path, caller }) =>
        parts.queueLimits.status(await ownDomain(parts, caller, path.name, 'Domain not found')),
    }),
    api.delete('/v3/{domain_name}/envelopes', {
      id: 'dropQueue',
      summary: 'Drop scheduled and undelivered mail of a domain',
      answers: { 200: message('done', 'Dropped') },
      async handler({ path, caller }) {
        await dropQueue(parts, await ownDomain(parts, caller, path.domain_name, 'domain not found'))
        return { message: 'done' }
      },
    }),
    api.get(LIST_PATH, {
      id: 'listScheduled',
      summary: 'List mail that is not due yet',
      auth: READ,
      params: LIST_PARAMS,
      answers: { 200: SCHEDULED_PAGE },
      handler: async ({ params, input, caller }) => scheduledPage(parts, caller, input(), params),
    }),
    api.patch(`${LIST_PATH}/{message_id}`, {
      id: 'moveScheduled',
      summary: 'Move scheduled mail to another time',
      auth: WRITE,
      params: { deliverytime: dateParam('The new time', { required: true }) },
      answers: {
        200: message('Message has been rescheduled', 'Moved'),
        409: 'Part of it was delivered, or copies for a list are being made',
      },
      async handler({ input, path, caller }) {
        const time = input().deliverytime.getTime()
        checkDeliveryTime(time, { now: parts.clock.now(), scheduleMaxMs: MOVE_MAX_MS })
        await moveScheduled(parts, caller.accountId, path.message_id, time)
        return { message: 'Message has been rescheduled' }
      },
    }),
    api.delete(`${LIST_PATH}/{message_id}`, {
      id: 'cancelScheduled',
      summary: 'Cancel scheduled mail',
      auth: WRITE,
      answers: {
        200: message('Message has been cancelled', 'Cancelled'),
        409: 'Part of it was delivered, or copies for a list are being made',
      },
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

async function scheduledPage(
  parts: ScheduledRouteParts,
  caller: Caller,
  { limit, before, after, page: given, ...texts }: InputOf<typeof LIST_PARAMS>,
  params: Params,
): Promise<Of<typeof SCHEDULED_PAGE>> {
  const from = given ?? null
  const filter = { ...texts, before: before?.getTime(), after: after?.getTime() }
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

function positionOf(page: string): { dueAt: number; id: string } {
  const match = /^(\d{1,15})\.([-0-9A-Z_a-z]{22})$/.exec(page)
  if (!match) throw invalidFormat('page', page)
  return { dueAt: Number(match[1]), id: match[2] as string }
}
