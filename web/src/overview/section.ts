import { pageRoute, searchRoute } from '../root-route.ts'
import { section as defineSection } from '../section.ts'
import { readOverviewSearch } from './overview-search.ts'

const route = searchRoute('/overview', () => import('./overview-page.tsx'), readOverviewSearch)

const healthRoute = pageRoute('/overview/health', () => import('./health-page.tsx'))

export const section = defineSection({
  label: 'Overview',
  icon: 'home',
  to: '/overview',
  letter: 'o',
  need: { area: 'events' },
  pages: [{ label: 'Health', to: '/overview/health', need: { area: 'domains' } }],
  routes: [route, healthRoute],
})
