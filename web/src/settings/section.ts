import { pageRoute, searchRoute } from '../root-route.ts'
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

const indexRoute = pageRoute('/settings', () => import('./settings-page.tsx'))
const keysRoute = searchRoute('/settings/keys', () => import('./keys-page.tsx'), readListSearch)
const keyCallsRoute = searchRoute(
  '/settings/keys/$id',
  () => import('./key-calls-page.tsx'),
  readKeyCallsSearch,
)
const usersRoute = searchRoute('/settings/users', () => import('./users-page.tsx'), readListSearch)
const auditRoute = searchRoute('/settings/audit', () => import('./audit-page.tsx'), readAuditSearch)
const subaccountsRoute = searchRoute(
  '/settings/subaccounts',
  () => import('./subaccounts/subaccounts-page.tsx'),
  readSubaccountsSearch,
)
const subaccountRoute = searchRoute(
  '/settings/subaccounts/$id',
  () => import('./subaccounts/subaccount-page.tsx'),
  readSubaccountSearch,
)
const limitsRoute = pageRoute('/settings/limits', () => import('./limits/limits-page.tsx'))
const addressesRoute = searchRoute(
  '/settings/addresses',
  () => import('./addresses/addresses-page.tsx'),
  readEditSearch,
)
const alertsRoute = searchRoute(
  '/settings/alerts',
  () => import('./alerts/alerts-page.tsx'),
  readAlertsSearch,
)
const sinksRoute = searchRoute(
  '/settings/event-sinks',
  () => import('./event-sinks/sinks-page.tsx'),
  readEditSearch,
)
const retentionRoute = searchRoute(
  '/settings/retention',
  () => import('./retention/retention-page.tsx'),
  readRetentionSearch,
)
const systemRoute = pageRoute('/settings/system', () => import('./system-page.tsx'))

const profileRoute = pageRoute('/settings/profile', () => import('./profile/profile-page.tsx'))

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
