/** Answers of the operations on templates (templates.md section 1), and the bodies that they take. */
import {
  anyJson,
  type Fields,
  flag,
  list,
  map,
  named,
  nothingNull,
  nullable,
  object,
  oneOf,
  optional,
  text,
  utcDate,
} from '../../base/shape.ts'
import { PAGING } from '../../platform/http/request/paging.ts'

const MESSAGE = text('What was done')
const NAME = text('Name in lower case, unique in the domain or account', { example: 'welcome' })
const VERSION_TAG = text('Tag of the version, in lower case', { example: 'initial' })
const ENGINE = oneOf('Engine of the content; MJML is compiled when it is stored', ['handlebars'])
const CREATED_AT = utcDate('When it was stored')
const COMMENT = text('Comment on the version')
const CONTENT = text('Content: HTML with Handlebars')
const HEADERS = map('From, Subject and Reply-To, as far as given', text('Value, with Handlebars'))

const VERSION_SUMMARY = named('TemplateVersionSummary', 'A version without its content', {
  tag: VERSION_TAG,
  engine: ENGINE,
  mjml: text('MJML source of the content; empty: there is none'),
  createdAt: CREATED_AT,
  comment: COMMENT,
  active: flag('Whether it is used when a message names no version'),
  id: text('Id of the version'),
  parsedhandlebar: nothingNull('Always null'),
})

export const VERSION = named('TemplateVersion', 'A version with its content', {
  ...VERSION_SUMMARY.fields,
  template: CONTENT,
  headers: optional(HEADERS),
  sample: optional(map('Variables for previews, as far as given', anyJson('Any value'))),
})

export const TEMPLATE = named('Template', 'A template of a domain or of the account', {
  name: NAME,
  description: text('Free text, up to 4,000 characters'),
  createdAt: CREATED_AT,
  createdBy: text('Who made it, as given'),
  id: text('Id of the template'),
})

const WITH_VERSION = named('TemplateWithVersion', 'A template and one of its versions', {
  ...TEMPLATE.fields,
  version: optional(VERSION),
})

const COPY = named('TemplateVersionCopy', 'A copied version', {
  tag: VERSION_TAG,
  template: CONTENT,
  engine: ENGINE,
  createdAt: CREATED_AT,
  comment: COMMENT,
  id: text('Id of the version'),
})

export const TEMPLATES = named('TemplatePage', 'A page of templates by name', {
  items: list('The templates of this page', TEMPLATE),
  paging: PAGING,
})
export const VERSIONS = named('TemplateVersionPage', 'A page of versions, oldest first', {
  template: object('The template', {
    ...TEMPLATE.fields,
    versions: list('The versions of this page', VERSION_SUMMARY),
  }),
  paging: PAGING,
})
export const ONE_TEMPLATE = object('The template; the version is there if it was asked for', {
  template: WITH_VERSION,
})
export const TEMPLATE_STORED = object('Stored; the version is there if content was given', {
  message: MESSAGE,
  template: WITH_VERSION,
})
/** A template that was changed, with further members. */
const done = <const F extends Fields>(more: F) =>
  object('Done', { message: MESSAGE, template: object('The template', { name: NAME, ...more }) })
export const TEMPLATE_DONE = done({})
export const VERSION_DONE = done({ version: object('The version', { tag: VERSION_TAG }) })
export const VERSION_COPIED = object('Copied; the copy is there twice', {
  message: MESSAGE,
  version: COPY,
  template: COPY,
})

const ITEMS_MAX = 100
const COPY_TARGET = {
  account_id: text('The account, or a subaccount of it'),
  name: text('Name of the copy', { only: { minLength: 1 } }),
  domain: optional(text('A domain of that account; default: its account templates')),
}
export const COPY_BODY = object('Where to, and which versions', {
  requests: list('Where to', object('One copy', COPY_TARGET), { only: { minItems: 1, maxItems: ITEMS_MAX } }),
  source_versions: optional(
    list('Tags of the versions; none: all', text('Tag'), { only: { maxItems: ITEMS_MAX } }),
  ),
})
export const COPIES = object('What could not be copied; the rest was', {
  message: MESSAGE,
  failed_copies: list('Failures', object('One failure', { ...COPY_TARGET, error: text('Why') })),
})

export const RENDER_BODY = object('A template or content, and what to render it with', {
  domain: optional(text('Whose templates; default: those of the account')),
  template: optional(text('Name or id of a stored template; this or content is needed')),
  version: optional(text('Tag; default: the active version')),
  content: optional(text('Content instead of a stored template')),
  engine: optional(oneOf('Of `content`', ['handlebars', 'mjml'], { default: 'handlebars' })),
  headers: optional(map('From, Subject, Reply-To of `content`', text('Value, with Handlebars'))),
  variables: optional(map('What the template is rendered with', anyJson('Any value'))),
  mark_missing: optional(
    flag('Writes {{name}} where a variable has no value, and {{#each name}} for a list', { default: false }),
  ),
  recipient_variables: optional(
    map(
      'Of one recipient: replaces %recipient.key% in the variables and in the result',
      anyJson('Any value'),
    ),
  ),
})
export const RENDERED = named('RenderedTemplate', 'The rendered parts, or what is wrong with them', {
  subject: nullable(text('The Subject header; null: the template has none')),
  headers: map('The headers that the template has', text('Value')),
  html: text('HTML part; empty after an error'),
  text: text('Text part, made from the HTML'),
  missing: list('Variables that had no value', text('Name')),
  variables: list(
    'Variables that content and headers use; names of blocks count, whatever is shown',
    object('One variable', {
      path: list('Names from the outermost; [] stands for each item of a list', text('Name')),
      kind: oneOf('What its place needs: text, a list, or a condition (any value)', [
        'text',
        'list',
        'condition',
      ]),
    }),
  ),
  errors: list('What is wrong; empty: nothing', text('Error')),
})
