import type { QueryClient } from '@tanstack/react-query'
import { createRootRouteWithContext, createRoute, lazyRouteComponent } from '@tanstack/react-router'
import type { ReactNode } from 'react'

/** Parent of every section's routes. What it shows is set in router.tsx, which knows all sections. */
export const rootRoute = createRootRouteWithContext<{ queries: QueryClient }>()()

type LoadPage = () => Promise<{ default: () => ReactNode }>

/** A page whose component, the default export of its module, is loaded on demand. */
export const pageRoute = <const Path extends string>(path: Path, load: LoadPage) =>
  createRoute({ getParentRoute: () => rootRoute, path, component: lazyRouteComponent(load) })

/** The same of a page that keeps something in the query of its URL; `validateSearch` reads it. */
export const searchRoute = <const Path extends string, Search>(
  path: Path,
  load: LoadPage,
  validateSearch: (query: Record<string, unknown>) => Search,
) =>
  createRoute({ getParentRoute: () => rootRoute, path, validateSearch, component: lazyRouteComponent(load) })
