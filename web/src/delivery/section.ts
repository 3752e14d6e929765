import { pageRoute, searchRoute } from '../root-route.ts'
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

const mainRoute = searchRoute('/delivery', () => import('./delivery-page.tsx'), readDeliverySearch)

const providersRoute = searchRoute(
  '/delivery/providers',
  () => import('./orders/shaping-page.tsx'),
  readProvidersSearch,
)

const relaysRoute = searchRoute(
  '/delivery/relays',
  () => import('./relays/relays-page.tsx'),
  readRelaysSearch,
)

const ipsRoute = pageRoute('/delivery/ips', () => import('./ips/ips-page.tsx'))
const ipRoute = searchRoute('/delivery/ips/$ip', () => import('./ips/ip-page.tsx'), readIpSearch)
const warmupsRoute = searchRoute('/delivery/warmups', () => import('./ips/warmups-page.tsx'), readAddSearch)
const poolsRoute = searchRoute('/delivery/pools', () => import('./pools/pools-page.tsx'), readAddSearch)
const poolRoute = searchRoute('/delivery/pools/$id', () => import('./pools/pool-page.tsx'), readPoolSearch)

const dynamicRoute = searchRoute(
  '/delivery/dynamic-pools',
  () => import('./dynamic/dynamic-page.tsx'),
  readDynamicSearch,
)

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
    mainRoute,
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
