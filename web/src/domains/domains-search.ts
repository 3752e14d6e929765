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

/** Windows of the page of a domain's settings. */
export const OPTION_FORMS = ['footers', 'host', 'messages', 'topics'] as const

export interface OptionsSearch {
  /** The window that is open. */
  edit?: (typeof OPTION_FORMS)[number]
}

export function readOptionsSearch({ edit }: Record<string, unknown>): OptionsSearch {
  const form = OPTION_FORMS.find((each) => each === edit)
  return form === undefined ? {} : { edit: form }
}

/** Windows of the page of a domain's keys. */
export const KEY_FORMS = ['add', 'selector', 'rotation'] as const

export interface KeysSearch {
  /** The window that is open. */
  form?: (typeof KEY_FORMS)[number]
}

export function readKeysSearch({ form }: Record<string, unknown>): KeysSearch {
  const known = KEY_FORMS.find((each) => each === form)
  return known === undefined ? {} : { form: known }
}

export interface LoginsSearch {
  /** Query string of the page of the list (shared/paging.ts). */
  at?: string
  /** The form for a new login is open. */
  add?: 'yes'
}

export function readLoginsSearch({ at, add }: Record<string, unknown>): LoginsSearch {
  return {
    ...(typeof at === 'string' && at !== '' && { at }),
    ...(add === 'yes' && { add }),
  }
}
