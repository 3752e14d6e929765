import type { SectionPage } from '../section.ts'

/** The pages of the section. */
export const PAGES: readonly SectionPage[] = [
  { label: 'Providers', to: '/delivery/providers', need: { area: 'account', only: 'first' } },
  { label: 'Relays', to: '/delivery/relays', need: { area: 'account', only: 'first' } },
  { label: 'Addresses', to: '/delivery/ips', need: { area: 'ips' } },
  { label: 'Pools', to: '/delivery/pools', need: { area: 'ips' } },
  { label: 'Dynamic pools', to: '/delivery/dynamic-pools', need: { area: 'ips' } },
  { label: 'Warm-ups', to: '/delivery/warmups', need: { area: 'ips' } },
]
