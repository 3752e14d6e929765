import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { rootRoute } from '../root-route.ts'
import { section as defineSection } from '../section.ts'
import { readComposeSearch } from './compose/compose-search.ts'
import { readListSearch, readListsSearch } from './lists/lists-search.ts'
import { readPlacementSearch } from './placement/placement-search.ts'
import { readScheduledSearch } from './scheduled/scheduled-search.ts'
import { readSuppressionsSearch } from './suppressions/suppressions-search.ts'
import { readTemplateSearch, readTemplatesSearch } from './templates/templates-search.ts'
import { readValidationSearch } from './validation/validation-search.ts'

const templatesRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/sending/templates',
  validateSearch: readTemplatesSearch,
  component: lazyRouteComponent(() => import('./templates/templates-page.tsx'), 'TemplatesPage'),
})
const templateRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/sending/templates/$name',
  validateSearch: readTemplateSearch,
  component: lazyRouteComponent(() => import('./templates/template-page.tsx'), 'TemplatePage'),
})

const suppressionsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/sending/suppressions',
  validateSearch: readSuppressionsSearch,
  component: lazyRouteComponent(() => import('./suppressions/suppressions-page.tsx'), 'SuppressionsPage'),
})

const composeRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/sending/compose',
  validateSearch: readComposeSearch,
  component: lazyRouteComponent(() => import('./compose/compose-page.tsx'), 'ComposePage'),
})
const listsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/sending/lists',
  validateSearch: readListsSearch,
  component: lazyRouteComponent(() => import('./lists/lists-page.tsx'), 'ListsPage'),
})
const listRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/sending/lists/$address',
  validateSearch: readListSearch,
  component: lazyRouteComponent(() => import('./lists/list-page.tsx'), 'ListPage'),
})
const scheduledRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/sending/scheduled',
  validateSearch: readScheduledSearch,
  component: lazyRouteComponent(() => import('./scheduled/scheduled-page.tsx'), 'ScheduledPage'),
})
const validationRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/sending/validation',
  validateSearch: readValidationSearch,
  component: lazyRouteComponent(() => import('./validation/validation-page.tsx'), 'ValidationPage'),
})
const validationJobRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/sending/validation/$id',
  component: lazyRouteComponent(() => import('./validation/job-page.tsx'), 'JobPage'),
})
const placementRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/sending/placement',
  validateSearch: readPlacementSearch,
  component: lazyRouteComponent(() => import('./placement/placement-page.tsx'), 'PlacementPage'),
})
const placementResultRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/sending/placement/$id',
  component: lazyRouteComponent(() => import('./placement/result-page.tsx'), 'ResultPage'),
})

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
