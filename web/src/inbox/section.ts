import { createRoute, lazyRouteComponent, redirect } from '@tanstack/react-router'
import { systemQuery } from '../queries.ts'
import { rootRoute } from '../root-route.ts'
import { section as defineSection } from '../section.ts'
import { readInboxSearch } from './inbox-search.ts'

/** The list stays in place while messages open next to it, so list and message share a parent route. */
const inboxRoute = createRoute({
  getParentRoute: () => rootRoute,
  id: 'captured',
  validateSearch: readInboxSearch,
  component: lazyRouteComponent(() => import('./inbox-page.tsx'), 'InboxPage'),
})
/** The start page in capture mode; in other modes no mail comes here. */
const indexRoute = createRoute({
  getParentRoute: () => inboxRoute,
  path: '/',
  beforeLoad: ({ context }) => {
    const system = context.queries.getQueryData(systemQuery.queryKey)
    if (system !== undefined && system.mode !== 'capture') throw redirect({ to: '/overview' })
  },
  component: lazyRouteComponent(() => import('./nothing-open.tsx'), 'NothingOpen'),
})
const messageRoute = createRoute({
  getParentRoute: () => inboxRoute,
  path: '/inbox/$id',
  component: lazyRouteComponent(() => import('./message/message-page.tsx'), 'MessagePage'),
})
const aliasRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/inbox',
  beforeLoad: () => {
    throw redirect({ to: '/' })
  },
})

export const section = defineSection({
  label: 'Inbox',
  icon: 'mail',
  to: '/',
  alsoAt: '/inbox/',
  letter: 'i',
  need: { area: 'messages:stored' },
  mode: 'capture',
  find: (text) => [{ label: `Search the inbox for “${text}”`, href: `/?q=${encodeURIComponent(text)}` }],
  routes: [inboxRoute.addChildren([indexRoute, messageRoute]), aliasRoute],
})
