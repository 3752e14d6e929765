/** Templates, with the threads that compile and render them; those start when they are first needed. */
import type { Area } from '../../area.ts'
import type { Core } from '../../core.ts'
import { previewRoutes } from './preview.ts'
import { createMjmlCompiler } from './rendering/mjml.ts'
import { createRenderer, type Renderer } from './rendering/render.ts'
import { templateRoutes } from './routes.ts'
import { createTemplates, type TemplateService } from './service.ts'

export interface TemplatesArea extends Area {
  templates: TemplateService
  renderer: Renderer
}

export function templatesArea({ config, sizes, store, domains, clock }: Core): TemplatesArea {
  const renderer = createRenderer({ workersMax: sizes.templateThreads })
  const mjml = createMjmlCompiler()
  const contentBytesMax = config.templateKbMax * 1024
  const templates = createTemplates({ store, domains, clock, renderer, mjml, contentBytesMax })
  return {
    templates,
    renderer,
    operations: [
      ...templateRoutes({ templates, domains, baseUrl: config.publicUrl }),
      ...previewRoutes({ templates, renderer, domains }),
    ],
    domainDeleted: ({ accountId, id, name }) => templates.removeAll({ accountId, domain: { id, name } }),
    accountDeleted: (accountId) => templates.removeAll({ accountId, domain: null }),
    async stop() {
      await mjml.close()
      await renderer.close()
    },
  }
}
