/** The SQL of templates. Changes run under a lock of their account, so that limits and "one active" hold. */

import { randomUUID } from 'node:crypto'
import type { Flag, TemplateRow, TemplateVersionRow } from '../../platform/store/schema.ts'
import type { Db, Tx } from '../../platform/store/store.ts'
import type {
  Sample,
  Template,
  TemplateHeaders,
  TemplateScope,
  Version,
  VersionContent,
  VersionSummary,
} from './template.ts'

const scopeKey = ({ domain }: Pick<TemplateScope, 'domain'>) => domain?.id ?? ''
const SUMMARY_COLUMNS = ['id', 'tag', 'mjml', 'comment', 'active', 'created_at'] as const

const inScope = (db: Db, scope: TemplateScope) =>
  db
    .selectFrom('templates')
    .selectAll()
    .where('account_id', '=', scope.accountId)
    .where('scope', '=', scopeKey(scope))

/** All templates of the scope by name; there are at most 100. */
export async function listTemplates(db: Db, scope: TemplateScope): Promise<Template[]> {
  return (await inScope(db, scope).orderBy('name').execute()).map(templateOf)
}

/** By name, else by id; `nameOrId` in lower case. */
export async function findTemplate(db: Db, scope: TemplateScope, nameOrId: string): Promise<Template | null> {
  const rows = await inScope(db, scope)
    .where((eb) => eb.or([eb('name', '=', nameOrId), eb('id', '=', nameOrId)]))
    .execute()
  const row = rows.find(({ name }) => name === nameOrId) ?? rows[0]
  return row ? templateOf(row) : null
}

/** The template that a message means: of the domain by name, by id, then of the account (templates.md rule 11). */
export async function findForSending(
  db: Db,
  accountId: string,
  domainId: string | null,
  nameOrId: string,
): Promise<Template | null> {
  const scopes: TemplateScope['domain'][] = domainId === null ? [null] : [{ id: domainId, name: '' }, null]
  for (const domain of scopes) {
    const found = await findTemplate(db, { accountId, domain }, nameOrId)
    if (found) return found
  }
  return null
}

export async function insertTemplate(
  tx: Tx,
  scope: TemplateScope,
  fields: Omit<Template, 'id'>,
): Promise<Template> {
  const template = { id: randomUUID(), ...fields }
  const row: TemplateRow = {
    id: template.id,
    account_id: scope.accountId,
    scope: scopeKey(scope),
    domain_id: scope.domain?.id ?? null,
    name: template.name,
    description: template.description,
    created_by: template.createdBy,
    created_at: template.createdAt,
  }
  await tx.insertInto('templates').values(row).execute()
  return template
}

export async function updateTemplate(tx: Tx, id: string, change: { name?: string; description?: string }) {
  await tx.updateTable('templates').set(change).where('id', '=', id).execute()
}

/** With their versions, which the database removes. */
export async function deleteTemplates(tx: Tx, ids: readonly string[]): Promise<void> {
  if (ids.length > 0) await tx.deleteFrom('templates').where('id', 'in', ids).execute()
}

/** Oldest first, without contents; at most 40. */
export async function listVersions(db: Db, templateId: string): Promise<VersionSummary[]> {
  const rows = await db
    .selectFrom('template_versions')
    .select(SUMMARY_COLUMNS)
    .where('template_id', '=', templateId)
    .orderBy('created_at')
    .orderBy('tag')
    .execute()
  return rows.map(summaryOf)
}

/** The version of that tag (in lower case), or the active one for null. */
export async function findVersion(db: Db, templateId: string, tag: string | null): Promise<Version | null> {
  const versions = db.selectFrom('template_versions').selectAll().where('template_id', '=', templateId)
  const row = await (tag === null ? versions.where('active', '=', 1) : versions.where('tag', '=', tag))
    .limit(1)
    .executeTakeFirst()
  return row ? versionOf(row) : null
}

/** An active one makes the others inactive. */
export async function insertVersion(
  tx: Tx,
  templateId: string,
  fields: Omit<Version, 'id'>,
): Promise<Version> {
  if (fields.active) await deactivateAll(tx, templateId)
  const version = { id: randomUUID(), ...fields }
  const row: TemplateVersionRow = {
    id: version.id,
    template_id: templateId,
    tag: version.tag,
    ...contentColumns(version),
    sample_json: JSON.stringify(version.sample),
    comment: version.comment,
    active: flag(version.active),
    created_at: version.createdAt,
  }
  await tx.insertInto('template_versions').values(row).execute()
  return version
}

export interface VersionChange extends Partial<VersionContent> {
  sample?: Sample
  comment?: string
  active?: true
  createdAt?: number
}

export async function updateVersion(tx: Tx, templateId: string, versionId: string, change: VersionChange) {
  if (change.active) await deactivateAll(tx, templateId)
  const { content, mjml, headers, sample, comment, active, createdAt } = change
  await tx
    .updateTable('template_versions')
    .set({
      ...(content !== undefined && { content }),
      ...(mjml !== undefined && { mjml }),
      ...(headers !== undefined && { headers_json: JSON.stringify(headers) }),
      ...(sample !== undefined && { sample_json: JSON.stringify(sample) }),
      ...(comment !== undefined && { comment }),
      ...(active && { active: 1 as const }),
      ...(createdAt !== undefined && { created_at: createdAt }),
    })
    .where('id', '=', versionId)
    .execute()
}

export async function deleteVersion(tx: Tx, versionId: string): Promise<void> {
  await tx.deleteFrom('template_versions').where('id', '=', versionId).execute()
}

async function deactivateAll(tx: Tx, templateId: string): Promise<void> {
  await tx
    .updateTable('template_versions')
    .set({ active: 0 })
    .where('template_id', '=', templateId)
    .where('active', '=', 1)
    .execute()
}

const flag = (value: boolean): Flag => (value ? 1 : 0)

const contentColumns = ({ content, mjml, headers }: VersionContent) => ({
  content,
  mjml,
  headers_json: JSON.stringify(headers),
})

const templateOf = (row: TemplateRow): Template => ({
  id: row.id,
  name: row.name,
  description: row.description,
  createdBy: row.created_by,
  createdAt: row.created_at,
})

const summaryOf = (row: Pick<TemplateVersionRow, (typeof SUMMARY_COLUMNS)[number]>): VersionSummary => ({
  id: row.id,
  tag: row.tag,
  mjml: row.mjml,
  comment: row.comment,
  active: row.active === 1,
  createdAt: row.created_at,
})

const versionOf = (row: TemplateVersionRow): Version => ({
  ...summaryOf(row),
  content: row.content,
  headers: JSON.parse(row.headers_json) as TemplateHeaders,
  sample: JSON.parse(row.sample_json) as Sample,
})
