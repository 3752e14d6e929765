/** Rules of every change: names and numbers, and the errors for templates and versions that do not exist. */
import { BadRequest, NotFound } from '../../base/process/errors.ts'
import type { Store, Tx } from '../../platform/store/store.ts'
import { findTemplate, findVersion, listTemplates } from './store.ts'
import {
  TEMPLATES_MAX,
  type Template,
  type TemplateScope,
  VERSIONS_MAX,
  type Version,
  type VersionSummary,
} from './template.ts'

type Database = Tx | Store['db']

/** @throws NotFound */
export async function findOrThrow(db: Database, scope: TemplateScope, nameOrId: string): Promise<Template> {
  const template = await findTemplate(db, scope, nameOrId.toLowerCase())
  if (!template) throw new NotFound('template not found')
  return template
}

/** @throws NotFound for an unknown template or tag */
export async function findVersionOrThrow(
  db: Database,
  scope: TemplateScope,
  nameOrId: string,
  tag: string,
): Promise<{ template: Template; version: Version }> {
  const template = await findOrThrow(db, scope, nameOrId)
  const version = await findVersion(db, template.id, tag.toLowerCase())
  if (!version) throw versionNotFound()
  return { template, version }
}

export const versionNotFound = () => new NotFound('template version not found')

/** @throws BadRequest */
export async function checkNewName(tx: Tx, scope: TemplateScope, name: string): Promise<void> {
  const present = await listTemplates(tx, scope)
  if (present.some((other) => other.name === name)) throw nameTaken(name)
  if (present.length >= TEMPLATES_MAX) throw new BadRequest(`template limit of ${TEMPLATES_MAX} reached`)
}

export const nameTaken = (name: string) => new BadRequest(`template with name '${name}' already exists`)

/** @throws BadRequest */
export function checkVersionCount(present: readonly VersionSummary[]): void {
  if (present.length >= VERSIONS_MAX)
    throw new BadRequest(`templates are limited to ${VERSIONS_MAX} versions`)
}
