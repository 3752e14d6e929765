import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { rootRoute } from '../root-route.ts'
import { section as defineSection } from '../section.ts'
import { readAttemptsSearch, readWebhooksSearch } from './webhooks-search.ts'

const listRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/webhooks',
  validateSearch: readWebhooksSearch,
  component: lazyRouteComponent(() => import('./webhooks-page.tsx'), 'WebhooksPage'),
})
const attemptsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/webhooks/attempts',
  validateSearch: readAttemptsSearch,
  component: lazyRouteComponent(() => import('./attempts-page.tsx'), 'AttemptsPage'),
})
const attemptRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/webhooks/attempts/$id',
  component: lazyRouteComponent(() => import('./attempt-page.tsx'), 'AttemptPage'),
})

const write = { area: 'domains', access: 'write' } as const

export const section = defineSection({
  label: 'Webhooks',
  icon: 'hook',
  to: '/webhooks',
  letter: 'w',
  need: { area: 'domains' },
  pages: [{ label: 'Attempts', to: '/webhooks/attempts' }],
  commands: [
    { label: 'Add a webhook', words: 'new url post events', href: '/webhooks?add=yes', need: write },
    { label: 'Failing webhooks', words: 'errors attempts', href: '/webhooks/attempts?status=failing' },
    { label: 'Replay webhooks', words: 'send again', href: '/webhooks/attempts?replay=yes', need: write },
  ],
  routes: [listRoute, attemptsRoute, attemptRoute],
})
