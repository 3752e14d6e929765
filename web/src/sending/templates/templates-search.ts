import { searchText } from '../../shared/page/search.ts'

/** Search parameters of the pages of templates. */
export interface TemplatesSearch {
  /** Whose templates; absent: those of the account. */
  domain?: string
  /** Part of the name. */
  q?: string
  /** The form for a new template is open. */
  add?: 'yes'
}

export const TEMPLATE_VIEWS = ['edit', 'versions', 'compare'] as const
export type TemplateView = (typeof TEMPLATE_VIEWS)[number]

export interface TemplateSearch {
  domain?: string
  /** Tag of the version that is open; absent: the active one. */
  version?: string
  /** Default `edit`. */
  view?: TemplateView
  /** The version that `version` is compared with. */
  with?: string
  /** Default `desk`. */
  show?: PreviewKind
  /** MJML is edited as source; absent: as blocks. */
  write?: 'source'
  /** The form for a test is open. */
  test?: 'yes'
  /** The form for name and description is open. */
  rename?: 'yes'
}

export const PREVIEW_KINDS = ['desk', 'phone', 'text'] as const
export type PreviewKind = (typeof PREVIEW_KINDS)[number]

export function readTemplatesSearch(search: Record<string, unknown>): TemplatesSearch {
  const [domain, q] = [searchText(search['domain']), searchText(search['q'])]
  return {
    ...(domain !== undefined && { domain }),
    ...(q !== undefined && { q }),
    ...(search['add'] === 'yes' && { add: 'yes' }),
  }
}

export function readTemplateSearch(search: Record<string, unknown>): TemplateSearch {
  const [domain, version, other] = [
    searchText(search['domain']),
    searchText(search['version']),
    searchText(search['with']),
  ]
  const view = TEMPLATE_VIEWS.find((name) => name === search['view'])
  const show = PREVIEW_KINDS.find((name) => name === search['show'])
  return {
    ...(domain !== undefined && { domain }),
    ...(version !== undefined && { version }),
    ...(view !== undefined && { view }),
    ...(other !== undefined && { with: other }),
    ...(show !== undefined && { show }),
    ...(search['write'] === 'source' && { write: 'source' }),
    ...(search['test'] === 'yes' && { test: 'yes' }),
    ...(search['rename'] === 'yes' && { rename: 'yes' }),
  }
}
