/** Tags: which ones an account and a domain have used, up to their limits. */
import type { Area } from '../area.ts'
import type { Core } from '../core.ts'
import { createKnownTags, type KnownTags } from './known-tags.ts'

export interface TagsArea extends Area {
  known: KnownTags
}

export function tagsArea({ config, store, clock }: Core): TagsArea {
  const { tagsPerDomainMax: perDomain, tagsPerAccountMax: perAccount } = config
  const known = createKnownTags({ store, clock, limits: { perDomain, perAccount } })
  return { known, domainDeleted: ({ id }) => known.forgetDomain(id) }
}
