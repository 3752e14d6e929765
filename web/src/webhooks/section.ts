import { pageRoute, searchRoute } from '../root-route.ts'
import { section as defineSection } from '../section.ts'
import { readAttemptsSearch, readWebhooksSearch } from './webhooks-search.ts'

const listRoute = searchRoute('/webhooks', () => import('./webhooks-page.tsx'), readWebhooksSearch)
const attemptsRoute = searchRoute(
  '/webhooks/attempts',
  () => import('./attempts-page.tsx'),
  readAttemptsSearch,
)
const attemptRoute = pageRoute('/webhooks/attempts/$id', () => import('./attempt-page.tsx'))

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
