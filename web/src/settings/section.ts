import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { rootRoute } from '../root-route.ts'
import { section as defineSection } from '../section.ts'
import { PAGES } from './pages.ts'
import { readAuditSearch, readListSearch } from './settings-search.ts'

const indexRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/settings',
  component: lazyRouteComponent(() => import('./settings-page.tsx'), 'SettingsPage'),
})
const keysRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/settings/keys',
  validateSearch: readListSearch,
  component: lazyRouteComponent(() => import('./keys-page.tsx'), 'KeysPage'),
})
const usersRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/settings/users',
  validateSearch: readListSearch,
  component: lazyRouteComponent(() => import('./users-page.tsx'), 'UsersPage'),
})
const auditRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/settings/audit',
  validateSearch: readAuditSearch,
  component: lazyRouteComponent(() => import('./audit-page.tsx'), 'AuditPage'),
})
const systemRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/settings/system',
  component: lazyRouteComponent(() => import('./system-page.tsx'), 'SystemPage'),
})

export const section = defineSection({
  label: 'Settings',
  icon: 'settings',
  to: '/settings',
  letter: ',',
  pages: PAGES,
  commands: [
    {
      label: 'Create an API key',
      words: 'new token secret',
      href: '/settings/keys?add=yes',
      need: { area: 'keys', access: 'write' },
    },
    {
      label: 'Invite a user',
      words: 'new colleague team rights',
      href: '/settings/users?add=yes',
      need: { area: 'account', access: 'write' },
    },
  ],
  routes: [indexRoute, keysRoute, usersRoute, auditRoute, systemRoute],
})
