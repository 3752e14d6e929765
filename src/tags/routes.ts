/** Tags of a domain over HTTP (tags-stats.md section 1). */
import { formatRfc3339 } from '../base/dates.ts'
import { BadRequest, NotFound } from '../base/errors.ts'
import type { DomainDirectory } from '../domains/directory.ts'
import type { Domain } from '../domains/domain.ts'
import { ownDomain } from '../domains/routes.ts'
import { csvReply, prefersCsv } from '../http/csv-reply.ts'
import { type Operation, operation, type ParamDoc } from '../http/operation.ts'
import { limitOf, type PageName, pageName, pageUrl } from '../http/paging.ts'
import type { Params } from '../http/params.ts'
import type { TagRow } from '../store/schema.ts'
import { cleanTags } from './clean-tags.ts'
import type { KnownTags, TagLimits } from './known-tags.ts'
import type { TagStore } from './tag-store.ts'

export interface TagRouteParts {
  tags: TagStore
  known: Pick<KnownTags, 'forgetTags'>
  /** Tags of a domain. */
  count(domainId: string): Promise<number>
  domains: DomainDirectory
  limits: TagLimits
  baseUrl: string
}

const LIMIT = { default: 100, max: 1000 }
const COMMON = { tag: 'Tags', deprecated: true, rateLimit: 'analytics' } as const
const READ = { area: 'events', access: 'read', domain: 'domain' } as const
const WRITE = { ...READ, access: 'write' } as const

const TAG: ParamDoc = { name: 'tag', type: 'string', description: 'In any letter case', required: true }
const TAG_IN_QUERY: ParamDoc = { ...TAG, in: 'query' }
const DESCRIPTION: ParamDoc = { name: 'description', type: 'string', description: 'Empty: none' }

const NOT_FOUND = { 404: { description: 'Domain or tag not found' } } as const
const NO_DOMAIN = { 404: { description: 'Domain not found' } } as const

const LIST_PARAMS: readonly ParamDoc[] = [
  { name: 'limit', type: 'integer', description: 'Tags on a page, 1 to 1000', default: LIMIT.default },
  {
    name: 'page',
    type: 'string',
    description: 'Which page',
    values: ['first', 'last', 'next', 'prev', 'previous'],
  },
  { name: 'tag', type: 'string', description: 'The tag before or after which the page is' },
  { name: 'p', type: 'string', description: 'The same as `tag`' },
  { name: 'prefix', type: 'string', description: 'Only tags that begin with it' },
]

export function tagRoutes(parts: TagRouteParts): Operation[] {
  return [listRoute(parts), ...queryRoutes(parts), ...pathRoutes(parts), limitRoute(parts)]
}

function listRoute({ tags, domains, baseUrl }: TagRouteParts): Operation {
  return operation({
    ...COMMON,
    method: 'GET',
    path: '/v3/{domain}/tags',
    id: 'listTags',
    summary: 'List the tags of a domain by name',
    auth: READ,
    params: LIST_PARAMS,
    responses: { 200: { description: 'A page; CSV for `Accept: text/csv`' }, ...NO_DOMAIN },
    async handler({ params, path, caller, headers }) {
      const domain = await ownDomain(domains, caller, path.domain)
      const limit = limitOf(params, LIMIT)
      const prefix = params.text('prefix')
      const pivot = params.text('tag') ?? params.text('p')
      const rows = await tags.page(domain.id, {
        page: pageName(params),
        pivot: pivot?.toLowerCase() ?? null,
        prefix: prefix?.toLowerCase() ?? null,
        limit,
      })
      if (prefersCsv(headers.accept)) return csvReply('tags.csv', CSV_HEADER, rows.map(csvRow))
      const link = (page: string, tag: string | undefined) =>
        pageUrl(baseUrl, `/v3/${encodeURIComponent(domain.name)}/tags`, [
          ['limit', limit],
          ['page', page],
          ['tag', tag ?? ''],
          ['prefix', prefix],
        ])
      const links: Record<PageName, string> = {
        first: link('first', undefined),
        last: link('last', undefined),
        next: link('next', rows.at(-1)?.tag ?? pivot),
        previous: link('prev', rows.at(0)?.tag ?? pivot),
      }
      return { items: rows.map(tagView), paging: links }
    },
  })
}

const tagView = ({ tag, description, first_seen, last_seen }: TagRow) => ({
  tag,
  description,
  ...(first_seen > 0 && { 'first-seen': formatRfc3339(new Date(first_seen)) }),
  ...(last_seen > 0 && { 'last-seen': formatRfc3339(new Date(last_seen)) }),
})

const CSV_HEADER = ['tag', 'description', 'first_seen', 'last_seen']
const csvRow = ({ tag, description, first_seen: first, last_seen: last }: TagRow) => [
  ...[tag, description],
  ...[first, last].map((time) => (time > 0 ? formatRfc3339(new Date(time)) : null)),
]

function queryRoutes(parts: TagRouteParts): Operation[] {
  const path = '/v3/{domain}/tag'
  return [
    operation({
      ...COMMON,
      method: 'GET',
      path,
      id: 'readTag',
      summary: 'Read a tag',
      auth: READ,
      params: [TAG],
      responses: { 200: { description: 'The tag' }, ...NOT_FOUND },
      handler: async ({ params, path: { domain }, caller }) =>
        read(parts, await ownDomain(parts.domains, caller, domain), params.required('tag')),
    }),
    operation({
      ...COMMON,
      method: 'PUT',
      path,
      id: 'updateTag',
      summary: 'Describe a tag',
      auth: WRITE,
      audit: { action: 'tag.update', subject: ['tag'], given: ['tag'] },
      params: [TAG_IN_QUERY, DESCRIPTION],
      responses: { 200: { description: 'Described; a tag that was not there is created' }, ...NO_DOMAIN },
      handler: async ({ params, path: { domain }, caller }) =>
        update(parts, await ownDomain(parts.domains, caller, domain), params.required('tag'), params),
    }),
    operation({
      ...COMMON,
      method: 'DELETE',
      path,
      id: 'deleteTag',
      summary: 'Delete a tag; its statistics stay',
      auth: WRITE,
      audit: { action: 'tag.delete', subject: ['tag'], given: ['tag'] },
      params: [TAG],
      responses: { 200: { description: 'Deleted, or not there' }, ...NO_DOMAIN },
      handler: async ({ params, path: { domain }, caller }) =>
        remove(parts, await ownDomain(parts.domains, caller, domain), params.required('tag')),
    }),
  ]
}

function pathRoutes(parts: TagRouteParts): Operation[] {
  const path = '/v3/{domain}/tags/{tag}'
  return [
    operation({
      ...COMMON,
      method: 'GET',
      path,
      id: 'readTagByPath',
      summary: 'Read a tag; it is in the path',
      auth: READ,
      params: [],
      responses: { 200: { description: 'The tag' }, ...NOT_FOUND },
      async handler({ path: { domain, tag }, caller }) {
        const own = await ownDomain(parts.domains, caller, domain)
        return read(parts, own, await inPath(parts, own, tag))
      },
    }),
    operation({
      ...COMMON,
      method: 'PUT',
      path,
      id: 'updateTagByPath',
      summary: 'Describe a tag; it is in the path',
      auth: WRITE,
      audit: { action: 'tag.update' },
      params: [DESCRIPTION],
      responses: { 200: { description: 'Described; a tag that was not there is created' }, ...NO_DOMAIN },
      async handler({ params, path: { domain, tag }, caller }) {
        const own = await ownDomain(parts.domains, caller, domain)
        return update(parts, own, await inPath(parts, own, tag), params)
      },
    }),
    operation({
      ...COMMON,
      method: 'DELETE',
      path,
      id: 'deleteTagByPath',
      summary: 'Delete a tag, which is in the path; its statistics stay',
      auth: WRITE,
      audit: { action: 'tag.delete' },
      params: [],
      responses: { 200: { description: 'Deleted, or not there' }, ...NO_DOMAIN },
      async handler({ path: { domain, tag }, caller }) {
        const own = await ownDomain(parts.domains, caller, domain)
        return remove(parts, own, await inPath(parts, own, tag))
      },
    }),
  ]
}

function limitRoute({ domains, limits, count }: TagRouteParts): Operation {
  return operation({
    ...COMMON,
    method: 'GET',
    path: '/v3/domains/{domain}/limits/tag',
    id: 'readTagLimit',
    summary: 'How many tags a domain has and may have',
    auth: READ,
    params: [],
    responses: { 200: { description: 'Limit (0: none) and count' }, ...NO_DOMAIN },
    async handler({ path, caller }) {
      const domain = await ownDomain(domains, caller, path.domain)
      return { id: domain.name, limit: limits.perDomain, count: await count(domain.id) }
    },
  })
}

/** A plus sign may stand for a space, if there is no tag with the plus (auth-limits.md section 1 rule 10). */
async function inPath({ tags }: TagRouteParts, domain: Domain, tag: string): Promise<string> {
  if (!tag.includes('+') || (await tags.find(domain.id, tag))) return tag
  const spaced = tag.replaceAll('+', ' ')
  return (await tags.find(domain.id, spaced)) ? spaced : tag
}

async function read({ tags }: TagRouteParts, domain: Domain, tag: string): Promise<object> {
  const row = await tags.find(domain.id, tag)
  if (!row) throw new NotFound('Tag not found')
  return tagView(row)
}

const DESCRIPTION_LENGTH_MAX = 1_000

/** @throws BadRequest over the limit */
export function descriptionOf(params: Params): string {
  const description = params.given('description') ?? ''
  if (description.length > DESCRIPTION_LENGTH_MAX) {
    throw new BadRequest(`description: at most ${DESCRIPTION_LENGTH_MAX} characters`)
  }
  return description.replaceAll('\0', '')
}

async function update(parts: TagRouteParts, domain: Domain, given: string, params: Params): Promise<object> {
  const description = descriptionOf(params)
  const [tag] = cleanTags([given])
  if (tag === undefined) throw new BadRequest('Missing mandatory parameter: tag')
  if (!(await parts.tags.describe(domain, tag, description, false))) {
    const { perDomain } = parts.limits
    const count = await parts.count(domain.id)
    if (perDomain > 0 && count >= perDomain) {
      throw new BadRequest(`Cannot create a tag: the domain has ${count} of ${perDomain} tags`)
    }
    await parts.tags.describe(domain, tag, description, true)
  }
  return { message: 'Tag updated' }
}

async function remove({ tags, known }: TagRouteParts, domain: Domain, tag: string): Promise<object> {
  await tags.remove(domain, tag)
  known.forgetTags([domain.id], tag)
  return { message: 'Tag deleted' }
}
