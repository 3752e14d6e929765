import type { QueryClient } from '@tanstack/react-query'
import { createRootRouteWithContext } from '@tanstack/react-router'

/** Parent of every section's routes. What it shows is set in router.tsx, which knows all sections. */
export const rootRoute = createRootRouteWithContext<{ queries: QueryClient }>()()
