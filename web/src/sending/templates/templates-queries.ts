import { keepPreviousData, queryOptions } from '@tanstack/react-query'
import { valueOrThrow } from '../../queries.ts'
import { type Draft, listTemplates, listVersions, readVersion, renderDraft } from './templates-api.ts'

/** Prefix of every query about templates. */
export const TEMPLATES_KEY = 'templates'

/** Key of every mutation that stores a version's content. */
export const VERSION_SAVING = ['template-version-saving']

export const templatesQuery = (domain: string) =>
  queryOptions({
    queryKey: [TEMPLATES_KEY, domain],
    queryFn: async ({ signal }) => valueOrThrow(await listTemplates(domain, signal)).items,
  })

export const versionsQuery = (domain: string, name: string) =>
  queryOptions({
    queryKey: [TEMPLATES_KEY, domain, name],
    queryFn: async ({ signal }) => valueOrThrow(await listVersions(domain, name, signal)).template,
  })

export const versionQuery = (domain: string, name: string, tag: string) =>
  queryOptions({
    queryKey: [TEMPLATES_KEY, domain, name, tag],
    queryFn: async ({ signal }) =>
      valueOrThrow(await readVersion(domain, name, tag, signal)).template.version,
    enabled: tag !== '',
  })

/** The draft as it would be sent; the last result stays while the next one is made. */
export const renderQuery = (
  { engine, content, headers }: Omit<Draft, 'sample'>,
  variables: object | undefined,
) =>
  queryOptions({
    queryKey: ['rendered-template', engine, content, headers, variables],
    queryFn: async () => valueOrThrow(await renderDraft({ engine, content, headers }, variables ?? {})),
    placeholderData: keepPreviousData,
    enabled: variables !== undefined,
    staleTime: Number.POSITIVE_INFINITY, // depends on nothing else
    gcTime: 60_000,
  })
