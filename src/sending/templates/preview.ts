/** The render operation (own-operations.md section 6): a template rendered with given variables; nothing is sent. */
import { BadRequest, NotFound } from '../../base/process/errors.ts'
import type { Of } from '../../base/shape.ts'
import { isPlainObject } from '../../base/values.ts'
import { type Operation, operation } from '../../platform/http/operation.ts'
import type { Params } from '../../platform/http/request/params.ts'
import type { DomainDirectory } from '../domains/names/directory.ts'
import { templateSource } from './choose.ts'
import { describeFailure, type Renderer } from './rendering/render.ts'
import type { TemplateService } from './service.ts'
import { RENDER_BODY, RENDERED } from './shapes.ts'
import { readTemplateHeaders } from './template.ts'

export interface PreviewParts {
  templates: TemplateService
  renderer: Renderer
  domains: DomainDirectory
}

type Json = Record<string, unknown>

/** The variables are read, filled in and transferred on the main thread: 1 MB takes 30 ms. */
const PREVIEW_BODY_LIMIT = { bytes: 1024 * 1024, message: 'request size exceeds 1MiB limit' }

export function previewRoutes(parts: PreviewParts): Operation[] {
  return [
    operation({
      method: 'POST',
      path: '/sendwright/v1/templates/render',
      id: 'renderTemplate',
      tag: 'Templates',
      summary: 'Render a stored template or given content; sends nothing',
      auth: { area: 'templates', access: 'read' },
      bodyLimit: PREVIEW_BODY_LIMIT,
      body: RENDER_BODY,
      answers: { 200: RENDERED, 404: 'domain not found' },
      handler: ({ params, caller }) => preview(parts, params, caller.accountId),
    }),
  ]
}

async function preview(parts: PreviewParts, params: Params, accountId: string): Promise<Of<typeof RENDERED>> {
  const recipient = objectOf(params, 'recipient_variables')
  const given = objectOf(params, 'variables')
  const variables = Object.keys(recipient).length > 0 ? (substituteIn(given, recipient, 0) as Json) : given
  const source = await sourceOf(parts, params, accountId)
  if (typeof source === 'string') return failed(source)
  const result = await parts.renderer.render({
    accountId,
    template: source,
    variables,
    text: true,
    missing: true,
    marked: params.boolean('mark_missing') ?? false,
  })
  if (result.kind === 'failed') return failed(describeFailure(result))
  const fill = (text: string) => substitute(text, recipient)
  const headers = Object.fromEntries(
    Object.entries(result.headers).map(([name, value]) => [
      name,
      fill(value).replace(/[\p{Cc}\u2028\u2029]+/gu, ' '),
    ]),
  )
  return {
    subject: headers['Subject'] ?? null,
    headers,
    html: fill(result.html),
    text: fill(result.text ?? ''),
    missing: result.missing,
    variables: result.variables,
    errors: [],
  }
}

const failed = (error: string) => ({
  subject: null,
  headers: {},
  html: '',
  text: '',
  missing: [],
  variables: [],
  errors: [error],
})

/** The stored template or the given content; a text: why the content cannot be rendered. */
async function sourceOf({ templates, domains }: PreviewParts, params: Params, accountId: string) {
  const [name, content] = [params.text('template'), params.text('content')]
  if ((name === undefined) === (content === undefined)) {
    throw new BadRequest("Exactly one of 'template' and 'content' must be given")
  }
  const domain = params.text('domain')
  if (domain !== undefined && (await domains.byName(domain))?.accountId !== accountId) {
    throw new NotFound('domain not found')
  }
  if (name !== undefined) {
    return (await templates.choose(accountId, domain ?? null, name, params.text('version'))).source
  }
  const headers = params.text('headers')
  const given = {
    template: content,
    mjml: undefined,
    engine: params.text('engine'),
    headers: headers === undefined ? {} : readTemplateHeaders(headers),
  }
  try {
    const prepared = await templates.prepare(accountId, given)
    return templateSource(prepared.content, prepared.headers)
  } catch (error) {
    if (error instanceof BadRequest) return error.message
    throw error
  }
}

function objectOf(params: Params, name: string): Json {
  const value = params.value(name) ?? {}
  if (!isPlainObject(value)) throw new BadRequest(`'${name}' parameter is not a valid JSON`)
  return value
}

/** As messages.md rule 24: values as they are, others as JSON, absent keys left alone, nothing escaped. */
function substitute(text: string, recipient: Json): string {
  return text.replaceAll(/%recipient\.([^%\s]{1,256})%/g, (whole, key: string) => {
    if (!Object.hasOwn(recipient, key)) return whole
    const value = recipient[key]
    if (value === null || value === undefined) return ''
    return typeof value === 'string' ? value : JSON.stringify(value)
  })
}

/** Deeper than any template's data; the request itself may nest without limit. */
const VARIABLES_DEPTH_MAX = 100

/** @throws BadRequest for variables that nest too deeply */
function substituteIn(value: unknown, recipient: Json, depth: number): unknown {
  if (depth > VARIABLES_DEPTH_MAX) throw new BadRequest("'variables' parameter nests too deeply")
  if (typeof value === 'string') return substitute(value, recipient)
  if (Array.isArray(value)) return value.map((item) => substituteIn(item, recipient, depth + 1))
  if (!isPlainObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, substituteIn(item, recipient, depth + 1)]),
  )
}
