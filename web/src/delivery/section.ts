import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { rootRoute } from '../root-route.ts'
import { section as defineSection } from '../section.ts'
import {
  readAddSearch,
  readDeliverySearch,
  readIpSearch,
  readProvidersSearch,
  readRelaysSearch,
} from './delivery-search.ts'
import { readDynamicSearch } from './dynamic/dynamic-search.ts'
import { PAGES } from './pages.ts'
import { readPoolSearch } from './pools/pools-search.ts'

const pageRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/delivery',
  validateSearch: readDeliverySearch,
  component: lazyRouteComponent(() => import('./delivery-page.tsx'), 'DeliveryPage'),
})

const providersRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/delivery/providers',
  validateSearch: readProvidersSearch,
  component: lazyRouteComponent(() => import('./orders/shaping-page.tsx'), 'ShapingPage'),
})

const relaysRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/delivery/relays',
  validateSearch: readRelaysSearch,
  component: lazyRouteComponent(() => import('./relays/relays-page.tsx'), 'RelaysPage'),
})

const ipsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/delivery/ips',
  component: lazyRouteComponent(() => import('./ips/ips-page.tsx'), 'IpsPage'),
})
const ipRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/delivery/ips/$ip',
  validateSearch: readIpSearch,
  component: lazyRouteComponent(() => import('./ips/ip-page.tsx'), 'IpPage'),
})
const warmupsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/delivery/warmups',
  validateSearch: readAddSearch,
  component: lazyRouteComponent(() => import('./ips/warmups-page.tsx'), 'WarmupsPage'),
})
const poolsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/delivery/pools',
  validateSearch: readAddSearch,
  component: lazyRouteComponent(() => import('./pools/pools-page.tsx'), 'PoolsPage'),
})
const poolRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/delivery/pools/$id',
  validateSearch: readPoolSearch,
  component: lazyRouteComponent(() => import('./pools/pool-page.tsx'), 'PoolPage'),
})

const dynamicRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/delivery/dynamic-pools',
  validateSearch: readDynamicSearch,
  component: lazyRouteComponent(() => import('./dynamic/dynamic-page.tsx'), 'DynamicPage'),
})

const write = { area: 'domains', access: 'write' } as const

export const section = defineSection({
  label: 'Delivery',
  icon: 'truck',
  to: '/delivery',
  letter: 'q',
  need: { area: 'events' },
  pages: PAGES,
  commands: [
    {
      label: 'Start a warm-up',
      words: 'address ip',
      href: '/delivery/warmups?add=yes',
      need: { area: 'ips', access: 'write' },
    },
    {
      label: 'Create a pool',
      words: 'address ip new',
      href: '/delivery/pools?add=yes',
      need: { area: 'ips', access: 'write' },
    },
    {
      label: 'Stop all mail to a provider',
      words: 'pause hold destination',
      href: '/delivery/providers?stop=*',
      need: { ...write, only: 'first' },
    },
    {
      label: 'Change the limits of a provider',
      words: 'rate lane speed connections raise shaping',
      href: '/delivery/providers',
      need: { area: 'account', only: 'first' },
    },
    {
      label: 'Add a relay',
      words: 'smarthost ses microsoft gmail sendgrid mailgun postfix',
      href: '/delivery/relays?add=yes',
      need: { area: 'account', access: 'write', only: 'first' },
    },
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
  routes: [
    pageRoute,
    providersRoute,
    relaysRoute,
    ipsRoute,
    ipRoute,
    warmupsRoute,
    poolsRoute,
    poolRoute,
    dynamicRoute,
  ],
})
