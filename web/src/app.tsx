import { MantineProvider } from '@mantine/core'
import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { theme } from './look/theme.ts'
import { createQueries } from './queries.ts'
import { createDashboardRouter } from './router.tsx'
import { SessionGate } from './session-gate.tsx'
import { MailedLinkGate } from './sign-in/mailed-link-gate.tsx'

const queries = createQueries()
const router = createDashboardRouter(queries)

export function App() {
  return (
    <MantineProvider theme={theme} defaultColorScheme="auto">
      <QueryClientProvider client={queries}>
        <MailedLinkGate>
          <SessionGate>
            <RouterProvider router={router} />
          </SessionGate>
        </MailedLinkGate>
      </QueryClientProvider>
    </MantineProvider>
  )
}
