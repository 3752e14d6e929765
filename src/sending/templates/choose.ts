/** Which template and version a message is sent with; cached, as every message of a mailing looks it up. */
import { createHash } from 'node:crypto'
import { createCache } from '../../base/flow/cache.ts'
import { BadRequest } from '../../base/process/errors.ts'
import type { Clock } from '../../base/time/clock.ts'
import type { Store } from '../../platform/store/store.ts'
import type { DomainDirectory } from '../domains/names/directory.ts'
import type { TemplateSource } from './rendering/render-messages.ts'
import { findForSending, findVersion } from './store.ts'
import type { TemplateHeaders } from './template.ts'

export interface ChosenTemplate {
  templateName: string
  version: {
    id: string
    tag: string
    engine: 'handlebars'
    content: string
    /** From, Subject, Reply-To in this spelling, where the template has them. */
    headers: TemplateHeaders
  }
  /** For the renderer: content and headers under a key made of both, which stays valid while the mail waits. */
  source: TemplateSource
}

export type TemplateChoice = ReturnType<typeof createTemplateChoice>

/** A change on another node takes effect this much later at most. */
const REMEMBER_MS = 5_000
/** Templates in memory, up to 100 KB each. */
const CHOICES_MAX = 200

export function createTemplateChoice(parts: { store: Store; domains: DomainDirectory; clock: Clock }) {
  const { store, domains, clock } = parts

  async function load(key: string): Promise<ChosenTemplate> {
    const [accountId, domainName, name, tag] = JSON.parse(key) as [
      string,
      string | null,
      string,
      string | null,
    ]
    const domain = domainName === null ? null : await domains.byName(domainName)
    const domainId = domain?.accountId === accountId ? domain.id : null
    const template = await findForSending(store.db, accountId, domainId, name.toLowerCase())
    if (!template) throw new BadRequest(`template '${name}' not found`)
    const version = await findVersion(store.db, template.id, tag?.toLowerCase() ?? null)
    if (!version) {
      throw new BadRequest(
        tag === null
          ? `template '${name}' has no active version`
          : `version '${tag}' of template '${name}' not found`,
      )
    }
    const { id, content, headers } = version
    return {
      templateName: template.name,
      version: { id, tag: version.tag, engine: 'handlebars', content, headers },
      source: templateSource(content, headers),
    }
  }

  const cache = createCache({
    clock,
    ttlMs: REMEMBER_MS,
    entriesMax: CHOICES_MAX,
    load,
    shared: { changes: store.changes, topic: 'templates' },
  })
  return {
    /**
     * The version of that tag, else the active one. `domainName` null: templates of the account only.
     * @throws BadRequest `template '<name>' not found`, `version '<tag>' of template '<name>' not found`,
     *   `template '<name>' has no active version`
     */
    choose: async (
      accountId: string,
      domainName: string | null,
      nameOrId: string,
      tag?: string,
    ): Promise<ChosenTemplate> => cache.get(JSON.stringify([accountId, domainName, nameOrId, tag ?? null])),
    /** To be called after every change of a template. */
    changed: () => cache.forget(),
  }
}

/** The renderer's input, with its key. */
export function templateSource(content: string, headers: TemplateHeaders): TemplateSource {
  const key = createHash('sha256')
    .update(JSON.stringify([content, headers]))
    .digest('base64url')
  return { key, content, headers }
}
