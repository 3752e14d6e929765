/** What a `Chooser` offers: each asks the operation that finds by a part of the name, or by its beginning. */
import { askJson, getJson } from '../../api.ts'
import type * as Api from '../../api-types.ts'
import { valueOrThrow } from '../../queries.ts'
import type { Option, OptionPage, OptionSource } from './chooser.tsx'

const PAGE_SIZE = 25 // three lists' heights

/** `noteOf`: what speaks against a domain for this use. */
export const domainOptions = (
  use = 'any',
  noteOf?: (domain: Api.Domain) => string | undefined,
): OptionSource => ({
  key: ['domains', use],
  async find(search, skip, signal) {
    const query = queryOf(skip, { sort: 'name', ...(search !== '' && { search }) })
    const { items, total_count } = valueOrThrow(await getJson(`/v4/domains?${query}`, signal))
    const options = items.map((domain) => ({ ...same(domain.name), note: noteOf?.(domain) }))
    return pageOf(options, skip, total_count)
  },
})

export const SUBACCOUNT_OPTIONS: OptionSource = {
  key: ['subaccounts'],
  async find(filter, skip, signal) {
    const query = queryOf(skip, { sort: 'asc', ...(filter !== '' && { filter }) })
    const { subaccounts, total } = valueOrThrow(await getJson(`/v5/accounts/subaccounts?${query}`, signal))
    return pageOf(
      subaccounts.map(({ id, name }) => ({ value: id, label: name })),
      skip,
      total,
    )
  },
}

export const TAG_OPTIONS: OptionSource = {
  key: ['tags'],
  async find(tag, skip, signal) {
    const pagination = { sort: 'tag:asc', skip, limit: PAGE_SIZE, include_total: true }
    const body = { pagination, ...(tag !== '' && { tag }) }
    const { items, pagination: page } = valueOrThrow(await askJson('/v1/analytics/tags', body, signal))
    return pageOf(
      items.map((item) => same(item.tag)),
      skip,
      page.total ?? 0,
    )
  },
}

export const same = (name: string): Option => ({ value: name, label: name })

const queryOf = (skip: number, more: Record<string, string>) =>
  new URLSearchParams({ limit: String(PAGE_SIZE), skip: String(skip), ...more })

const pageOf = (options: Option[], skip: number, total: number): OptionPage => ({
  options,
  next: skip + options.length < total && options.length > 0 ? skip + options.length : undefined,
})
