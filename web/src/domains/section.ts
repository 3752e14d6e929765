import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { rootRoute } from '../root-route.ts'
import { section as defineSection } from '../section.ts'
import { readDomainsSearch, readKeysSearch, readLoginsSearch, readOptionsSearch } from './domains-search.ts'
import { readReceiversSearch } from './receivers/receivers-search.ts'

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
  component: lazyRouteComponent(() => import('./receivers/receivers-page.tsx'), 'ReceiversPage'),
})
const healthRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/domains/$name/health',
  component: lazyRouteComponent(() => import('./health-page.tsx'), 'DomainHealthPage'),
})
const optionsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/domains/$name/settings',
  validateSearch: readOptionsSearch,
  component: lazyRouteComponent(() => import('./options/options-page.tsx'), 'OptionsPage'),
})
const keysRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/domains/$name/keys',
  validateSearch: readKeysSearch,
  component: lazyRouteComponent(() => import('./keys/keys-page.tsx'), 'KeysPage'),
})
const loginsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/domains/$name/logins',
  validateSearch: readLoginsSearch,
  component: lazyRouteComponent(() => import('./logins/logins-page.tsx'), 'LoginsPage'),
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
  routes: [listRoute, domainRoute, healthRoute, optionsRoute, keysRoute, loginsRoute, receiversRoute],
})
