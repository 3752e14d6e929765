import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { rootRoute } from '../root-route.ts'
import { section as defineSection } from '../section.ts'
import { readSuppressionsSearch } from './suppressions/suppressions-search.ts'
import { readTemplateSearch, readTemplatesSearch } from './templates/templates-search.ts'

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

export const section = defineSection({
  label: 'Sending',
  icon: 'send',
  to: '/sending/templates',
  alsoAt: '/sending/',
  letter: 's',
  need: { area: 'templates' },
  pages: [
    { label: 'Templates', to: '/sending/templates', need: { area: 'templates' } },
    { label: 'Suppressions', to: '/sending/suppressions', need: { area: 'allowlist' } },
  ],
  commands: [
    {
      label: 'New template',
      words: 'add create mjml html handlebars',
      href: '/sending/templates?add=yes',
      need: { area: 'templates', access: 'write' },
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
      label: 'Allowlist',
      words: 'suppressions',
      href: '/sending/suppressions?kind=whitelists',
      need: { area: 'allowlist' },
    },
  ],
  routes: [templatesRoute, templateRoute, suppressionsRoute],
})
