import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { rootRoute, searchRoute } from '../root-route.ts'
import { section as defineSection } from '../section.ts'
import { searchTexts } from '../shared/search-texts.ts'
import { readActivitySearch } from './activity-search.ts'
import { readMessageSearch } from './message-search.ts'

const listRoute = searchRoute('/activity', () => import('./activity-page.tsx'), readActivitySearch)
const messageRoute = searchRoute('/activity/$id', () => import('./message-page.tsx'), readMessageSearch)

const personRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/people/$address',
  validateSearch: (search: Record<string, unknown>): { at?: string } => searchTexts(search, ['at']),
  component: lazyRouteComponent(() => import('./person/person-page.tsx'), 'PersonPage'),
})

export const section = defineSection({
  label: 'Activity',
  icon: 'list',
  to: '/activity',
  letter: 'a',
  alsoAt: '/people',
  need: { area: 'events' },
  commands: [
    { label: 'Bounced mail', words: 'failed errors', href: '/activity?event=bounced' },
    { label: 'Deferred mail', words: 'waiting temporary', href: '/activity?event=deferred' },
    { label: 'Spam complaints', href: '/activity?event=complained&span=30d' },
    { label: 'Who clicked', words: 'clicks links', href: '/activity?event=clicked' },
  ],
  find: (text) => [
    ...(text.includes('@')
      ? [{ label: `Person ${text}`, words: text, href: `/people/${encodeURIComponent(text.trim())}` }]
      : []),
    { label: `Mail of “${text}”`, words: text, href: `/activity?span=30d&q=${encodeURIComponent(text)}` },
  ],
  routes: [listRoute, messageRoute, personRoute],
})
