import { Button, Loader, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { lazy, type ReactNode, Suspense, useRef } from 'react'
import { signOut } from './api.ts'
import { isUnauthorized, RefusedRequest, systemQuery } from './queries.ts'
import { isOpenPath } from './sections.ts'
import { sessionQuery } from './session.ts'

/** Most visits have a session. */
const Login = lazy(async () => ({ default: (await import('./sign-in/login.tsx')).Login }))

/**
 * Shows the dashboard with a session, else the login screen, or a page that needs none. The API's response to the first
 * request decides; the page stores nothing about it.
 */
export function SessionGate({ children }: { children: ReactNode }) {
  const system = useQuery(systemQuery)
  const session = useQuery(sessionQuery)
  const error = system.error ?? session.error
  const isRefused = isUnauthorized(system.error) || isUnauthorized(session.error)
  const isKnown = system.data !== undefined && session.data !== undefined
  // A query that is asked again, as when the window gets the focus, has no error meanwhile: what is shown stays.
  const wasRefused = useRef(false)
  if (isRefused) wasRefused.current = true
  else if (isKnown || error !== null) wasRefused.current = false
  const isOpen = isOpenPath(window.location.pathname)
  if (isOpen && (wasRefused.current || error !== null)) return children
  if (wasRefused.current)
    return (
      <Suspense fallback={<Waiting />}>
        <Login />
      </Suspense>
    )
  if (isKnown) return children
  if (error === null) return <Waiting />
  const forbidden = error instanceof RefusedRequest && error.status === 403
  const again = async () => {
    if (forbidden) await signOut()
    await Promise.all([system.refetch(), session.refetch()])
  }
  return (
    <main className="centered">
      <div className="centered-card">
        <Title order={1} size="h3">
          {forbidden ? 'This key may not use the dashboard' : 'The service does not answer as expected'}
        </Title>
        <Text mt="xs" c="dimmed" className="breakable">
          {forbidden ? 'Its role has no right to read. Sign in with another key.' : error.message}
        </Text>
        <Button mt="lg" loading={system.isFetching || session.isFetching} onClick={() => void again()}>
          {forbidden ? 'Use another key' : 'Try again'}
        </Button>
      </div>
    </main>
  )
}

const Waiting = () => (
  <main className="centered">
    <Loader role="status" aria-label="Loading" />
  </main>
)
