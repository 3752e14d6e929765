import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { rootRoute } from '../root-route.ts'
import { section as defineSection } from '../section.ts'
import { readDeliverySearch } from './delivery-search.ts'

const pageRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/delivery',
  validateSearch: readDeliverySearch,
  component: lazyRouteComponent(() => import('./delivery-page.tsx'), 'DeliveryPage'),
})

const write = { area: 'domains', access: 'write' } as const

export const section = defineSection({
  label: 'Delivery',
  icon: 'truck',
  to: '/delivery',
  letter: 'q',
  need: { area: 'events' },
  commands: [
    { label: 'Pause mail', words: 'stop hold queue', href: '/delivery?act=pause', need: write },
    { label: 'Resume mail', words: 'continue queue', href: '/delivery?act=resume', need: write },
    { label: 'Retry waiting mail now', words: 'flush queue', href: '/delivery?act=retry', need: write },
  ],
  find: (text) =>
    /^[^\s@]+\.[^\s@]+$/.test(text)
      ? [
          {
            label: `Mail that waits for ${text}`,
            href: `/delivery?view=destinations&q=${encodeURIComponent(text)}`,
          },
        ]
      : [],
  routes: [pageRoute],
})
