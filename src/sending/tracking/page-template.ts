/**
 * Pages for people in an account's own words and looks (decision 261): a stored template of the domain or the account,
 * rendered with the built-in page as variables. Its policy is a sandbox: nothing of it runs, and its forms post to the
 * service alone.
 *
 * A template that cannot be used must not keep anybody from agreeing or leaving: the built-in page is shown instead.
 */
import type { Logger } from 'pino'
import { LANGUAGES, type Language } from '../../base/languages.ts'
import { BadRequest, ServiceError } from '../../base/process/errors.ts'
import { pagePolicy, plainText, sandboxedPolicy, smallPage } from '../../platform/http/answer/pages.ts'
import type { TemplateChoice } from '../templates/choose.ts'
import { describeFailure, type Renderer } from '../templates/rendering/render.ts'
import type { TemplateSource } from '../templates/rendering/render-messages.ts'

/** A page before it is written. */
export interface Page {
  /** Tells a template which page it is. */
  name: string
  lang: Language
  /** HTML, as the parts. */
  title: string
  parts: readonly string[]
  /** Parts that the person acts on or must not miss. */
  forms: readonly string[]
  /** Whom and what it is about, as text. */
  about: Readonly<Record<string, string>>
}

/** Whose template; null: the built-in page. */
export interface PageOwner {
  accountId: string
  domainName: string | null
  template: string | null
}

export type PageTemplates = ReturnType<typeof createPageTemplates>

interface PageTemplateParts {
  templates: Pick<TemplateChoice, 'choose'>
  renderer: Pick<Renderer, 'render'>
  log: Logger
}

/** Anybody may ask for a page, again and again. */
const PAGE_CHARS_MAX = 200_000

export const builtIn = ({ title, parts, lang }: Page): string => smallPage(title, parts, lang)

export function createPageTemplates({ templates, renderer, log }: PageTemplateParts) {
  /** @throws BadRequest for a page that cannot be shown */
  async function rendered(accountId: string, template: TemplateSource, page: Page): Promise<string> {
    const { name, lang, title, parts, forms, about } = page
    const variables = {
      ...about,
      ...{ page: name, lang, title: plainText(title) },
      ...{ content: parts.join('\n'), forms: forms.join('\n') },
    }
    const result = await renderer.render({ accountId, template, variables })
    const where = `page '${name}' in '${lang}'`
    if (result.kind === 'failed') throw new BadRequest(`${where}: ${describeFailure(result)}`)
    if (result.html.length > PAGE_CHARS_MAX)
      throw new BadRequest(`${where} has more than ${PAGE_CHARS_MAX} characters`)
    if (!forms.every((form) => result.html.includes(form)))
      throw new BadRequest(`${where} has neither {{{content}}} nor {{{forms}}}`)
    return result.html
  }

  return {
    /** `leadsTo`: as for `pagePolicy`. */
    async show({ accountId, domainName, template }: PageOwner, page: Page, leadsTo: string | null = null) {
      if (template !== null) {
        try {
          const { source } = await templates.choose(accountId, domainName, template)
          return { html: await rendered(accountId, source, page), policy: sandboxedPolicy(leadsTo) }
        } catch (error) {
          if (!(error instanceof ServiceError)) throw error
          log.info({ err: error, accountId, template }, 'a page without its template')
        }
      }
      return { html: builtIn(page), policy: pagePolicy(leadsTo) }
    },
    /** @throws BadRequest for a template that is not there, or does not show the forms of one of these pages */
    async check({ accountId, domainName, template }: PageOwner, names: readonly string[]) {
      if (template === null) return
      const { source } = await templates.choose(accountId, domainName, template)
      const [first = ''] = names
      const wanted = [
        ...names.map((name) => [name, 'en'] as const),
        ...LANGUAGES.map((lang) => [first, lang] as const),
      ]
      for (const [name, lang] of wanted) {
        try {
          await rendered(accountId, source, { ...SAMPLE, name, lang })
        } catch (error) {
          if (!(error instanceof BadRequest)) throw error
          throw new BadRequest(`template '${template}' cannot show pages: ${error.message}`)
        }
      }
    },
  }
}

const FORM = '<form method="post"><button type="submit">-</button></form>'
const SAMPLE = { title: '-', parts: [FORM], forms: [FORM], about: {} }
