/** Templates over HTTP: the operations of a domain and those of the account are the same (templates.md T1 to T14). */
import { formatUtc } from '../base/dates.ts'
import { BadRequest, NotFound } from '../base/errors.ts'
import { isPlainObject } from '../base/values.ts'
import type { DomainDirectory } from '../domains/directory.ts'
import type { RecordedCall } from '../http/audit-rule.ts'
import type { Caller } from '../http/auth.ts'
import {
  type Method,
  type Operation,
  operation,
  type ParamDoc,
  type PathNames,
  type ResponseDoc,
} from '../http/operation.ts'
import { limitOf, type PageName, pageName, pivotPaging } from '../http/paging.ts'
import type { Params } from '../http/params.ts'
import type { CopyRequest } from './copying.ts'
import type { TemplateService } from './service.ts'
import {
  NOTE_LENGTH_MAX,
  readTemplateHeaders,
  storedName,
  type Template,
  type TemplateScope,
  type Version,
  type VersionSummary,
} from './template.ts'
import type { GivenContent } from './version-content.ts'

const TAG = 'Templates'
const PAGE_MAX = 100
/** Accounts that one call may copy to. */
const COPIES_MAX = 100
const FIRST_TAG = 'initial'

export interface TemplateRouteParts {
  templates: TemplateService
  domains: DomainDirectory
  /** Without a final slash. */
  baseUrl: string
}

interface ScopedRequest<Name extends string> {
  params: Params
  path: Readonly<Record<Name, string>>
  scope: TemplateScope
  /** Path of the list of templates, percent-encoded. */
  root: string
}

interface ScopedOperation<S extends string> {
  method: Method
  /** What follows `.../templates` in the path. */
  suffix: S
  audit?: RecordedCall
  /** Id of the domain's operation; the account's has `Account` before `Template`. */
  id: string
  summary: string
  params?: readonly ParamDoc[]
  responses?: Readonly<Record<number, ResponseDoc>>
  handler(request: ScopedRequest<PathNames<S>>): Promise<object>
}

const NAME: ParamDoc = { name: 'name', in: 'path', type: 'string', description: 'Name or id of the template' }
const VERSION_TAG: ParamDoc = { name: 'tag', in: 'path', type: 'string', description: 'Tag of the version' }
const PAGES: readonly ParamDoc[] = [
  {
    name: 'page',
    type: 'string',
    description: 'Which page; next and previous need p',
    values: ['first', 'last', 'next', 'previous', 'prev'],
  },
  { name: 'limit', type: 'integer', description: 'Page size, 1 to 100', default: PAGE_MAX },
  { name: 'p', type: 'string', description: 'The name (or tag) before or after which the page begins' },
]
const text = (name: string, description: string): ParamDoc => ({ name, type: 'string', description })
const CONTENT: readonly ParamDoc[] = [
  text('template', 'Content: HTML with Handlebars, at most 100 KB'),
  text('mjml', 'MJML source instead of template'),
  text('comment', 'Comment on the version'),
  {
    name: 'headers',
    type: 'json',
    description: 'Object of From, Subject, Reply-To; Handlebars in the values',
  },
]
const ENGINE: ParamDoc = {
  name: 'engine',
  type: 'string',
  description: 'Of the content',
  values: ['handlebars', 'mjml'],
  default: 'handlebars',
}
const ACTIVE: ParamDoc = {
  name: 'active',
  type: 'boolean',
  description: 'yes makes this version the active one',
}

export function templateRoutes(parts: TemplateRouteParts): Operation[] {
  return [...templateOperations(parts), ...versionOperations(parts), copyOperation(parts)]
}

function templateOperations(parts: TemplateRouteParts): Operation[] {
  const { templates } = parts
  return [
    ...scoped(parts, {
      method: 'GET',
      suffix: '',
      id: 'listTemplates',
      summary: 'List templates by name',
      params: PAGES,
      async handler({ params, scope, root }) {
        const query = pageQuery(params)
        const page = pageOf(await templates.list(scope), ({ name }) => name, query, true)
        return {
          items: page.map(templateView),
          paging: paging(parts.baseUrl, root, page, ({ name }) => name, query),
        }
      },
    }),
    ...scoped(parts, {
      method: 'POST',
      suffix: '',
      id: 'createTemplate',
      audit: { subject: ['name'], given: ['tag'] },
      summary: 'Store a template, with its first version when content is given',
      params: [
        { ...text('name', 'Name, up to 256 characters; kept in lower case'), required: true },
        text('description', 'Description'),
        text('createdBy', 'Who made it, free text'),
        { ...text('tag', 'Tag of the first version'), default: FIRST_TAG },
        ...CONTENT,
        ENGINE,
      ],
      async handler({ params, scope }) {
        const name = storedName('name', params.required('name'))
        const fields = {
          name,
          description: note(params, 'description'),
          createdBy: note(params, 'createdBy'),
        }
        const hasContent = params.text('template') !== undefined || params.text('mjml') !== undefined
        const first = hasContent && {
          tag: storedName('tag', params.text('tag') ?? FIRST_TAG),
          comment: note(params, 'comment'),
          given: givenContent(params),
        }
        const { template, version } = await templates.create(scope, fields, first || null)
        return { message: 'template has been stored', template: withVersion(template, version) }
      },
    }),
    ...scoped(parts, {
      method: 'DELETE',
      suffix: '',
      id: 'deleteTemplates',
      summary: 'Delete all templates with their versions',
      async handler({ scope }) {
        await templates.removeAll(scope)
        return { message: 'templates have been deleted' }
      },
    }),
    ...scoped(parts, {
      method: 'GET',
      suffix: '/{name}',
      id: 'readTemplate',
      summary: 'Read a template',
      params: [
        NAME,
        { name: 'active', type: 'boolean', description: 'yes adds the active version', default: false },
      ],
      async handler({ params, path, scope }) {
        const active = params.boolean('active') ?? false
        const template = await templates.find(scope, path.name)
        return { template: withVersion(template, active ? await templates.activeVersion(template) : null) }
      },
    }),
    ...scoped(parts, {
      method: 'PUT',
      suffix: '/{name}',
      id: 'updateTemplate',
      summary: 'Change the description of a template',
      params: [NAME, { ...text('description', 'Description'), required: true }],
      async handler({ params, path, scope }) {
        if (params.given('description') === undefined) throw nothingGiven()
        const { name } = await templates.describe(scope, path.name, note(params, 'description'))
        return { message: 'template has been updated', template: { name } }
      },
    }),
    ...scoped(parts, {
      method: 'DELETE',
      suffix: '/{name}',
      id: 'deleteTemplate',
      summary: 'Delete a template with its versions',
      params: [NAME],
      async handler({ path, scope }) {
        const { name } = await templates.remove(scope, path.name)
        return { message: 'template has been deleted', template: { name } }
      },
    }),
    ...scoped(parts, {
      method: 'PUT',
      suffix: '/{name}/rename/{new_name}',
      id: 'renameTemplate',
      summary: 'Give a template another name',
      params: [NAME, { ...NAME, name: 'new_name', description: 'The new name' }],
      async handler({ path, scope }) {
        const name = await templates.rename(scope, path.name, storedName('name', path.new_name))
        return { message: 'template has been renamed', template: { name } }
      },
    }),
  ]
}

function versionOperations(parts: TemplateRouteParts): Operation[] {
  const { templates } = parts
  return [
    ...scoped(parts, {
      method: 'GET',
      suffix: '/{name}/versions',
      id: 'listTemplateVersions',
      summary: 'List the versions of a template, oldest first, without their contents',
      params: [NAME, ...PAGES],
      async handler({ params, path, scope, root }) {
        const query = pageQuery(params)
        const template = await templates.find(scope, path.name)
        const page = pageOf(await templates.versions(template), ({ tag }) => tag, query, false)
        const list = `${root}/${encodeURIComponent(template.name)}/versions`
        return {
          template: { ...templateView(template), versions: page.map(summaryView) },
          paging: paging(parts.baseUrl, list, page, ({ tag }) => tag, query),
        }
      },
    }),
    ...scoped(parts, {
      method: 'POST',
      suffix: '/{name}/versions',
      id: 'createTemplateVersion',
      audit: { given: ['tag'] },
      summary: 'Add a version to a template; the first one is active in any case',
      params: [NAME, { ...text('tag', 'Tag of the version'), required: true }, ...CONTENT, ENGINE, ACTIVE],
      async handler({ params, path, scope }) {
        if (params.text('mjml') === undefined) params.required('template')
        const tag = storedName('tag', params.required('tag'))
        const active = params.boolean('active') ?? false
        const fields = { tag, comment: note(params, 'comment'), active, given: givenContent(params) }
        const { template, version } = await templates.addVersion(scope, path.name, fields)
        const message = 'new version of the template has been stored'
        return { message, template: withVersion(template, version) }
      },
    }),
    ...scoped(parts, {
      method: 'GET',
      suffix: '/{name}/versions/{tag}',
      id: 'readTemplateVersion',
      summary: 'Read a version with its content',
      params: [NAME, VERSION_TAG],
      async handler({ path, scope }) {
        const { template, version } = await templates.version(scope, path.name, path.tag)
        return { template: withVersion(template, version) }
      },
    }),
    ...scoped(parts, {
      method: 'PUT',
      suffix: '/{name}/versions/{tag}',
      id: 'updateTemplateVersion',
      summary: 'Change a version; what is not given stays',
      params: [NAME, VERSION_TAG, ...CONTENT, ENGINE, ACTIVE],
      async handler({ params, path, scope }) {
        const fields = ['template', 'mjml', 'comment', 'active', 'headers']
        if (fields.every((name) => params.text(name) === undefined)) throw nothingGiven()
        const { name } = await templates.changeVersion(scope, path.name, path.tag, {
          comment: params.text('comment') === undefined ? undefined : note(params, 'comment'),
          active: params.boolean('active') ?? false,
          given: givenContent(params),
        })
        return {
          message: 'version has been updated',
          template: { name, version: { tag: path.tag.toLowerCase() } },
        }
      },
    }),
    ...scoped(parts, {
      method: 'DELETE',
      suffix: '/{name}/versions/{tag}',
      id: 'deleteTemplateVersion',
      summary: 'Delete a version; of the active one, the newest that remains becomes active',
      params: [NAME, VERSION_TAG],
      async handler({ path, scope }) {
        const { name } = await templates.removeVersion(scope, path.name, path.tag)
        return {
          message: 'version has been deleted',
          template: { name, version: { tag: path.tag.toLowerCase() } },
        }
      },
    }),
    ...scoped(parts, {
      method: 'PUT',
      suffix: '/{name}/versions/{tag}/copy/{new_tag}',
      id: 'copyTemplateVersion',
      summary: 'Copy a version under another tag; one of that tag is overwritten',
      params: [
        NAME,
        VERSION_TAG,
        { ...VERSION_TAG, name: 'new_tag', description: 'Tag of the copy' },
        text('comment', 'Comment on the copy; default that of the source'),
      ],
      async handler({ params, path, scope }) {
        const newTag = storedName('tag', path.new_tag)
        const comment = params.text('comment') === undefined ? undefined : note(params, 'comment')
        const copy = copyView(await templates.copyVersion(scope, path.name, path.tag, newTag, comment))
        return { message: 'version has been copied', version: copy, template: copy }
      },
    }),
  ]
}

function copyOperation({ templates }: TemplateRouteParts): Operation {
  return operation({
    method: 'PUT',
    path: '/v4/templates/{name}/copy',
    id: 'copyAccountTemplate',
    tag: TAG,
    summary: 'Copy a template of the account to other accounts or domains',
    auth: { area: 'templates', access: 'write' },
    params: [NAME],
    body: { description: 'Where to, and which versions', schema: COPY_SCHEMA },
    responses: { 200: { description: 'What could not be copied; the rest was' } },
    async handler({ params, path, caller }) {
      const { requests, tags } = readCopy(params)
      const scope = { accountId: caller.accountId, domain: null }
      const failed = await templates.copyTo(scope, path.name, requests, tags)
      return {
        message: 'template has been copied',
        failed_copies: failed.map(({ request: { accountId, name, domain }, error }) => ({
          account_id: accountId,
          name,
          ...(domain !== undefined && { domain }),
          error,
        })),
      }
    },
  })
}

const COPY_SCHEMA = {
  type: 'object',
  required: ['requests'],
  properties: {
    requests: {
      type: 'array',
      maxItems: COPIES_MAX,
      items: {
        type: 'object',
        required: ['account_id', 'name'],
        properties: {
          account_id: { type: 'string' },
          name: { type: 'string' },
          domain: { type: 'string', description: 'A domain of that account; default: its account templates' },
        },
      },
    },
    source_versions: {
      type: 'array',
      items: { type: 'string' },
      description: 'Tags; none: all versions',
    },
  },
}

/** @throws BadRequest */
function readCopy(params: Params): { requests: CopyRequest[]; tags: string[] } {
  const requests = params.value('requests')
  if (requests === undefined) throw new BadRequest('Missing mandatory parameter: requests')
  const tags = params.value('source_versions') ?? []
  const isTags =
    Array.isArray(tags) && tags.length <= COPIES_MAX && tags.every((tag) => typeof tag === 'string')
  if (!isTags) throw new BadRequest('Invalid parameter: source_versions')
  if (!Array.isArray(requests) || requests.length === 0 || requests.length > COPIES_MAX) {
    throw new BadRequest('Invalid parameter: requests')
  }
  return { requests: requests.map(readCopyRequest), tags }
}

function readCopyRequest(value: unknown): CopyRequest {
  const { account_id: accountId, name, domain } = isPlainObject(value) ? value : {}
  const isRequest = typeof accountId === 'string' && typeof name === 'string' && name !== ''
  if (!isRequest || !(domain === undefined || typeof domain === 'string')) {
    throw new BadRequest('Invalid parameter: requests')
  }
  return { accountId, name: storedName('name', name), domain: domain || undefined }
}

/** One operation for the templates of a domain, and one for those of the account. */
function scoped<const S extends string>(
  { domains }: TemplateRouteParts,
  spec: ScopedOperation<S>,
): Operation[] {
  const { method, suffix, id, summary, params = [], handler } = spec
  const access: 'read' | 'write' = method === 'GET' ? 'read' : 'write'
  const common = {
    method,
    tag: TAG,
    auth: { area: 'templates', access },
    ...(spec.audit !== undefined && { audit: spec.audit }),
    responses: spec.responses ?? { 200: { description: 'Done' }, 404: { description: 'Unknown' } },
  } as const
  const names = (path: object) => path as Readonly<Record<PathNames<S>, string>>
  return [
    operation({
      ...common,
      path: `/v3/{domain_name}/templates${suffix as string}`,
      id,
      summary,
      params: [
        { name: 'domain_name', in: 'path', type: 'string', description: 'Sending domain of the account' },
        ...params,
      ],
      async handler({ params: given, path, caller }) {
        const { domain_name: domainName } = path as { domain_name: string }
        const domain = await templateDomain(domains, caller, domainName)
        const root = `/v3/${encodeURIComponent(domain.name)}/templates`
        const scope = { accountId: caller.accountId, domain }
        return handler({ params: given, path: names(path), scope, root })
      },
    }),
    operation({
      ...common,
      path: `/v4/templates${suffix as string}`,
      id: id.replace('Template', 'AccountTemplate'),
      summary: `${summary} (account level)`,
      params,
      handler: ({ params: given, path, caller }) => {
        const scope = { accountId: caller.accountId, domain: null }
        return handler({ params: given, path: names(path), scope, root: '/v4/templates' })
      },
    }),
  ]
}

/** @throws NotFound in the words of template operations */
async function templateDomain(domains: DomainDirectory, caller: Caller, name: string) {
  const domain = await domains.byName(name)
  if (domain?.accountId !== caller.accountId) throw new NotFound('domain not found')
  return domain
}

const nothingGiven = () => new BadRequest('No fields are provided to update')

/** Free text about a template. @throws BadRequest when it is too long */
function note(params: Params, name: string): string {
  const value = params.given(name) ?? ''
  if (value.length > NOTE_LENGTH_MAX || value.includes('\0')) {
    throw new BadRequest(`Invalid parameter: ${name} is invalid`)
  }
  return value
}

function givenContent(params: Params): GivenContent {
  const headers = params.text('headers')
  return {
    template: params.text('template'),
    mjml: params.text('mjml'),
    engine: params.text('engine'),
    headers: headers === undefined ? undefined : readTemplateHeaders(headers),
  }
}

interface PageQuery {
  page: PageName
  limit: number
  pivot: string | undefined
}

/** @throws BadRequest, also for `next` and `previous` without a pivot */
function pageQuery(params: Params): PageQuery {
  const page = pageName(params)
  const limit = limitOf(params, { default: PAGE_MAX, max: PAGE_MAX, above: 'cut' })
  const pivot = params.text('p')?.toLowerCase()
  if (pivot === undefined && (page === 'next' || page === 'previous')) {
    throw new BadRequest('Invalid parameter: pivot ')
  }
  return { page, limit, pivot: page === 'next' || page === 'previous' ? pivot : undefined }
}

/** A page of a whole list, which is short. `sorted`: by name, so that a page may begin at a name that was removed. */
function pageOf<T>(
  items: readonly T[],
  nameOf: (item: T) => string,
  { page, limit, pivot = '' }: PageQuery,
  sorted: boolean,
): T[] {
  if (page === 'first') return items.slice(0, limit)
  if (page === 'last') return items.slice(-limit)
  const at = items.findIndex((item) => nameOf(item) === pivot)
  if (at < 0 && !sorted) return []
  const before = at < 0 ? items.filter((item) => nameOf(item) < pivot).length : at
  if (page === 'previous') return items.slice(Math.max(0, before - limit), before)
  const after = at < 0 ? before : at + 1
  return items.slice(after, after + limit)
}

function paging<T>(
  baseUrl: string,
  path: string,
  page: readonly T[],
  nameOf: (item: T) => string,
  { limit, pivot }: PageQuery,
) {
  const [first] = page
  const last = page.at(-1)
  return pivotPaging({
    baseUrl,
    path,
    pivotName: 'p',
    firstItem: first && nameOf(first),
    lastItem: last && nameOf(last),
    pivot,
    carry: { limit },
  })
}

const date = (ms: number) => formatUtc(new Date(ms))

const templateView = ({ id, name, description, createdBy, createdAt }: Template) => ({
  name,
  description,
  createdAt: date(createdAt),
  createdBy,
  id,
})

const withVersion = (template: Template, version: Version | null) => ({
  ...templateView(template),
  ...(version && { version: versionView(version) }),
})

const summaryView = ({ id, tag, mjml, comment, active, createdAt }: VersionSummary) => ({
  tag,
  engine: 'handlebars',
  mjml,
  createdAt: date(createdAt),
  comment,
  active,
  id,
  parsedhandlebar: null,
})

function versionView(version: Version) {
  const { headers, content } = version
  const hasHeaders = Object.keys(headers).length > 0
  return { ...summaryView(version), template: content, ...(hasHeaders && { headers }) }
}

const copyView = ({ id, tag, content, comment, createdAt }: Version) => ({
  tag,
  template: content,
  engine: 'handlebars',
  createdAt: date(createdAt),
  comment,
  id,
})
