import type { QueryClient } from '@tanstack/react-query'
import { createRouter } from '@tanstack/react-router'
import { readSearch, writeSearch } from './acting.ts'
import { NotFound } from './not-found.tsx'
import { rootRoute } from './root-route.ts'
import { SECTIONS } from './sections.ts'
import { LoadingPage } from './shared/page/loading-page.tsx'
import { PageFault } from './shared/page/page-fault.tsx'
import { Shell } from './shell.tsx'

type SectionRoute = (typeof SECTIONS)[number]['routes'][number]

const routeTree = rootRoute
  .update({ component: Shell, notFoundComponent: NotFound })
  .addChildren(SECTIONS.flatMap(({ routes }): SectionRoute[] => [...routes]))

/** Plain query strings: the library would write a search for 123 as `q="123"`. */
export const createDashboardRouter = (queries: QueryClient) =>
  createRouter({
    routeTree,
    context: { queries },
    defaultPendingComponent: LoadingPage,
    defaultErrorComponent: PageFault,
    parseSearch: readSearch,
    stringifySearch: writeSearch,
  })

declare module '@tanstack/react-router' {
  interface Register {
    router: ReturnType<typeof createDashboardRouter>
  }
}
