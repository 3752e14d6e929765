/** Puts the templates together. */
import { createMjmlCompiler } from '../templates/mjml.ts'
import { createRenderer } from '../templates/render.ts'
import { createTemplates } from '../templates/service.ts'
import type { Closers, Core } from './core.ts'

/** Templates with the threads that compile and render them; those start when they are first needed. */
export function startTemplates({ config, store, domains, clock }: Core, open: Closers) {
  const renderer = createRenderer()
  open.push(() => renderer.close())
  const mjml = createMjmlCompiler()
  open.push(() => mjml.close())
  const contentBytesMax = config.templateKbMax * 1024
  return { renderer, templates: createTemplates({ store, domains, clock, renderer, mjml, contentBytesMax }) }
}
