import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { rootRoute } from '../root-route.ts'
import { section as defineSection } from '../section.ts'
import { readDomainsSearch } from './domains-search.ts'
import { readReceiversSearch } from './receivers-search.ts'

const listRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/domains',
  validateSearch: readDomainsSearch,
  component: lazyRouteComponent(() => import('./domains-page.tsx'), 'DomainsPage'),
})
const domainRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/domains/$name',
  component: lazyRouteComponent(() => import('./domain-page.tsx'), 'DomainPage'),
})
const receiversRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/domains/$name/receivers',
  validateSearch: readReceiversSearch,
  component: lazyRouteComponent(() => import('./receivers-page.tsx'), 'ReceiversPage'),
})

export const section = defineSection({
  label: 'Domains',
  icon: 'globe',
  to: '/domains',
  letter: 'd',
  need: { area: 'domains' },
  commands: [
    {
      label: 'Add a domain',
      words: 'new create',
      href: '/domains?add=yes',
      need: { area: 'domains', access: 'write' },
    },
  ],
  find: (text) =>
    /^[^\s@]+\.[^\s@]+$/.test(text)
      ? [{ label: `Domains named like ${text}`, href: `/domains?q=${encodeURIComponent(text)}` }]
      : [],
  routes: [listRoute, domainRoute, receiversRoute],
})
