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
  label: 'API reference',
  icon: 'code',
  to: '/docs',
  letter: 'p',
  commands: [
    {
      label: 'Code that sends a message',
      words: 'api docs documentation curl javascript python php ruby go snippet',
      href: '/docs/sendMessage',
    },
  ],
  routes: [referenceRoute.addChildren([startRoute, operationRoute])],
})
