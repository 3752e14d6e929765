/** Stored templates as sending uses them: the chosen version is kept with the message and rendered per copy. */
import { templateSource } from '../../sending/templates/choose.ts'
import type { Renderer } from '../../sending/templates/render.ts'
import type { TemplateSource } from '../../sending/templates/render-messages.ts'
import type { TemplateService } from '../../sending/templates/service.ts'
import {
  type ChosenTemplate,
  RenderError,
  type TemplateChooser,
  type TemplateRenderer,
} from './collaborators.ts'

export function sendTemplates(
  templates: Pick<TemplateService, 'choose'>,
  renderer: Renderer,
): { templates: TemplateChooser; renderer: TemplateRenderer } {
  /** The key of a source is a hash of its text: made once for all copies of a message. */
  const sources = new WeakMap<ChosenTemplate, TemplateSource>()
  const sourceOf = (chosen: ChosenTemplate) => {
    const source = sources.get(chosen) ?? templateSource(chosen.source, chosen.headers)
    sources.set(chosen, source)
    return source
  }
  return {
    templates: {
      async choose(domain, { name, version }) {
        const found = await templates.choose(domain.accountId, domain.name, name, version ?? undefined)
        const { tag, content } = found.version
        return {
          name: found.templateName,
          version: tag,
          source: content,
          headers: headersOf(found.version.headers),
        }
      },
    },
    renderer: {
      async render(accountId, chosen, variables, { text }) {
        const result = await renderer.render({ accountId, template: sourceOf(chosen), variables, text })
        if (result.kind === 'failed') throw new RenderError(result.detail)
        return result
      },
    },
  }
}

/** Without the names that have no value. */
function headersOf(headers: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  )
}
