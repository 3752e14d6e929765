import type { SectionPage } from '../section.ts'

/** The pages of the section. */
export const PAGES: readonly SectionPage[] = [
  { label: 'API keys', to: '/settings/keys', need: { area: 'keys' } },
  { label: 'Users', to: '/settings/users', need: { area: 'account' } },
  { label: 'Audit log', to: '/settings/audit', need: { area: 'account' } },
  { label: 'System', to: '/settings/system', need: { area: 'account', access: 'write', only: 'first' } },
]
