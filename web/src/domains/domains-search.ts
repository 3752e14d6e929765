/** Search parameters of the list's URL. */
export interface DomainsSearch {
  /** Substring of the name. */
  q?: string
  /** The form for a new domain is open. */
  add?: 'yes'
}

export function readDomainsSearch({ q, add }: Record<string, unknown>): DomainsSearch {
  return {
    ...(typeof q === 'string' && q !== '' && { q }),
    ...(add === 'yes' && { add }),
  }
}
