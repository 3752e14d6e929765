/**
 * Reads everything that can move from an account behind the HTTP API of docs/api: of the hosted service that has the same
 * API, or of this one for an export. Sections are lists that the API pages through; only one page is held.
 *
 * Only the query of a paging link is used, so it leads nowhere but to the list that is being read.
 */

import { type ApiClient, ApiUnavailable, errorText, pathPart } from './api-client.ts'
import {
  domainEntry,
  listEntry,
  memberEntry,
  recordOf,
  routeEntry,
  selectorsOf,
  templateEntry,
  VERSIONS_MAX,
  versionOf,
  webhookEntry,
  webhooksByUrl,
} from './api-entries.ts'
import {
  type ApiReader,
  createApiReader,
  isList,
  objectsOf,
  PAGES_MAX,
  queryOf,
  unreadable,
} from './api-reader.ts'
import {
  type Item,
  itemOf,
  type Kind,
  objectOf,
  refusedItem,
  type Section,
  type Source,
  SUPPRESSION_PATHS,
  type SuppressionEntryKind,
  type TemplateVersion,
  textOf,
  Unreadable,
} from './entry.ts'

/** The most that the API allows for each list. */
const RECORDS_PER_PAGE = 1_000
const MEMBERS_PER_PAGE = 100
/** Each needs several calls of its own: the journal should not fall far behind. */
const DOMAINS_PER_PAGE = 20
const TEMPLATES_PER_PAGE = 10
/** Characters of one template's versions; a service allows 40 of a megabyte. The versions of a page are held. */
const VERSIONS_LENGTH_MAX = 48 * 2 ** 20
/** All names are held. */
const DOMAINS_MAX = 100_000
/** A hundred times what an account may have. */
const ROUTES_MAX = 100_000
/** Sections of one domain, and those that are not of a domain, for the progress. */
const SECTIONS_OF_DOMAIN = 6
const OTHER_SECTIONS = 5

interface ApiSourceOptions {
  /** Only these domains, what belongs to them, and lists at them. Empty: everything. */
  domains: readonly string[]
  kinds: ReadonlySet<Kind>
}

const routeSectionOf = (client: ApiClient): Section => ({
  id: 'route',
  async *pages(cursor) {
    for (let skip = Number(cursor ?? 0); skip < ROUTES_MAX; ) {
      const path = `/v3/routes?limit=${RECORDS_PER_PAGE}&skip=${skip}`
      const answer = await client.call('GET', path)
      if (!isList(answer, 'items')) return yield* unreadable('route', path, answer, String(skip))
      const found = objectsOf(answer.body?.['items'])
      if (found.length === 0) return
      skip += found.length
      const items = found.map((value) =>
        itemOf('route', 'GET /v3/routes', value['expression'], () => routeEntry(value)),
      )
      yield { items, cursor: String(skip) }
    }
  },
})

export function createApiSource(client: ApiClient, { domains, kinds }: ApiSourceOptions): Source {
  const isWanted = (domain: string) => domains.length === 0 || domains.includes(domain.toLowerCase())
  const isWhole = domains.length === 0
  let knownSections = OTHER_SECTIONS

  const { read, loadedItem, linkedSection, wholeSection } = createApiReader(client)

  async function domainItem(found: Record<string, unknown>): Promise<Item> {
    const name = textOf(found['name'])
    const path = `/v4/domains/${pathPart(name)}`
    const place = `GET ${path}`
    if (found['type'] === 'sandbox')
      return refusedItem('domain', place, name, 'a sandbox domain stays with its service')
    return loadedItem('domain', place, name, async () => {
      const { sending_dns_records: records } = await read(path)
      const { tracking = {} } = await read(`/v3/domains/${pathPart(name)}/tracking`)
      return domainEntry(found, { selectors: selectorsOf(records), tracking })
    })
  }

  const domainSection: Section = {
    id: 'domains',
    async *pages(cursor) {
      let taken = Number(cursor ?? 0)
      for await (const found of skipping(domainNames(client), taken)) {
        const items: Item[] = []
        for (const one of found) if (isWanted(textOf(one['name']))) items.push(await domainItem(one))
        taken += found.length
        yield { items, cursor: String(taken) }
      }
    },
  }

  function suppressionSection(domain: string, kind: SuppressionEntryKind): Section {
    const path = `/v3/${pathPart(domain)}/${SUPPRESSION_PATHS[kind]}`
    return linkedSection(`${kind} ${domain}`, kind, path, RECORDS_PER_PAGE, (value) =>
      itemOf(kind, `GET ${path}`, (value as Record<string, unknown>)['address'], () => ({
        kind,
        domain,
        record: recordOf(kind, objectOf(value)),
      })),
    )
  }

  function templateSection(domain: string | null): Section {
    const path = domain === null ? '/v4/templates' : `/v3/${pathPart(domain)}/templates`
    return linkedSection(`template ${domain ?? ''}`, 'template', path, TEMPLATES_PER_PAGE, async (value) => {
      const { name: given, description } = value as Record<string, unknown>
      const name = textOf(given)
      const place = `${path}/${pathPart(name)}`
      return loadedItem('template', `GET ${place}`, name, async () =>
        templateEntry({ domain, name, description, versions: await versionsOf(read, place) }),
      )
    })
  }

  function* sectionsOf(domain: string): Generator<Section> {
    const name = pathPart(domain)
    const webhooks = `/v3/domains/${name}/webhooks`
    yield wholeSection(`webhook ${domain}`, 'webhook', webhooks, ({ body }) =>
      webhooksByUrl(domain, body?.['webhooks'] ?? {}).map((entry) => ({ place: `GET ${webhooks}`, entry })),
    )
    yield templateSection(domain)
    for (const kind of Object.keys(SUPPRESSION_PATHS) as SuppressionEntryKind[])
      yield suppressionSection(domain, kind)
  }

  const listSection = linkedSection('list', 'list', '/v3/lists/pages', MEMBERS_PER_PAGE, (value) =>
    itemOf('list', 'GET /v3/lists/pages', textOf((value as Record<string, unknown>)['address']), () =>
      listEntry(value),
    ),
  )

  const isListWanted = (item: Item) =>
    item.entry === null || isWanted((item.entry as { address: string }).address.split('@').at(-1) ?? '')

  const wantedLists: Section = {
    id: listSection.id,
    async *pages(cursor) {
      for await (const { items, cursor: next } of listSection.pages(cursor))
        yield { items: items.filter(isListWanted), cursor: next }
    },
  }

  function memberSection(list: string): Section {
    const path = `/v3/lists/${pathPart(list)}/members/pages`
    return linkedSection(`member ${list}`, 'member', path, MEMBERS_PER_PAGE, (value) =>
      itemOf('member', `GET ${path}`, (value as Record<string, unknown>)['address'], () =>
        memberEntry({ ...objectOf(value), list }),
      ),
    )
  }

  const accountWebhooks = wholeSection('webhook', 'webhook', '/v1/webhooks', ({ body }) =>
    objectsOf(body?.['webhooks']).map((value) =>
      itemOf('webhook', 'GET /v1/webhooks', value['url'], () => webhookEntry(value)),
    ),
  )

  const routeSection = routeSectionOf(client)

  async function* all(): AsyncGenerator<Section> {
    const names: string[] = []
    for await (const found of domainNames(client))
      for (const one of found)
        if (one['type'] !== 'sandbox' && isWanted(textOf(one['name']))) names.push(textOf(one['name']))
    knownSections = names.length * SECTIONS_OF_DOMAIN + OTHER_SECTIONS
    yield domainSection
    for (const name of names) yield* sectionsOf(name)
    if (isWhole) yield* [accountWebhooks, templateSection(null)]
    yield wantedLists
    if (kinds.has('member')) {
      for await (const { items } of wantedLists.pages(null)) {
        knownSections += items.length
        for (const { entry } of items) if (entry?.kind === 'list') yield memberSection(entry.address)
      }
    }
    if (isWhole) yield routeSection
  }

  return {
    id: `${client.origin} ${[...domains].sort().join(' ')} ${[...kinds].sort().join(' ')}`,
    async *sections() {
      for await (const section of all()) if (kinds.has(kindOf(section.id))) yield section
    },
    progress: (done) => Math.min(1, done / knownSections),
  }
}

async function* domainNames(client: ApiClient): AsyncGenerator<Record<string, unknown>[]> {
  for (let skip = 0; skip < DOMAINS_MAX; ) {
    const answer = await client.call('GET', `/v4/domains?limit=${DOMAINS_PER_PAGE}&skip=${skip}&sort=name`)
    if (!isList(answer, 'items'))
      throw new ApiUnavailable(
        `${client.origin} does not list its domains: ${answer.status} ${errorText(answer)}`,
      )
    const found = objectsOf(answer.body?.['items'])
    if (found.length === 0) return
    yield found
    skip += found.length
  }
}

/** The versions of the template at `path` with their content, oldest first. @throws Unreadable */
async function versionsOf(read: ApiReader['read'], path: string): Promise<TemplateVersion[]> {
  const versions: TemplateVersion[] = []
  let length = 0
  let query = '?limit=100'
  for (let page = 0; page < PAGES_MAX; page++) {
    const { template, paging } = await read(`${path}/versions${query}`)
    const found = objectsOf((template as Record<string, unknown> | undefined)?.['versions'])
    for (const { tag } of found) {
      const answer = await read(`${path}/versions/${pathPart(textOf(tag))}`)
      const version = versionOf((answer['template'] as Record<string, unknown> | undefined)?.['version'])
      versions.push(version)
      length += JSON.stringify(version).length
      if (versions.length > VERSIONS_MAX || length > VERSIONS_LENGTH_MAX)
        throw new Unreadable('has more versions, or longer ones, than a service allows')
    }
    const next = queryOf((paging as Record<string, unknown> | undefined)?.['next'])
    if (found.length === 0 || next === null || next === query) return versions
    query = next
  }
  return versions
}

const kindOf = (id: string) => (id === 'domains' ? 'domain' : id.split(' ')[0]) as Kind

/** Pages after the first `count` elements, which are read again: there is no other way to find the place. */
async function* skipping<T>(pages: AsyncIterable<T[]>, count: number): AsyncGenerator<T[]> {
  let left = count
  for await (const page of pages) {
    const rest = page.slice(left)
    left = Math.max(0, left - page.length)
    if (rest.length > 0) yield rest
  }
}
