/** Copying a template with its versions to other names, accounts and domains. */
import { BadRequest, NotFound } from '../../base/process/errors.ts'
import type { Of } from '../../base/shape.ts'
import type { Core } from '../../core.ts'
import type { Store, Tx } from '../../platform/store/store.ts'
import type { COPY_BODY } from './shapes.ts'
import { findVersion, insertTemplate, insertVersion, listVersions } from './store.ts'
import type { Template, TemplateScope, Version } from './template.ts'
import { checkNewName, findOrThrow, versionNotFound } from './template-rules.ts'

export type CopyRequest = Of<typeof COPY_BODY>['requests'][number]

interface CopyParts extends Pick<Core, 'store' | 'domains'> {
  now(): number
  change<T>(accountId: string, run: (tx: Tx) => Promise<T>): Promise<T>
}

/** Makes the copies that can be made; returns the others with the reason. `tags`: of the versions; none: all. */
export async function copyTemplate(
  parts: CopyParts,
  source: { scope: TemplateScope; nameOrId: string; tags: readonly string[] },
  requests: readonly CopyRequest[],
): Promise<{ request: CopyRequest; error: string }[]> {
  const { scope, nameOrId, tags } = source
  const template = await findOrThrow(parts.store.db, scope, nameOrId)
  const versions = await fullVersions(parts.store, template, tags)
  const failed: { request: CopyRequest; error: string }[] = []
  for (const request of requests) {
    const error = await copyOne(parts, request, template, versions, scope.accountId)
    if (error !== null) failed.push({ request, error })
  }
  return failed
}

/** Copies to one account or domain; the reason if that fails, else null. */
async function copyOne(
  parts: CopyParts,
  request: CopyRequest,
  template: Template,
  versions: readonly Version[],
  from: string,
): Promise<string | null> {
  try {
    const scope = await targetScope(parts, request, from)
    await parts.change(scope.accountId, async (tx) => {
      await checkNewName(tx, scope, request.name)
      const { description, createdBy } = template
      const fields = { name: request.name, description, createdBy, createdAt: parts.now() }
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
async function targetScope(
  { store, domains }: CopyParts,
  request: CopyRequest,
  from: string,
): Promise<TemplateScope> {
  const account = await store.db
    .selectFrom('accounts')
    .select('id')
    .where('id', '=', request.account_id)
    .where((where) => where.or([where('id', '=', from), where('parent_id', '=', from)]))
    .where('status', '<>', 'closed')
    .executeTakeFirst()
  if (!account) throw new NotFound('account not found')
  if (request.domain === undefined) return { accountId: account.id, domain: null }
  const domain = await domains.byName(request.domain)
  if (domain?.accountId !== account.id) throw new NotFound('domain not found')
  return { accountId: account.id, domain }
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
