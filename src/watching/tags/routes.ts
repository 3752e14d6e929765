/** Tags of a domain over HTTP (tags-stats.md section 1). */

import { BadRequest, present } from '../../base/process/errors.ts'
import type { Of } from '../../base/shape.ts'
import { formatRfc3339 } from '../../base/time/dates.ts'
import { csvReply, prefersCsv } from '../../platform/http/answer/reply.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import { limitParam, parsedParam, textParam } from '../../platform/http/request/inputs.ts'
import { type Paging, pageName, pageUrl } from '../../platform/http/request/paging.ts'
import type { Params } from '../../platform/http/request/params.ts'
import type { TagRow } from '../../platform/store/schema.ts'
import type { Domain } from '../../sending/domains/domain.ts'
import { type DomainDirectory, ownDomain } from '../../sending/domains/names/directory.ts'
import { CSV } from '../metrics/shapes.ts'
import { cleanTags } from './clean-tags.ts'
import type { KnownTags, TagLimits } from './known-tags.ts'
import { DELETED, TAG, TAG_LIMIT, TAG_PAGE, UPDATED } from './shapes.ts'
import type { TagStore } from './tag-store.ts'

interface TagRouteParts {
  tags: TagStore
  known: Pick<KnownTags, 'forgetTags'>
  /** Tags of a domain. */
  count(domainId: string): Promise<number>
  domains: DomainDirectory
  limits: TagLimits
  baseUrl: string
}

const DESCRIPTION_LENGTH_MAX = 1_000
const api = operationsOf({
  tag: 'Tags',
  auth: { area: 'events', domain: 'domain' },
  rateLimit: 'analytics',
  deprecated: true,
})

export const TAG_PARAM = textParam('In any letter case', { required: true })
export const DESCRIPTION = parsedParam(
  `At most ${DESCRIPTION_LENGTH_MAX} characters; empty: none`,
  descriptionOf,
)

const NOT_FOUND = { 404: 'Domain or tag not found' } as const
const NO_DOMAIN = { 404: 'Domain not found' } as const

const LIST_PARAMS = {
  limit: limitParam(100, 1000),
  page: parsedParam('Which page', pageName, { values: ['first', 'last', 'next', 'prev', 'previous'] }),
  tag: textParam('The tag before or after which the page is'),
  p: textParam('The same as `tag`'),
  prefix: textParam('Only tags that begin with it'),
}

export function tagRoutes(parts: TagRouteParts): Operation[] {
  return [listRoute(parts), ...queryRoutes(parts), ...pathRoutes(parts), limitRoute(parts)]
}

function listRoute({ tags, domains, baseUrl }: TagRouteParts): Operation {
  return api.get('/v3/{domain}/tags', {
    id: 'listTags',
    summary: 'List the tags of a domain by name',
    params: LIST_PARAMS,
    answers: { 200: [TAG_PAGE, CSV], ...NO_DOMAIN },
    async handler({ input, path, caller, headers }) {
      const domain = await ownDomain(domains, caller, path.domain)
      const { limit, page, prefix, ...given } = input()
      const pivot = given.tag ?? given.p
      const rows = await tags.page(domain.id, {
        page,
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
      const links: Paging = {
        first: link('first', undefined),
        last: link('last', undefined),
        next: link('next', rows.at(-1)?.tag ?? pivot),
        previous: link('prev', rows.at(0)?.tag ?? pivot),
      }
      return { items: rows.map(tagView), paging: links }
    },
  })
}

const tagView = ({ tag, description, first_seen, last_seen }: TagRow): Of<typeof TAG> => ({
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
    api.get(path, {
      id: 'readTag',
      summary: 'Read a tag',
      params: { tag: TAG_PARAM },
      answers: { 200: TAG, ...NOT_FOUND },
      handler: async ({ input, path: { domain }, caller }) =>
        read(parts, await ownDomain(parts.domains, caller, domain), input().tag),
    }),
    api.put(path, {
      id: 'updateTag',
      summary: 'Describe a tag',
      audit: { action: 'tag.update', subject: ['tag'], given: ['tag'] },
      params: {
        tag: textParam('In any letter case', { required: true, in: 'query' }),
        description: DESCRIPTION,
      },
      answers: { 200: UPDATED, ...NO_DOMAIN },
      async handler({ input, path: { domain }, caller }) {
        const own = await ownDomain(parts.domains, caller, domain)
        const { tag, description } = input()
        return update(parts, own, tag, description)
      },
    }),
    api.delete(path, {
      id: 'deleteTag',
      summary: 'Delete a tag; its statistics stay',
      audit: { action: 'tag.delete', subject: ['tag'], given: ['tag'] },
      params: { tag: TAG_PARAM },
      answers: { 200: DELETED, ...NO_DOMAIN },
      handler: async ({ input, path: { domain }, caller }) =>
        remove(parts, await ownDomain(parts.domains, caller, domain), input().tag),
    }),
  ]
}

function pathRoutes(parts: TagRouteParts): Operation[] {
  const path = '/v3/{domain}/tags/{tag}'
  return [
    api.get(path, {
      id: 'readTagByPath',
      summary: 'Read a tag; it is in the path',
      answers: { 200: TAG, ...NOT_FOUND },
      async handler({ path: { domain, tag }, caller }) {
        const own = await ownDomain(parts.domains, caller, domain)
        return read(parts, own, await inPath(parts, own, tag))
      },
    }),
    api.put(path, {
      id: 'updateTagByPath',
      summary: 'Describe a tag; it is in the path',
      audit: { action: 'tag.update' },
      params: { description: DESCRIPTION },
      answers: { 200: UPDATED, ...NO_DOMAIN },
      async handler({ input, path: { domain, tag }, caller }) {
        const own = await ownDomain(parts.domains, caller, domain)
        return update(parts, own, await inPath(parts, own, tag), input().description)
      },
    }),
    api.delete(path, {
      id: 'deleteTagByPath',
      summary: 'Delete a tag, which is in the path; its statistics stay',
      audit: { action: 'tag.delete' },
      answers: { 200: DELETED, ...NO_DOMAIN },
      async handler({ path: { domain, tag }, caller }) {
        const own = await ownDomain(parts.domains, caller, domain)
        return remove(parts, own, await inPath(parts, own, tag))
      },
    }),
  ]
}

function limitRoute({ domains, limits, count }: TagRouteParts): Operation {
  return api.get('/v3/domains/{domain}/limits/tag', {
    id: 'readTagLimit',
    summary: 'How many tags a domain has and may have',
    answers: { 200: TAG_LIMIT, ...NO_DOMAIN },
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

async function read({ tags }: TagRouteParts, domain: Domain, tag: string) {
  const row = present(await tags.find(domain.id, tag), 'Tag not found')
  return tagView(row)
}

function descriptionOf(params: Params, name: string): string {
  const description = params.given(name) ?? ''
  if (description.length > DESCRIPTION_LENGTH_MAX) {
    throw new BadRequest(`${name}: at most ${DESCRIPTION_LENGTH_MAX} characters`)
  }
  return description.replaceAll('\0', '')
}

async function update(parts: TagRouteParts, domain: Domain, given: string, description: string) {
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

async function remove({ tags, known }: TagRouteParts, domain: Domain, tag: string) {
  await tags.remove(domain, tag)
  known.forgetTags([domain.id], tag)
  return { message: 'Tag deleted' }
}
