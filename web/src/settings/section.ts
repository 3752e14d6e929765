import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { rootRoute } from '../root-route.ts'
import { section as defineSection } from '../section.ts'
import { readAlertsSearch } from './alerts/alerts-search.ts'
import { PAGES } from './pages.ts'
import {
  readAuditSearch,
  readEditSearch,
  readKeyCallsSearch,
  readListSearch,
  readRetentionSearch,
  readSubaccountSearch,
  readSubaccountsSearch,
} from './settings-search.ts'

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
const keyCallsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/settings/keys/$id',
  validateSearch: readKeyCallsSearch,
  component: lazyRouteComponent(() => import('./key-calls-page.tsx'), 'KeyCallsPage'),
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
const subaccountsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/settings/subaccounts',
  validateSearch: readSubaccountsSearch,
  component: lazyRouteComponent(() => import('./subaccounts/subaccounts-page.tsx'), 'SubaccountsPage'),
})
const subaccountRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/settings/subaccounts/$id',
  validateSearch: readSubaccountSearch,
  component: lazyRouteComponent(() => import('./subaccounts/subaccount-page.tsx'), 'SubaccountPage'),
})
const limitsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/settings/limits',
  component: lazyRouteComponent(() => import('./limits/limits-page.tsx'), 'LimitsPage'),
})
const addressesRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/settings/addresses',
  validateSearch: readEditSearch,
  component: lazyRouteComponent(() => import('./addresses/addresses-page.tsx'), 'AddressesPage'),
})
const alertsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/settings/alerts',
  validateSearch: readAlertsSearch,
  component: lazyRouteComponent(() => import('./alerts/alerts-page.tsx'), 'AlertsPage'),
})
const sinksRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/settings/event-sinks',
  validateSearch: readEditSearch,
  component: lazyRouteComponent(() => import('./event-sinks/sinks-page.tsx'), 'SinksPage'),
})
const retentionRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/settings/retention',
  validateSearch: readRetentionSearch,
  component: lazyRouteComponent(() => import('./retention/retention-page.tsx'), 'RetentionPage'),
})
const systemRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/settings/system',
  component: lazyRouteComponent(() => import('./system-page.tsx'), 'SystemPage'),
})

const profileRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/settings/profile',
  component: lazyRouteComponent(() => import('./profile/profile-page.tsx'), 'ProfilePage'),
})

export const section = defineSection({
  label: 'Settings',
  icon: 'settings',
  to: '/settings',
  letter: ',',
  pages: PAGES,
  commands: [
    {
      label: 'Your profile',
      words: 'password second factor passkey sessions time zone language',
      href: '/settings/profile',
    },
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
    {
      label: 'Create a subaccount',
      words: 'new customer tenant',
      href: '/settings/subaccounts?add=yes',
      need: { area: 'subaccounts', access: 'write', only: 'parent' },
    },
    {
      label: 'Create an alert',
      words: 'new notice threshold',
      href: '/settings/alerts?view=alerts&add=yes',
      need: { area: 'alerts', access: 'write' },
    },
    {
      label: 'Add an event sink',
      words: 'kafka nats rabbitmq clickhouse elasticsearch s3 syslog warehouse',
      href: '/settings/event-sinks?add=yes',
      need: { area: 'account', access: 'write', only: 'first' },
    },
  ],
  routes: [
    indexRoute,
    keysRoute,
    keyCallsRoute,
    usersRoute,
    subaccountsRoute,
    subaccountRoute,
    limitsRoute,
    addressesRoute,
    alertsRoute,
    auditRoute,
    sinksRoute,
    retentionRoute,
    systemRoute,
    profileRoute,
  ],
})
