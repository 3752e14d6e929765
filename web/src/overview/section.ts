import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { rootRoute } from '../root-route.ts'
import { section as defineSection } from '../section.ts'
import { readOverviewSearch } from './overview-search.ts'

const route = createRoute({
  getParentRoute: () => rootRoute,
  path: '/overview',
  validateSearch: readOverviewSearch,
  component: lazyRouteComponent(() => import('./overview-page.tsx'), 'OverviewPage'),
})

const healthRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/overview/health',
  component: lazyRouteComponent(() => import('./health-page.tsx'), 'HealthPage'),
})

export const section = defineSection({
  label: 'Overview',
  icon: 'home',
  to: '/overview',
  letter: 'o',
  need: { area: 'events' },
  pages: [{ label: 'Health', to: '/overview/health', need: { area: 'domains' } }],
  routes: [route, healthRoute],
})
