import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { rootRoute } from '../root-route.ts'
import { section as defineSection } from '../section.ts'
import { readReferenceSearch } from './reference-search.ts'

/** The list stays in place while operations open next to it, so both share a parent route. */
const referenceRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/docs',
  validateSearch: readReferenceSearch,
  component: lazyRouteComponent(() => import('./reference-page.tsx'), 'ReferencePage'),
})
const guidesRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/docs/guides',
  validateSearch: readReferenceSearch,
  component: lazyRouteComponent(() => import('../guides/guides-page.tsx'), 'GuidesPage'),
})
const guidesStartRoute = createRoute({
  getParentRoute: () => guidesRoute,
  path: '/',
  component: lazyRouteComponent(() => import('../guides/guides-page.tsx'), 'GuidesStart'),
})
const guideRoute = createRoute({
  getParentRoute: () => guidesRoute,
  path: '$guide',
  component: lazyRouteComponent(() => import('../guides/guide-page.tsx'), 'GuidePage'),
})
const startRoute = createRoute({
  getParentRoute: () => referenceRoute,
  path: '/',
  component: lazyRouteComponent(() => import('./reference-page.tsx'), 'ReferenceStart'),
})
const operationRoute = createRoute({
  getParentRoute: () => referenceRoute,
  path: '$operation',
  component: lazyRouteComponent(() => import('./operation-page.tsx'), 'OperationPage'),
})

export const section = defineSection({
  label: 'Documentation',
  icon: 'code',
  to: '/docs',
  letter: 'p',
  pages: [
    { label: 'Guides', to: '/docs/guides' },
    { label: 'API reference', to: '/docs' },
  ],
  commands: [
    { label: 'What is new', words: 'changelog changes release version', href: '/docs/guides/changelog' },
    { label: 'Guides', words: 'documentation help how to manual', href: '/docs/guides' },
    {
      label: 'Code that sends a message',
      words: 'api docs documentation curl javascript python php ruby go java snippet',
      href: '/docs/sendMessage',
    },
  ],
  routes: [
    referenceRoute.addChildren([startRoute, operationRoute]),
    guidesRoute.addChildren([guidesStartRoute, guideRoute]),
  ],
})
