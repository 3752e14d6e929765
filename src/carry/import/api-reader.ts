/** Reads lists of the HTTP API page by page. What cannot be read becomes an item that says so. */
import { type ApiAnswer, type ApiClient, ApiUnavailable, errorText } from './api-client.ts'
import {
  type Entry,
  type Item,
  itemsOrReason,
  type Kind,
  PAGE_ITEMS_MAX,
  type Page,
  refusedItem,
  type Section,
  Unreadable,
} from './entry.ts'

/** A list of a hundred million records; a server whose list does not end is left before that. */
export const PAGES_MAX = 100_000

/** The entries of a page are held together. */
const TOO_LONG = `cannot be read: a page has more than ${PAGE_ITEMS_MAX} entries`

export type ApiReader = ReturnType<typeof createApiReader>

export function createApiReader(client: ApiClient) {
  /** @throws Unreadable for anything but 200, ApiUnavailable if the key is refused */
  async function read(path: string): Promise<Record<string, unknown>> {
    const answer = await client.call('GET', path)
    if (answer.status === 200 && answer.body) return answer.body
    const reason = `GET ${path}: ${answer.status} ${errorText(answer)}`
    if (answer.status === 401) throw new ApiUnavailable(`${client.origin} refuses ${reason}`)
    throw new Unreadable(`cannot be read: ${reason}`)
  }

  /** As itemOf, for an entry that takes calls of its own. */
  async function loadedItem(
    kind: Kind,
    place: string,
    name: string,
    load: () => Promise<Entry>,
  ): Promise<Item> {
    try {
      return { place, entry: await load() }
    } catch (error) {
      if (!(error instanceof Unreadable)) throw error
      return refusedItem(kind, place, name, error.message)
    }
  }

  /** A list whose pages are linked. The cursor is the query of a link. */
  function linkedSection(
    id: string,
    kind: Kind,
    path: string,
    limit: number,
    read: (value: unknown) => Item | Promise<Item>,
  ): Section {
    return {
      id,
      async *pages(cursor): AsyncGenerator<Page> {
        let query = cursor ?? `?limit=${limit}`
        for (let page = 0; page < PAGES_MAX; page++) {
          const answer = await client.call('GET', path + query)
          if (!isList(answer, 'items')) return yield* unreadable(kind, path, answer, query)
          const found = objectsOf(answer.body?.['items'])
          const next = queryOf((answer.body?.['paging'] as Record<string, unknown> | undefined)?.['next'])
          if (found.length === 0) return
          if (found.length > PAGE_ITEMS_MAX)
            return yield { items: [refusedItem(kind, `GET ${path}`, path, TOO_LONG)], cursor: query }
          const items: Item[] = []
          for (const one of found) items.push(await read(one))
          if (next === null || next === query) return yield { items, cursor: query }
          yield { items, cursor: next }
          query = next
        }
      },
    }
  }

  /** A list that one answer has as a whole. */
  function wholeSection(id: string, kind: Kind, path: string, read: (answer: ApiAnswer) => Item[]): Section {
    return {
      id,
      async *pages(): AsyncGenerator<Page> {
        const answer = await client.call('GET', path)
        if (answer.status !== 200 || !answer.body) return yield* unreadable(kind, path, answer, '')
        yield { items: itemsOrReason(kind, `GET ${path}`, path, () => read(answer)), cursor: '' }
      },
    }
  }

  return { read, loadedItem, linkedSection, wholeSection }
}

/** An answer that has the list. One of another form, or over the limits of foreign JSON, must not pass for an empty list. */
export function isList({ status, body }: ApiAnswer, name: string): boolean {
  return status === 200 && (Array.isArray(body?.[name]) || body?.[name] === null)
}

/** Credentials that are refused end the run; a list that is not there is reported. */
export function* unreadable(kind: Kind, path: string, answer: ApiAnswer, cursor: string): Generator<Page> {
  if (answer.status === 401) throw new ApiUnavailable(`GET ${path}: ${errorText(answer)}`)
  const reason = `cannot be read: ${answer.status === 200 ? 'not the expected JSON' : `${answer.status} ${errorText(answer)}`}`
  yield { items: [refusedItem(kind, `GET ${path}`, path, reason)], cursor }
}

export function objectsOf(value: unknown): Record<string, unknown>[] {
  if (!Array.isArray(value)) return []
  return value.filter((item) => typeof item === 'object' && item !== null)
}

/** The query of a link to the next page; null without a link. */
export function queryOf(link: unknown): string | null {
  if (typeof link !== 'string' || !URL.canParse(link)) return null
  const { search } = new URL(link)
  return search === '' ? null : search
}
