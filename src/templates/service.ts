/** The rules of templates and their versions (templates.md section 2). */
import type { Clock } from '../base/clock.ts'
import { BadRequest, NotFound } from '../base/errors.ts'
import type { DomainDirectory } from '../domains/directory.ts'
import type { Store } from '../store/store.ts'
import { createTemplateChoice, type TemplateChoice, templateSource } from './choose.ts'
import type { MjmlCompiler } from './mjml.ts'
import type { Renderer } from './render.ts'
import {
  changeTemplates,
  deleteTemplates,
  deleteVersion,
  findTemplate,
  findVersion,
  insertTemplate,
  insertVersion,
  listTemplates,
  listVersions,
  updateTemplate,
  updateVersion,
  type VersionChange,
} from './store.ts'
import {
  TEMPLATES_MAX,
  type Template,
  type TemplateHeaders,
  type TemplateScope,
  VERSIONS_MAX,
  type Version,
  type VersionContent,
  type VersionSummary,
} from './template.ts'

export interface TemplateParts {
  store: Store
  domains: DomainDirectory
  clock: Clock
  renderer: Renderer
  mjml: MjmlCompiler
  /** Bytes of one version: content and headers. */
  contentBytesMax: number
}

/** What a caller gives as content; `template` is MJML when `engine` says so. */
export interface GivenContent {
  template: string | undefined
  mjml: string | undefined
  engine: string | undefined
  headers: TemplateHeaders | undefined
}

export interface CopyRequest {
  accountId: string
  name: string
  domain: string | undefined
}

export interface TemplateService extends Pick<TemplateChoice, 'choose'> {
  list(scope: TemplateScope): Promise<Template[]>
  find(scope: TemplateScope, nameOrId: string): Promise<Template>
  create(
    scope: TemplateScope,
    fields: { name: string; description: string; createdBy: string },
    version: { tag: string; comment: string; given: GivenContent } | null,
  ): Promise<{ template: Template; version: Version | null }>
  describe(scope: TemplateScope, nameOrId: string, description: string): Promise<Template>
  rename(scope: TemplateScope, nameOrId: string, newName: string): Promise<string>
  remove(scope: TemplateScope, nameOrId: string): Promise<Template>
  removeAll(scope: TemplateScope): Promise<void>
  copyTo(
    scope: TemplateScope,
    nameOrId: string,
    requests: readonly CopyRequest[],
    tags: readonly string[],
  ): Promise<{ request: CopyRequest; error: string }[]>
  versions(template: Template): Promise<VersionSummary[]>
  activeVersion(template: Template): Promise<Version | null>
  version(
    scope: TemplateScope,
    nameOrId: string,
    tag: string,
  ): Promise<{ template: Template; version: Version }>
  addVersion(
    scope: TemplateScope,
    nameOrId: string,
    fields: { tag: string; comment: string; active: boolean; given: GivenContent },
  ): Promise<{ template: Template; version: Version }>
  changeVersion(
    scope: TemplateScope,
    nameOrId: string,
    tag: string,
    fields: { comment: string | undefined; active: boolean; given: GivenContent },
  ): Promise<Template>
  removeVersion(scope: TemplateScope, nameOrId: string, tag: string): Promise<Template>
  copyVersion(
    scope: TemplateScope,
    nameOrId: string,
    tag: string,
    newTag: string,
    comment: string | undefined,
  ): Promise<Version>
  /** Checks content as for storing, MJML turned to HTML. @throws BadRequest */
  prepare(accountId: string, given: GivenContent): Promise<VersionContent>
}

type Tx = Parameters<Parameters<typeof changeTemplates>[2]>[0]

const notFound = () => new NotFound('template not found')
const versionNotFound = () => new NotFound('template version not found')
/** HTML is several times its MJML; over this it is no mail any more (clients cut at 100 KB). */
const COMPILED_MJML_GROWTH_MAX = 10

export function createTemplates(parts: TemplateParts): TemplateService {
  const { store, clock, domains } = parts
  const choice = createTemplateChoice({ store, domains, clock })
  const now = () => Math.floor(clock.now())

  async function change<T>(accountId: string, run: (tx: Tx) => Promise<T>): Promise<T> {
    const result = await changeTemplates(store, accountId, run)
    choice.changed()
    return result
  }

  async function find(db: Tx | Store['db'], scope: TemplateScope, nameOrId: string): Promise<Template> {
    const template = await findTemplate(db, scope, nameOrId.toLowerCase())
    if (!template) throw notFound()
    return template
  }

  async function findBoth(db: Tx | Store['db'], scope: TemplateScope, nameOrId: string, tag: string) {
    const template = await find(db, scope, nameOrId)
    const version = await findVersion(db, template.id, tag.toLowerCase())
    if (!version) throw versionNotFound()
    return { template, version }
  }

  const prepare: TemplateService['prepare'] = async (accountId, given) => {
    const { engine = 'handlebars', headers = {} } = given
    if (engine !== 'handlebars' && engine !== 'mjml') {
      throw new BadRequest(`Invalid parameter: engine ${engine.slice(0, 64)} is not supported`)
    }
    const mjml = given.mjml ?? (engine === 'mjml' ? given.template : undefined)
    checkSize(mjml ?? given.template ?? '', headers, parts.contentBytesMax)
    const content = mjml === undefined ? (given.template ?? '') : await compileMjml(parts, mjml)
    const fault = await parts.renderer.check(accountId, templateSource(content, headers))
    if (fault !== null) throw new BadRequest(`Invalid parameter: template ${fault}`)
    return { content, mjml: mjml ?? '', headers }
  }

  return {
    choose: choice.choose,
    prepare,
    list: (scope) => listTemplates(store.db, scope),
    find: (scope, nameOrId) => find(store.db, scope, nameOrId),
    versions: (template) => listVersions(store.db, template.id),
    activeVersion: (template) => findVersion(store.db, template.id, null),
    version: (scope, nameOrId, tag) => findBoth(store.db, scope, nameOrId, tag),

    async create(scope, fields, first) {
      const content = first && (await prepare(scope.accountId, first.given))
      return change(scope.accountId, async (tx) => {
        await checkNewName(tx, scope, fields.name)
        const createdAt = now()
        const template = await insertTemplate(tx, scope, { ...fields, createdAt })
        if (!first || !content) return { template, version: null }
        const { tag, comment } = first
        const version = { tag, comment, ...content, active: true, createdAt }
        return { template, version: await insertVersion(tx, template.id, version) }
      })
    },

    describe: (scope, nameOrId, description) =>
      change(scope.accountId, async (tx) => {
        const template = await find(tx, scope, nameOrId)
        await updateTemplate(tx, template.id, { description })
        return template
      }),

    rename: (scope, nameOrId, newName) =>
      change(scope.accountId, async (tx) => {
        const template = await find(tx, scope, nameOrId)
        const taken = (await listTemplates(tx, scope)).find(({ name }) => name === newName)
        if (taken && taken.id !== template.id) throw nameTaken(newName)
        await updateTemplate(tx, template.id, { name: newName })
        return newName
      }),

    remove: (scope, nameOrId) =>
      change(scope.accountId, async (tx) => {
        const template = await find(tx, scope, nameOrId)
        await deleteTemplates(tx, [template.id])
        return template
      }),

    removeAll: (scope) =>
      change(scope.accountId, async (tx) => {
        await deleteTemplates(
          tx,
          (await listTemplates(tx, scope)).map(({ id }) => id),
        )
      }),

    async copyTo(scope, nameOrId, requests, tags) {
      const template = await find(store.db, scope, nameOrId)
      const versions = await fullVersions(store, template, tags)
      const failed: { request: CopyRequest; error: string }[] = []
      for (const request of requests) {
        const error = await copyOne(request, template, versions, scope.accountId)
        if (error !== null) failed.push({ request, error })
      }
      return failed
    },

    async addVersion(scope, nameOrId, { tag, comment, active, given }) {
      await find(store.db, scope, nameOrId)
      const content = await prepare(scope.accountId, given)
      return change(scope.accountId, async (tx) => {
        const template = await find(tx, scope, nameOrId)
        const others = await listVersions(tx, template.id)
        if (others.some((other) => other.tag === tag)) throw new BadRequest(`version ${tag} already exists`)
        checkVersionCount(others)
        const fields = { tag, comment, ...content, active: active || others.length === 0, createdAt: now() }
        return { template, version: await insertVersion(tx, template.id, fields) }
      })
    },

    async changeVersion(scope, nameOrId, tag, { comment, active, given }) {
      await findBoth(store.db, scope, nameOrId, tag)
      const hasContent = given.template !== undefined || given.mjml !== undefined
      const prepared =
        hasContent || given.headers ? await prepare(scope.accountId, { ...given, engine: undefined }) : null
      return change(scope.accountId, async (tx) => {
        const { template, version } = await findBoth(tx, scope, nameOrId, tag)
        const update: VersionChange = {
          ...(prepared && hasContent && { content: prepared.content, mjml: prepared.mjml }),
          ...(given.headers && { headers: given.headers }),
          ...(comment !== undefined && { comment }),
          ...(active && { active }),
        }
        if (Object.keys(update).length > 0) await updateVersion(tx, template.id, version.id, update)
        return template
      })
    },

    removeVersion: (scope, nameOrId, tag) =>
      change(scope.accountId, async (tx) => {
        const { template, version } = await findBoth(tx, scope, nameOrId, tag)
        await deleteVersion(tx, version.id)
        const newest = version.active ? (await listVersions(tx, template.id)).at(-1) : undefined
        if (newest) await updateVersion(tx, template.id, newest.id, { active: true })
        return template
      }),

    copyVersion: (scope, nameOrId, tag, newTag, comment) =>
      change(scope.accountId, async (tx) => {
        const { template, version: source } = await findBoth(tx, scope, nameOrId, tag)
        const { content, mjml, headers } = source
        const copy = { content, mjml, headers, comment: comment ?? source.comment }
        const present = await findVersion(tx, template.id, newTag)
        if (present?.id === source.id) {
          await updateVersion(tx, template.id, present.id, { comment: copy.comment })
          return { ...present, ...copy }
        }
        const createdAt = now()
        if (present) {
          await updateVersion(tx, template.id, present.id, { ...copy, createdAt })
          return { ...present, ...copy, createdAt }
        }
        checkVersionCount(await listVersions(tx, template.id))
        return insertVersion(tx, template.id, { ...copy, tag: newTag, active: false, createdAt })
      }),
  }

  /** Copies to one account or domain; why it failed, or null. */
  async function copyOne(
    request: CopyRequest,
    template: Template,
    versions: readonly Version[],
    from: string,
  ): Promise<string | null> {
    try {
      const scope = await targetScope(request, from)
      await change(scope.accountId, async (tx) => {
        await checkNewName(tx, scope, request.name)
        const { description, createdBy } = template
        const fields = { name: request.name, description, createdBy, createdAt: now() }
        const copy = await insertTemplate(tx, scope, fields)
        const active = versions.find((version) => version.active) ?? versions.at(-1)
        for (const { id: _, ...version } of versions) {
          await insertVersion(tx, copy.id, { ...version, active: version.tag === active?.tag })
        }
      })
      return null
    } catch (error) {
      if (error instanceof BadRequest || error instanceof NotFound) return error.message
      throw error
    }
  }

  /** Only the caller's own account and its subaccounts exist to it. */
  async function targetScope(request: CopyRequest, from: string): Promise<TemplateScope> {
    const account = await store.db
      .selectFrom('accounts')
      .select('id')
      .where('id', '=', request.accountId)
      .where((of) => of.or([of('id', '=', from), of('parent_id', '=', from)]))
      .executeTakeFirst()
    if (!account) throw new NotFound('account not found')
    if (request.domain === undefined) return { accountId: account.id, domain: null }
    const domain = await domains.byName(request.domain)
    if (domain?.accountId !== account.id) throw new NotFound('domain not found')
    return { accountId: account.id, domain }
  }
}

async function checkNewName(tx: Tx, scope: TemplateScope, name: string): Promise<void> {
  const present = await listTemplates(tx, scope)
  if (present.some((other) => other.name === name)) throw nameTaken(name)
  if (present.length >= TEMPLATES_MAX) throw new BadRequest(`template limit of ${TEMPLATES_MAX} reached`)
}

const nameTaken = (name: string) => new BadRequest(`template with name '${name}' already exists`)

function checkVersionCount(present: readonly VersionSummary[]): void {
  if (present.length >= VERSIONS_MAX)
    throw new BadRequest(`templates are limited to ${VERSIONS_MAX} versions`)
}

function checkSize(content: string, headers: TemplateHeaders, bytesMax: number): void {
  const texts = [content, ...Object.values(headers)]
  const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0)
  if (bytes > bytesMax) {
    throw new BadRequest(`template is too large, max size is ${Math.floor(bytesMax / 1024)}KB`)
  }
  if (texts.some((text) => text.includes('\0'))) {
    throw new BadRequest('Invalid parameter: template holds a NUL character')
  }
}

async function compileMjml({ mjml, contentBytesMax }: TemplateParts, source: string): Promise<string> {
  const result = await mjml.compile(source)
  if (result.kind === 'failed') throw new BadRequest(`Invalid parameter: template ${result.why}`)
  checkSize(result.html, {}, contentBytesMax * COMPILED_MJML_GROWTH_MAX)
  return result.html
}

/** All versions, or those of the tags. @throws NotFound for an unknown tag */
async function fullVersions(store: Store, template: Template, tags: readonly string[]): Promise<Version[]> {
  const wanted = tags.length > 0 ? tags : (await listVersions(store.db, template.id)).map(({ tag }) => tag)
  const versions: Version[] = []
  for (const tag of new Set(wanted.map((each) => each.toLowerCase()))) {
    const version = await findVersion(store.db, template.id, tag)
    if (!version) throw versionNotFound()
    versions.push(version)
  }
  return versions.sort((a, b) => a.createdAt - b.createdAt)
}
