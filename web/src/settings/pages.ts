import type { SectionPage } from '../section.ts'

/** The pages of the section. */
export const PAGES: readonly SectionPage[] = [
  { label: 'API keys', to: '/settings/keys', need: { area: 'keys' } },
  { label: 'Users', to: '/settings/users', need: { area: 'account' } },
  { label: 'Subaccounts', to: '/settings/subaccounts', need: { area: 'subaccounts', only: 'parent' } },
  { label: 'Limits', to: '/settings/limits', need: { area: 'message-limits' } },
  { label: 'Allowed addresses', to: '/settings/addresses', need: { area: 'keys' } },
  { label: 'Alerts', to: '/settings/alerts', need: { area: 'alerts' } },
  { label: 'Event sinks', to: '/settings/event-sinks', need: { area: 'account', only: 'first' } },
  { label: 'Retention', to: '/settings/retention', need: { area: 'account' } },
  { label: 'Audit log', to: '/settings/audit', need: { area: 'account' } },
  { label: 'System', to: '/settings/system', need: { area: 'account', access: 'write', only: 'first' } },
]
