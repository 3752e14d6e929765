/** The search parameters of a page with some changed; undefined removes one. */
export function withSearch<Search extends object>(
  old: Search,
  changes: { readonly [Name in keyof Search]?: Search[Name] | undefined },
): Search {
  const search = { ...old, ...changes }
  for (const name of Object.keys(search) as (keyof Search)[])
    if (search[name] === undefined) delete search[name]
  return search as Search
}

/** The parameter as text; undefined if it is absent or empty. */
export const searchText = (value: unknown) => (typeof value === 'string' && value !== '' ? value : undefined)
