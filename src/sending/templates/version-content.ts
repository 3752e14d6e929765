/** The content of a version as given by a caller, checked for storing. */
import { BadRequest } from '../../base/process/errors.ts'
import { templateSource } from './choose.ts'
import type { MjmlCompiler } from './rendering/mjml.ts'
import type { Renderer } from './rendering/render.ts'
import type { TemplateHeaders, VersionContent } from './template.ts'

/** `template` is MJML if `engine` is `mjml`. */
export interface GivenContent {
  template: string | undefined
  mjml: string | undefined
  engine: string | undefined
  headers: TemplateHeaders | undefined
}

export interface ContentParts {
  renderer: Pick<Renderer, 'check'>
  mjml: MjmlCompiler
  /** Bytes of one version: content and headers. */
  contentBytesMax: number
}

/** HTML is several times its MJML; more is no usable mail (clients cut at 100 KB). */
const COMPILED_MJML_GROWTH_MAX = 10

/** Checks the content; MJML is compiled to HTML. @throws BadRequest */
export async function checkContent(
  parts: ContentParts,
  accountId: string,
  given: GivenContent,
): Promise<VersionContent> {
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

async function compileMjml({ mjml, contentBytesMax }: ContentParts, source: string): Promise<string> {
  const result = await mjml.compile(source)
  if (result.kind === 'failed') throw new BadRequest(`Invalid parameter: template ${result.why}`)
  checkSize(result.html, {}, contentBytesMax * COMPILED_MJML_GROWTH_MAX)
  return result.html
}
