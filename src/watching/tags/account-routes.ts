/** Tags of an account over HTTP (tags-stats.md section 2). */

import { BadRequest } from '../../base/process/errors.ts'
import type { Clock } from '../../base/time/clock.ts'
import { isPlainObject, jsonObject, jsonText, quotable } from '../../base/values.ts'
import { csvReply, prefersCsv } from '../../platform/http/answer/reply.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import type { Params } from '../../platform/http/request/params.ts'
import { METRICS, type Metric } from '../metrics/figures.ts'
import { directionOf, flagOf, numberOf, pageLimitOf, textOf } from '../metrics/request-fields.ts'
import { CSV } from '../metrics/shapes.ts'
import {
  type AccountTagPage,
  type AccountTagParts,
  type AccountTagQuery,
  accountTagPage,
} from './account-tags.ts'
import type { KnownTags, TagLimits } from './known-tags.ts'
import { DESCRIPTION, TAG_PARAM } from './routes.ts'
import { ACCOUNT_TAG_LIMIT, ACCOUNT_TAG_PAGE, ACCOUNT_TAG_QUERY, DELETED, UPDATED } from './shapes.ts'
import type { AccountTagOrder } from './tag-store.ts'

interface AccountTagRouteParts extends AccountTagParts {
  known: Pick<KnownTags, 'forgetTags'>
  /** Tags of an account. */
  count(accountId: string): Promise<number>
  limits: TagLimits
  clock: Clock
}

const PATH = '/v1/analytics/tags'
const api = operationsOf({ tag: 'Tags', auth: { area: 'events' }, rateLimit: 'analytics' })
const READ = { area: 'events', access: 'read' } as const

const LIMIT_DEFAULT = 10
const LIMIT_MAX = 1000
/** A page with figures is shorter. */
const LIMIT_MAX_METRICS = 20
/** Skipped tags are read. */
const SKIP_MAX = 100_000

const COLUMNS: Readonly<Record<string, AccountTagOrder>> = {
  lastseen: 'last_seen',
  firstseen: 'first_seen',
  tag: 'tag_key',
}

const UNKNOWN = 'Tag not found'
const CSV_COLUMNS = ['account_id', 'account_name', 'tag', 'description', 'first_seen', 'last_seen'] as const

export function accountTagRoutes(parts: AccountTagRouteParts): Operation[] {
  const { tags, known, count, limits, clock } = parts
  return [
    api.post(PATH, {
      id: 'listAccountTags',
      summary: 'List or search the tags of the account',
      auth: READ,
      body: ACCOUNT_TAG_QUERY,
      answers: { 200: [ACCOUNT_TAG_PAGE, CSV], 400: 'A bad sort, limit or skip' },
      async handler({ params, caller, headers }) {
        const query = readQuery(params, caller.accountId)
        const page = await accountTagPage(parts, query, clock.now())
        return prefersCsv(headers.accept) ? accountTagsCsv(page, query) : page
      },
    }),
    api.put(PATH, {
      id: 'updateAccountTag',
      summary: 'Describe a tag of the account',
      audit: { action: 'account-tag.update', subject: ['tag'], given: ['tag'] },
      params: { tag: TAG_PARAM, description: DESCRIPTION },
      answers: { 200: UPDATED, 400: UNKNOWN },
      async handler({ input, caller }) {
        const { tag, description } = input()
        const isKnown = await tags.describeOfAccount(caller.accountId, tag, description)
        if (!isKnown) throw new BadRequest(UNKNOWN)
        return { message: 'Tag updated' }
      },
    }),
    api.delete(PATH, {
      id: 'deleteAccountTag',
      summary: 'Delete a tag on all domains of the account; its statistics stay',
      audit: { action: 'account-tag.delete', subject: ['tag'], given: ['tag'] },
      params: { tag: TAG_PARAM },
      answers: { 200: DELETED, 400: UNKNOWN },
      async handler({ input, caller }) {
        const { tag } = input()
        const domainIds = await tags.removeOfAccount(caller.accountId, tag)
        if (domainIds === null) throw new BadRequest(UNKNOWN)
        known.forgetTags(domainIds, tag)
        return { message: 'Tag deleted' }
      },
    }),
    api.get(`${PATH}/limits`, {
      id: 'readAccountTagLimits',
      summary: 'How many tags the account has and may have',
      answers: { 200: ACCOUNT_TAG_LIMIT },
      async handler({ caller }) {
        const limit = limits.perAccount
        const found = await count(caller.accountId)
        return { limit, count: found, limit_reached: limit > 0 && found >= limit }
      },
    }),
  ]
}

/** The columns of the items, and of the metrics if they are asked for. */
function accountTagsCsv({ items }: AccountTagPage, { includeMetrics }: AccountTagQuery) {
  const metrics = includeMetrics ? METRICS : []
  return csvReply(
    'tags.csv',
    [...CSV_COLUMNS, ...metrics],
    items.map((item) => [
      ...CSV_COLUMNS.map((name) => item[name] ?? null),
      ...metrics.map((name) => item.metrics[name] ?? null),
    ]),
  )
}

/** @throws BadRequest naming what is not understood */
function readQuery(params: Params, accountId: string): AccountTagQuery {
  const given = params.value('pagination')
  // The Ruby client sends text that is not JSON: then everything is the default (rule 5).
  const pagination = isPlainObject(given) ? given : (jsonObject(jsonText(given)) ?? {})
  const includeMetrics = params.boolean('include_metrics') ?? false
  const sort = textOf(pagination['sort']) || 'lastseen:desc'
  return {
    accountId,
    includeSubaccounts: params.boolean('include_subaccounts') ?? false,
    includeMetrics,
    includeTotal: flagOf('include_total', pagination['include_total']),
    prefix: params.text('tag')?.toLowerCase() ?? null,
    sort,
    ...sortOf(sort, includeMetrics),
    skip: skipOf(pagination['skip']),
    limit: pageLimitOf(pagination['limit'], LIMIT_DEFAULT, includeMetrics ? LIMIT_MAX_METRICS : LIMIT_MAX),
  }
}

function skipOf(value: unknown): number {
  const skip = numberOf('skip', value, 0)
  if (skip > SKIP_MAX) throw new BadRequest(`skip must not exceed ${SKIP_MAX}`)
  return skip
}

/** Figures can be sorted by only where they are shown (rule 2). */
function sortOf(sort: string, includeMetrics: boolean): Pick<AccountTagQuery, 'column' | 'descending'> {
  const { name, descending } = directionOf(sort)
  const metric = includeMetrics ? METRICS.find((known): known is Metric => known === name) : undefined
  const column = Object.hasOwn(COLUMNS, name) ? COLUMNS[name] : metric
  if (!column) throw new BadRequest(`invalid sort: ${quotable(sort)}`)
  return { column, descending }
}
