import { pageRoute, searchRoute } from '../root-route.ts'
import { section as defineSection } from '../section.ts'
import { readComposeSearch } from './compose/compose-search.ts'
import { readListSearch, readListsSearch } from './lists/lists-search.ts'
import { readPlacementSearch } from './placement/placement-search.ts'
import { readScheduledSearch } from './scheduled/scheduled-search.ts'
import { readSuppressionsSearch } from './suppressions/suppressions-search.ts'
import { readTemplateSearch, readTemplatesSearch } from './templates/templates-search.ts'
import { readValidationSearch } from './validation/validation-search.ts'

const templatesRoute = searchRoute(
  '/sending/templates',
  () => import('./templates/templates-page.tsx'),
  readTemplatesSearch,
)
const templateRoute = searchRoute(
  '/sending/templates/$name',
  () => import('./templates/template-page.tsx'),
  readTemplateSearch,
)

const suppressionsRoute = searchRoute(
  '/sending/suppressions',
  () => import('./suppressions/suppressions-page.tsx'),
  readSuppressionsSearch,
)

const composeRoute = searchRoute(
  '/sending/compose',
  () => import('./compose/compose-page.tsx'),
  readComposeSearch,
)
const listsRoute = searchRoute('/sending/lists', () => import('./lists/lists-page.tsx'), readListsSearch)
const listRoute = searchRoute(
  '/sending/lists/$address',
  () => import('./lists/list-page.tsx'),
  readListSearch,
)
const scheduledRoute = searchRoute(
  '/sending/scheduled',
  () => import('./scheduled/scheduled-page.tsx'),
  readScheduledSearch,
)
const validationRoute = searchRoute(
  '/sending/validation',
  () => import('./validation/validation-page.tsx'),
  readValidationSearch,
)
const validationJobRoute = pageRoute('/sending/validation/$id', () => import('./validation/job-page.tsx'))
const placementRoute = searchRoute(
  '/sending/placement',
  () => import('./placement/placement-page.tsx'),
  readPlacementSearch,
)
const placementResultRoute = pageRoute('/sending/placement/$id', () => import('./placement/result-page.tsx'))

export const section = defineSection({
  label: 'Sending',
  icon: 'send',
  to: '/sending/templates',
  alsoAt: '/sending/',
  letter: 's',
  need: { area: 'templates' },
  pages: [
    {
      label: 'Compose',
      to: '/sending/compose',
      need: { area: 'messages:send', access: 'write' },
    },
    { label: 'Templates', to: '/sending/templates', need: { area: 'templates' } },
    { label: 'Mailing lists', to: '/sending/lists', need: { area: 'lists' } },
    { label: 'Scheduled', to: '/sending/scheduled', need: { area: 'messages:stored' } },
    { label: 'Suppressions', to: '/sending/suppressions', need: { area: 'allowlist' } },
    { label: 'Validation', to: '/sending/validation', need: { area: 'validation' } },
    { label: 'Inbox placement', to: '/sending/placement', need: { area: 'validation' } },
  ],
  commands: [
    {
      label: 'Send a test message',
      words: 'compose new mail write',
      href: '/sending/compose',
      need: { area: 'messages:send', access: 'write' },
    },
    {
      label: 'New template',
      words: 'add create mjml html handlebars',
      href: '/sending/templates?add=yes',
      need: { area: 'templates', access: 'write' },
    },
    {
      label: 'New mailing list',
      words: 'add create members',
      href: '/sending/lists?add=yes',
      need: { area: 'lists', access: 'write' },
    },
    {
      label: 'Import suppressions',
      words: 'bounces complaints unsubscribes csv json',
      href: '/sending/suppressions?open=import',
      need: { area: 'suppressions', access: 'write' },
    },
    {
      label: 'Unsubscribes',
      words: 'suppressions',
      href: '/sending/suppressions?kind=unsubscribes',
      need: { area: 'suppressions' },
    },
    {
      label: 'Validate a file of addresses',
      words: 'bulk list check verify csv',
      href: '/sending/validation?add=yes',
      need: { area: 'validation', access: 'write' },
    },
    {
      label: 'Run an inbox placement test',
      words: 'seeds spam',
      href: '/sending/placement?add=yes',
      need: { area: 'validation', access: 'write' },
    },
    {
      label: 'Allowlist',
      words: 'suppressions',
      href: '/sending/suppressions?kind=whitelists',
      need: { area: 'allowlist' },
    },
  ],
  routes: [
    composeRoute,
    templatesRoute,
    templateRoute,
    listsRoute,
    listRoute,
    scheduledRoute,
    suppressionsRoute,
    validationRoute,
    validationJobRoute,
    placementRoute,
    placementResultRoute,
  ],
})
