/** The named search parameters of a URL that are texts; empty and other ones are left out. */
export function searchTexts<Name extends string>(
  search: Readonly<Record<string, unknown>>,
  names: readonly Name[],
): Partial<Record<Name, string>> {
  const found: Partial<Record<Name, string>> = {}
  for (const name of names) {
    const value = search[name]
    if (typeof value === 'string' && value !== '') found[name] = value
  }
  return found
}
