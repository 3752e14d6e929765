import { createRootRoute, createRoute, createRouter, redirect } from '@tanstack/react-router'
import { DomainPage } from './domains/domain-page.tsx'
import { DomainsPage, readDomainsSearch } from './domains/domains-page.tsx'
import { InboxPage } from './inbox/inbox-page.tsx'
import { readInboxSearch } from './inbox/inbox-search.ts'
import { MessagePage } from './inbox/message-page.tsx'
import { NothingOpen } from './inbox/nothing-open.tsx'
import { NotFound } from './not-found.tsx'
import { Shell } from './shell.tsx'

const rootRoute = createRootRoute({ component: Shell, notFoundComponent: NotFound })

/** The list stays in place while messages open next to it, so list and message share a parent route. */
const inboxRoute = createRoute({
  getParentRoute: () => rootRoute,
  id: 'captured',
  validateSearch: readInboxSearch,
  component: InboxPage,
})
const inboxIndexRoute = createRoute({
  getParentRoute: () => inboxRoute,
  path: '/',
  component: NothingOpen,
})
const messageRoute = createRoute({
  getParentRoute: () => inboxRoute,
  path: '/inbox/$id',
  component: MessagePage,
})
const inboxAliasRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/inbox',
  beforeLoad: () => {
    throw redirect({ to: '/' })
  },
})

const domainsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/domains',
  validateSearch: readDomainsSearch,
  component: DomainsPage,
})
const domainRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/domains/$name',
  component: DomainPage,
})

const routeTree = rootRoute.addChildren([
  inboxRoute.addChildren([inboxIndexRoute, messageRoute]),
  inboxAliasRoute,
  domainsRoute,
  domainRoute,
])

/** Plain query strings: the library would write a search for 123 as `q="123"`. */
export const createDashboardRouter = () =>
  createRouter({
    routeTree,
    parseSearch: (text) => Object.fromEntries(new URLSearchParams(text)),
    stringifySearch: (search) => {
      const query = new URLSearchParams()
      for (const [name, value] of Object.entries(search)) if (value) query.set(name, String(value))
      return query.size > 0 ? `?${query}` : ''
    },
  })

declare module '@tanstack/react-router' {
  interface Register {
    router: ReturnType<typeof createDashboardRouter>
  }
}
