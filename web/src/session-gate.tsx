import { Button, Loader, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { signOut } from './api.ts'
import { isUnauthorized, RefusedRequest, systemQuery } from './queries.ts'
import { sessionQuery } from './session.ts'
import { Login } from './sign-in/login.tsx'

/**
 * Shows the dashboard with a session, else the login screen. The API's response to the first request decides;
 * the page stores nothing about it.
 */
export function SessionGate({ children }: { children: ReactNode }) {
  const system = useQuery(systemQuery)
  const session = useQuery(sessionQuery)
  if (isUnauthorized(system.error) || isUnauthorized(session.error)) return <Login />
  if (system.data !== undefined && session.data !== undefined) return children
  const error = system.error ?? session.error
  if (error === null) {
    return (
      <main className="centered">
        <Loader role="status" aria-label="Loading" />
      </main>
    )
  }
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
