/** The operations on templates and their versions, free of HTTP (templates.md section 2). */

import { BadRequest } from '../../base/process/errors.ts'
import type { Core } from '../../core.ts'
import { lockedAccount } from '../../platform/store/account-rows.ts'
import type { Store, Tx } from '../../platform/store/store.ts'
import { createTemplateChoice } from './choose.ts'
import { type CopyRequest, copyTemplate } from './copying.ts'
import {
  deleteTemplates,
  deleteVersion,
  findVersion,
  insertTemplate,
  insertVersion,
  listTemplates,
  listVersions,
  updateTemplate,
  updateVersion,
  type VersionChange,
} from './store.ts'
import type { Sample, Template, TemplateScope, VersionContent } from './template.ts'
import {
  checkNewName,
  checkVersionCount,
  findOrThrow,
  findVersionOrThrow,
  nameTaken,
} from './template-rules.ts'
import { type ContentParts, checkContent, type GivenContent } from './version-content.ts'

interface TemplateParts extends ContentParts, Pick<Core, 'store' | 'domains' | 'clock'> {}

export type TemplateService = ReturnType<typeof createTemplates>

interface NewVersion {
  tag: string
  comment: string
  sample: Sample
  given: GivenContent
}

/** What all changes have in common. */
interface Changes {
  store: Store
  now(): number
  /** Checks content as for storing; MJML is compiled to HTML. @throws BadRequest */
  prepare(accountId: string, given: GivenContent): Promise<VersionContent>
  /** Runs in one transaction; afterwards cached templates are dropped. */
  change<T>(accountId: string, run: (tx: Tx) => Promise<T>): Promise<T>
}

export function createTemplates(parts: TemplateParts) {
  const { store, clock, domains } = parts
  const choice = createTemplateChoice({ store, domains, clock })
  const changes: Changes = {
    store,
    now: () => Math.floor(clock.now()),
    prepare: (accountId, given) => checkContent(parts, accountId, given),
    async change(accountId, run) {
      const result = await lockedAccount(store, accountId, run)
      choice.changed()
      return result
    },
  }
  return {
    choose: choice.choose,
    prepare: changes.prepare,
    list: (scope: TemplateScope) => listTemplates(store.db, scope),
    find: (scope: TemplateScope, nameOrId: string) => findOrThrow(store.db, scope, nameOrId),
    versions: (template: Template) => listVersions(store.db, template.id),
    activeVersion: (template: Template) => findVersion(store.db, template.id, null),
    version: (scope: TemplateScope, nameOrId: string, tag: string) =>
      findVersionOrThrow(store.db, scope, nameOrId, tag),
    copyTo: (
      scope: TemplateScope,
      nameOrId: string,
      requests: readonly CopyRequest[],
      tags: readonly string[],
    ) => copyTemplate({ ...changes, domains }, { scope, nameOrId, tags }, requests),
    ...templateChanges(changes),
    ...versionChanges(changes),
  }
}

function templateChanges({ now, prepare, change }: Changes) {
  return {
    async create(
      scope: TemplateScope,
      fields: { name: string; description: string; createdBy: string },
      first: NewVersion | null,
    ) {
      const content = first && (await prepare(scope.accountId, first.given))
      return change(scope.accountId, async (tx) => {
        await checkNewName(tx, scope, fields.name)
        const createdAt = now()
        const template = await insertTemplate(tx, scope, { ...fields, createdAt })
        if (!first || !content) return { template, version: null }
        const { tag, comment, sample } = first
        const version = { tag, comment, sample, ...content, active: true, createdAt }
        return { template, version: await insertVersion(tx, template.id, version) }
      })
    },

    describe: (scope: TemplateScope, nameOrId: string, description: string) =>
      change(scope.accountId, async (tx) => {
        const template = await findOrThrow(tx, scope, nameOrId)
        await updateTemplate(tx, template.id, { description })
        return template
      }),

    rename: (scope: TemplateScope, nameOrId: string, newName: string) =>
      change(scope.accountId, async (tx) => {
        const template = await findOrThrow(tx, scope, nameOrId)
        const taken = (await listTemplates(tx, scope)).find(({ name }) => name === newName)
        if (taken && taken.id !== template.id) throw nameTaken(newName)
        await updateTemplate(tx, template.id, { name: newName })
        return newName
      }),

    remove: (scope: TemplateScope, nameOrId: string) =>
      change(scope.accountId, async (tx) => {
        const template = await findOrThrow(tx, scope, nameOrId)
        await deleteTemplates(tx, [template.id])
        return template
      }),

    removeAll: (scope: TemplateScope) =>
      change(scope.accountId, async (tx) => {
        await deleteTemplates(
          tx,
          (await listTemplates(tx, scope)).map(({ id }) => id),
        )
      }),
  }
}

function versionChanges({ store, now, prepare, change }: Changes) {
  return {
    async addVersion(scope: TemplateScope, nameOrId: string, version: NewVersion & { active: boolean }) {
      const { tag, comment, active, sample, given } = version
      await findOrThrow(store.db, scope, nameOrId)
      const content = await prepare(scope.accountId, given)
      return change(scope.accountId, async (tx) => {
        const template = await findOrThrow(tx, scope, nameOrId)
        const others = await listVersions(tx, template.id)
        if (others.some((other) => other.tag === tag)) throw new BadRequest(`version ${tag} already exists`)
        checkVersionCount(others)
        const isActive = active || others.length === 0
        const fields = { tag, comment, sample, ...content, active: isActive, createdAt: now() }
        return { template, version: await insertVersion(tx, template.id, fields) }
      })
    },

    /** What is undefined stays, and so does `active` false. */
    async changeVersion(
      scope: TemplateScope,
      nameOrId: string,
      tag: string,
      fields: {
        comment: string | undefined
        active: boolean
        sample: Sample | undefined
        given: GivenContent
      },
    ) {
      const { comment, active, sample, given } = fields
      await findVersionOrThrow(store.db, scope, nameOrId, tag)
      const hasContent = given.template !== undefined || given.mjml !== undefined
      const prepared =
        hasContent || given.headers ? await prepare(scope.accountId, { ...given, engine: undefined }) : null
      return change(scope.accountId, async (tx) => {
        const { template, version } = await findVersionOrThrow(tx, scope, nameOrId, tag)
        const update: VersionChange = {
          ...(prepared && hasContent && { content: prepared.content, mjml: prepared.mjml }),
          ...(given.headers && { headers: given.headers }),
          ...(sample && { sample }),
          ...(comment !== undefined && { comment }),
          ...(active && { active }),
        }
        if (Object.keys(update).length > 0) await updateVersion(tx, template.id, version.id, update)
        return template
      })
    },

    removeVersion: (scope: TemplateScope, nameOrId: string, tag: string) =>
      change(scope.accountId, async (tx) => {
        const { template, version } = await findVersionOrThrow(tx, scope, nameOrId, tag)
        await deleteVersion(tx, version.id)
        const newest = version.active ? (await listVersions(tx, template.id)).at(-1) : undefined
        if (newest) await updateVersion(tx, template.id, newest.id, { active: true })
        return template
      }),

    copyVersion: (
      scope: TemplateScope,
      nameOrId: string,
      tag: string,
      newTag: string,
      comment: string | undefined,
    ) =>
      change(scope.accountId, async (tx) => {
        const { template, version: source } = await findVersionOrThrow(tx, scope, nameOrId, tag)
        const { content, mjml, headers, sample } = source
        const copy = { content, mjml, headers, sample, comment: comment ?? source.comment }
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
}
