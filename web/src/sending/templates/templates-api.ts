/** The operations on templates (templates.md; `{T}` is of a domain or of the account), and the fields that pages show. */
import { getJson, sendForm, sendJson } from '../../api.ts'
import type * as Api from '../../api-types.ts'
import { sampleText } from './sample.ts'

export type Engine = 'handlebars' | 'mjml'

export type Template = Api.Template

export type VersionSummary = Api.TemplateVersionSummary

export type TemplateHeaders = Partial<Record<'From' | 'Subject' | 'Reply-To', string>>

export type Version = Api.TemplateVersion

/** What is edited: one version's content as its author wrote it. */
export interface Draft {
  engine: Engine
  content: string
  headers: TemplateHeaders
  /** JSON of the sample, as it is typed. */
  sample: string
}

export type Rendered = Api.RenderedTemplate

const segment = encodeURIComponent
const LIST_MAX = 100 // an account or a domain has no more templates, and a template no more versions

/** `domain` '': templates of the account. */
export const templatesPath = (domain: string) =>
  domain === '' ? ('/v4/templates' as const) : (`/v3/${segment(domain)}/templates` as const)
const onePath = (domain: string, name: string) => `${templatesPath(domain)}/${segment(name)}` as const
const versionPath = (domain: string, name: string, tag: string) =>
  `${onePath(domain, name)}/versions/${segment(tag)}` as const

export const draftOf = ({ mjml, template, headers = {}, sample = {} }: Version): Draft => ({
  ...(mjml === '' ? { engine: 'handlebars', content: template } : { engine: 'mjml', content: mjml }),
  headers,
  sample: sampleText(sample),
})

const contentFields = ({ engine, content, headers, sample }: Draft) => ({
  [engine === 'mjml' ? 'mjml' : 'template']: content,
  headers: JSON.stringify(headers),
  sample: sample.trim() || '{}',
})

export const listTemplates = (domain: string, signal?: AbortSignal) =>
  getJson(`${templatesPath(domain)}?limit=${LIST_MAX}`, signal)

export const listVersions = (domain: string, name: string, signal?: AbortSignal) =>
  getJson(`${onePath(domain, name)}/versions?limit=${LIST_MAX}`, signal)

export const readVersion = (domain: string, name: string, tag: string, signal?: AbortSignal) =>
  getJson(versionPath(domain, name, tag), signal)

export const createTemplate = (domain: string, name: string, description: string, draft: Draft) =>
  sendForm('POST', templatesPath(domain), {
    name,
    description,
    ...contentFields(draft),
  })

export const describeTemplate = (domain: string, name: string, description: string) =>
  sendForm('PUT', onePath(domain, name), { description })

export const renameTemplate = (domain: string, name: string, newName: string) =>
  sendForm('PUT', `${onePath(domain, name)}/rename/${segment(newName)}`, {})

export const deleteTemplate = (domain: string, name: string) => sendJson('DELETE', onePath(domain, name))

export const saveVersion = (domain: string, name: string, tag: string, draft: Draft) =>
  sendForm('PUT', versionPath(domain, name, tag), contentFields(draft))

export const createVersion = (
  domain: string,
  name: string,
  fields: { tag: string; comment: string; active: boolean },
  draft: Draft,
) =>
  sendForm('POST', `${onePath(domain, name)}/versions`, {
    tag: fields.tag,
    comment: fields.comment,
    ...(fields.active && { active: 'yes' }),
    ...contentFields(draft),
  })

export const activateVersion = (domain: string, name: string, tag: string) =>
  sendForm('PUT', versionPath(domain, name, tag), { active: 'yes' })

export const deleteVersion = (domain: string, name: string, tag: string) =>
  sendJson('DELETE', versionPath(domain, name, tag))

/** What is missing is marked. */
export const renderDraft = ({ engine, content, headers }: Omit<Draft, 'sample'>, variables: object) =>
  sendJson('POST', '/sendwright/v1/templates/render', {
    ...{ engine, content, headers, variables },
    mark_missing: true,
  })

/** Sends the stored version to one address, as any program would. */
export const sendTest = (
  domain: string,
  fields: { to: string; from: string; template: string; version: string; variables: string },
) =>
  sendForm('POST', `/v3/${segment(domain)}/messages`, {
    to: fields.to,
    ...(fields.from !== '' && { from: fields.from }),
    template: fields.template,
    't:version': fields.version,
    't:variables': fields.variables,
    't:text': 'yes',
  })
