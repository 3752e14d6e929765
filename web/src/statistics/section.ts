import { searchRoute } from '../root-route.ts'
import { section as defineSection } from '../section.ts'
import { readStatisticsSearch } from './statistics-search.ts'

/** Not /metrics, which is the operation for Prometheus. */
const route = searchRoute('/statistics', () => import('./statistics-page.tsx'), readStatisticsSearch)

export const section = defineSection({
  label: 'Metrics',
  icon: 'chart',
  to: '/statistics',
  letter: 'm',
  need: { area: 'events' },
  commands: [
    { label: 'Metrics by provider', words: 'gmail outlook yahoo', href: '/statistics?by=recipient_provider' },
    { label: 'Metrics by domain', href: '/statistics?by=domain' },
    { label: 'Metrics by tag', href: '/statistics?by=tag' },
    { label: 'Metrics by country', words: 'opens clicks', href: '/statistics?by=country' },
    {
      label: 'Open and click rates',
      words: 'engagement',
      href: '/statistics?show=open_rate,click_rate&people=yes',
    },
  ],
  routes: [route],
})
