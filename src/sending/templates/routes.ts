/** Templates over HTTP: the operations of a domain and those of the account are the same (templates.md T1 to T14). */

import { BadRequest, NotFound } from '../../base/process/errors.ts'
import { message, type Of } from '../../base/shape.ts'
import { formatUtc } from '../../base/time/dates.ts'
import {
  type Answers,
  type Method,
  type Operation,
  operation,
  type PathNames,
  type RecordedCall,
  type Returned,
} from '../../platform/http/operation.ts'
import {
  flagParam,
  type InputOf,
  type Inputs,
  limitParam,
  otherParam,
  parsedParam,
  textParam,
  wordParam,
} from '../../platform/http/request/inputs.ts'
import { pageName, pivotPaging } from '../../platform/http/request/paging.ts'
import type { Params } from '../../platform/http/request/params.ts'
import type { Caller } from '../../platform/http/rights/auth.ts'
import type { DomainDirectory } from '../domains/names/directory.ts'
import type { TemplateService } from './service.ts'
import {
  COPIES,
  COPY_BODY,
  ONE_TEMPLATE,
  type TEMPLATE,
  TEMPLATE_DONE,
  TEMPLATE_STORED,
  TEMPLATES,
  type VERSION,
  VERSION_COPIED,
  VERSION_DONE,
  VERSIONS,
} from './shapes.ts'
import {
  NOTE_LENGTH_MAX,
  readSample,
  readTemplateHeaders,
  storedName,
  type Template,
  type TemplateScope,
  type Version,
  type VersionSummary,
} from './template.ts'

const TAG = 'Templates'
const PAGE_MAX = 100
const FIRST_TAG = 'initial'

interface TemplateRouteParts {
  templates: TemplateService
  domains: DomainDirectory
  /** Without a final slash. */
  baseUrl: string
}

interface ScopedRequest<Name extends string, I> {
  params: Params
  input(): InputOf<I>
  path: Readonly<Record<Name, string>>
  scope: TemplateScope
  /** Path of the list of templates, percent-encoded. */
  root: string
}

interface ScopedOperation<S extends string, R extends Answers, I extends Inputs> {
  method: Method
  /** What follows `.../templates` in the path. */
  suffix: S
  audit?: RecordedCall
  /** Id of the domain's operation; the account's has `Account` before `Template`. */
  id: string
  summary: string
  params?: I
  answers: R
  handler(request: ScopedRequest<PathNames<S>, I>): Promise<Returned<R>>
}

const NAME = { name: otherParam('Name or id of the template') }
const VERSION_TAG = { ...NAME, tag: otherParam('Tag of the version') }
const PAGES = {
  page: parsedParam('Which page; next and previous need p', pageName, {
    values: ['first', 'last', 'next', 'previous', 'prev'],
  }),
  limit: limitParam(PAGE_MAX, PAGE_MAX, { above: 'cut' }),
  p: wordParam('The name (or tag) before or after which the page begins', (text) => text.toLowerCase()),
}
const CONTENT = {
  template: textParam('Content: HTML with Handlebars, at most 100 KB'),
  mjml: textParam('MJML source instead of template'),
  headers: wordParam(
    'Object of From, Subject, Reply-To; Handlebars in the values',
    (text) => readTemplateHeaders(text),
    { type: 'json' },
  ),
}
const SAMPLE = wordParam(
  'Object of variables for previews, at most 64 KB of JSON; no mail is rendered with it',
  (text) => readSample(text),
  { type: 'json' },
)
const ENGINE = textParam('Of the content', { values: ['handlebars', 'mjml'], default: 'handlebars' })
const ACTIVE = flagParam('yes makes this version the active one', { default: false })

/** Free text about a template; empty: not given. @throws BadRequest when it is too long */
const noteParam = (description: string) =>
  parsedParam(description, (params, name) => noteOf(params.given(name) ?? '', name))
const COMMENT = noteParam('Comment on the version')
/** Undefined: it stays. */
const newComment = (description: string) => wordParam(description, noteOf)

function noteOf(text: string, name: string): string {
  if (text.length > NOTE_LENGTH_MAX || text.includes('\0')) {
    throw new BadRequest(`Invalid parameter: ${name} is invalid`)
  }
  return text
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
      answers: { 200: TEMPLATES },
      async handler({ input, scope, root }) {
        const query = pageQuery(input())
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
      params: {
        name: wordParam(
          'Name, up to 256 characters; kept in lower case',
          (text) => storedName('name', text),
          { required: true },
        ),
        description: noteParam('Description'),
        createdBy: noteParam('Who made it, free text'),
        tag: parsedParam(
          'Tag of the first version',
          (params, name) => storedName('tag', params.text(name) ?? FIRST_TAG),
          { default: FIRST_TAG },
        ),
        comment: COMMENT,
        ...CONTENT,
        engine: ENGINE,
        sample: SAMPLE,
      },
      answers: { 200: TEMPLATE_STORED },
      async handler({ input, scope }) {
        const { name, description, createdBy, tag, comment, sample = {}, ...given } = input()
        const fields = { name, description, createdBy }
        const hasContent = given.template !== undefined || given.mjml !== undefined
        const first = hasContent ? { tag, comment, sample, given } : null
        const { template, version } = await templates.create(scope, fields, first)
        return { message: 'template has been stored', template: withVersion(template, version) }
      },
    }),
    ...scoped(parts, {
      method: 'DELETE',
      suffix: '',
      id: 'deleteTemplates',
      summary: 'Delete all templates with their versions',
      answers: { 200: message('templates have been deleted') },
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
      params: { ...NAME, active: flagParam('yes adds the active version', { default: false }) },
      answers: { 200: ONE_TEMPLATE },
      async handler({ input, path, scope }) {
        const { active } = input()
        const template = await templates.find(scope, path.name)
        return { template: withVersion(template, active ? await templates.activeVersion(template) : null) }
      },
    }),
    ...scoped(parts, {
      method: 'PUT',
      suffix: '/{name}',
      id: 'updateTemplate',
      summary: 'Change the description of a template',
      params: {
        ...NAME,
        description: parsedParam('Description; an empty one clears it', newDescription, { required: true }),
      },
      answers: { 200: TEMPLATE_DONE },
      async handler({ input, path, scope }) {
        const { name } = await templates.describe(scope, path.name, input().description)
        return { message: 'template has been updated', template: { name } }
      },
    }),
    ...scoped(parts, {
      method: 'DELETE',
      suffix: '/{name}',
      id: 'deleteTemplate',
      summary: 'Delete a template with its versions',
      params: NAME,
      answers: { 200: TEMPLATE_DONE },
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
      params: { ...NAME, new_name: otherParam('The new name') },
      answers: { 200: TEMPLATE_DONE },
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
      params: { ...NAME, ...PAGES },
      answers: { 200: VERSIONS },
      async handler({ input, path, scope, root }) {
        const query = pageQuery(input())
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
      params: {
        ...NAME,
        template: parsedParam('Content: HTML with Handlebars; this or mjml is needed', neededContent),
        mjml: CONTENT.mjml,
        tag: wordParam('Tag of the version', (text) => storedName('tag', text), { required: true }),
        active: ACTIVE,
        comment: COMMENT,
        headers: CONTENT.headers,
        engine: ENGINE,
        sample: SAMPLE,
      },
      answers: { 200: TEMPLATE_STORED },
      async handler({ input, path, scope }) {
        const { tag, active, comment, sample = {}, ...given } = input()
        const fields = { tag, comment, active, sample, given }
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
      params: VERSION_TAG,
      answers: { 200: ONE_TEMPLATE },
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
      params: {
        ...VERSION_TAG,
        comment: newComment('Comment on the version'),
        active: flagParam('yes makes this version the active one'),
        ...CONTENT,
        engine: ENGINE,
        sample: SAMPLE,
      },
      answers: { 200: VERSION_DONE },
      async handler({ input, path, scope }) {
        const { comment, active, sample, engine: _, ...given } = input()
        if ([comment, active, sample, ...Object.values(given)].every((value) => value === undefined)) {
          throw nothingGiven()
        }
        const fields = { comment, active: active ?? false, sample, given: { ...given, engine: undefined } }
        const { name } = await templates.changeVersion(scope, path.name, path.tag, fields)
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
      params: VERSION_TAG,
      answers: { 200: VERSION_DONE },
      async handler({ path, scope }) {
        const { name } = await templates.removeVersion(scope, path.name, path.tag)
        return {
          message: 'version has been deleted',
          template: { name, version: { tag: path.tag.toLowerCase() } },
        }
      },
    }),
    ...versionCopyOperations(parts),
  ]
}

function versionCopyOperations(parts: TemplateRouteParts): Operation[] {
  const { templates } = parts
  return scoped(parts, {
    method: 'PUT',
    suffix: '/{name}/versions/{tag}/copy/{new_tag}',
    id: 'copyTemplateVersion',
    summary: 'Copy a version under another tag; one of that tag is overwritten',
    params: {
      ...VERSION_TAG,
      new_tag: otherParam('Tag of the copy'),
      comment: newComment('Comment on the copy; default that of the source'),
    },
    answers: { 200: VERSION_COPIED },
    async handler({ input, path, scope }) {
      const newTag = storedName('tag', path.new_tag)
      const { comment } = input()
      const copy = copyView(await templates.copyVersion(scope, path.name, path.tag, newTag, comment))
      return { message: 'version has been copied', version: copy, template: copy }
    },
  })
}

function copyOperation({ templates }: TemplateRouteParts): Operation {
  return operation({
    method: 'PUT',
    path: '/v4/templates/{name}/copy',
    id: 'copyAccountTemplate',
    tag: TAG,
    summary: 'Copy a template of the account to other accounts or domains',
    auth: { area: 'templates', access: 'write' },
    params: NAME,
    body: COPY_BODY,
    answers: { 200: COPIES },
    async handler({ document, path, caller }) {
      const { requests, source_versions: tags = [] } = document()
      const targets = requests.map(({ account_id, name, domain }) => ({
        account_id,
        name: storedName('name', name),
        ...(domain && { domain }),
      }))
      const scope = { accountId: caller.accountId, domain: null }
      const failed = await templates.copyTo(scope, path.name, targets, tags)
      return {
        message: 'template has been copied',
        failed_copies: failed.map(({ request, error }) => ({ ...request, error })),
      }
    },
  })
}

/** @throws BadRequest if neither it nor mjml is given */
const neededContent = (params: Params, name: string) =>
  params.text('mjml') === undefined ? params.required(name) : params.text(name)

/** @throws BadRequest if none is given; an empty one clears it */
function newDescription(params: Params, name: string): string {
  const given = params.given(name)
  if (given === undefined) throw nothingGiven()
  return noteOf(given, name)
}

/** One operation for the templates of a domain, and one for those of the account. */
function scoped<const S extends string, const R extends Answers, const I extends Inputs>(
  { domains }: TemplateRouteParts,
  spec: ScopedOperation<S, R, I>,
): Operation[] {
  const { method, suffix, id, summary, handler } = spec
  const access: 'read' | 'write' = method === 'GET' ? 'read' : 'write'
  const common = {
    method,
    tag: TAG,
    auth: { area: 'templates', access },
    ...(spec.audit !== undefined && { audit: spec.audit }),
    ...(spec.params !== undefined && { params: spec.params }),
    answers: spec.answers,
  } as const
  const names = (path: object) => path as Readonly<Record<PathNames<S>, string>>
  return [
    operation({
      ...common,
      path: `/v3/{domain_name}/templates${suffix as string}`,
      id,
      summary,
      async handler({ params, input, path, caller }) {
        const { domain_name: domainName } = path as { domain_name: string }
        const domain = await templateDomain(domains, caller, domainName)
        const root = `/v3/${encodeURIComponent(domain.name)}/templates`
        const scope = { accountId: caller.accountId, domain }
        return handler({ params, input, path: names(path), scope, root })
      },
    }),
    operation({
      ...common,
      path: `/v4/templates${suffix as string}`,
      id: id.replace('Template', 'AccountTemplate'),
      summary: `${summary} (account level)`,
      handler: ({ params, input, path, caller }) => {
        const scope = { accountId: caller.accountId, domain: null }
        return handler({ params, input, path: names(path), scope, root: '/v4/templates' })
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

/** @throws BadRequest for `next` and `previous` without a pivot */
function pageQuery({ page, limit, p }: InputOf<typeof PAGES>) {
  const needsPivot = page === 'next' || page === 'previous'
  if (p === undefined && needsPivot) throw new BadRequest('Invalid parameter: pivot ')
  return { page, limit, pivot: needsPivot ? p : undefined }
}

type PageQuery = ReturnType<typeof pageQuery>

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

const templateView = ({ id, name, description, createdBy, createdAt }: Template): Of<typeof TEMPLATE> => ({
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
  engine: 'handlebars' as const,
  mjml,
  createdAt: date(createdAt),
  comment,
  active,
  id,
  parsedhandlebar: null,
})

function versionView(version: Version): Of<typeof VERSION> {
  const { headers, content, sample } = version
  const [hasHeaders, hasSample] = [headers, sample].map((map) => Object.keys(map).length > 0)
  return {
    ...summaryView(version),
    template: content,
    ...(hasHeaders && { headers }),
    ...(hasSample && { sample }),
  }
}

const copyView = ({ id, tag, content, comment, createdAt }: Version) => ({
  tag,
  template: content,
  engine: 'handlebars' as const,
  createdAt: date(createdAt),
  comment,
  id,
})
