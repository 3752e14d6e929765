import { pageRoute, searchRoute } from '../root-route.ts'
import { section as defineSection } from '../section.ts'
import { readDomainsSearch, readKeysSearch, readLoginsSearch, readOptionsSearch } from './domains-search.ts'
import { readReceiversSearch } from './receivers/receivers-search.ts'

const listRoute = searchRoute('/domains', () => import('./domains-page.tsx'), readDomainsSearch)
const domainRoute = pageRoute('/domains/$name', () => import('./domain-page.tsx'))
const receiversRoute = searchRoute(
  '/domains/$name/receivers',
  () => import('./receivers/receivers-page.tsx'),
  readReceiversSearch,
)
const healthRoute = pageRoute('/domains/$name/health', () => import('./health-page.tsx'))
const optionsRoute = searchRoute(
  '/domains/$name/settings',
  () => import('./options/options-page.tsx'),
  readOptionsSearch,
)
const keysRoute = searchRoute('/domains/$name/keys', () => import('./keys/keys-page.tsx'), readKeysSearch)
const loginsRoute = searchRoute(
  '/domains/$name/logins',
  () => import('./logins/logins-page.tsx'),
  readLoginsSearch,
)

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
