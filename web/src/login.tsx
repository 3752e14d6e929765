import { Alert, Button, Code, PasswordInput, Text, Title } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { signIn } from './api.ts'
import { Brand } from './brand.tsx'
import { isUnauthorized, valueOrThrow } from './queries.ts'

export function Login() {
  const queries = useQueryClient()
  const [key, setKey] = useState('')
  const login = useMutation({
    mutationFn: async () => valueOrThrow(await signIn(key.trim())),
    onSuccess: () => queries.resetQueries(),
  })
  return (
    <main className="centered">
      <div className="centered-card">
        <Brand />
        <Title order={1} size="h3" mt="lg">
          Sign in
        </Title>
        <Text mt="xs" c="dimmed" size="sm">
          Starting <Code>sendwright</Code> prints a link that signs you in once. To get another one, run this
          on the same machine:
        </Text>
        <Code block mt="xs">
          sendwright login-link
        </Code>
        <form
          className="login-form"
          onSubmit={(event) => {
            event.preventDefault()
            login.mutate()
          }}
        >
          <PasswordInput
            label="Or sign in with an API key"
            description="The key is exchanged for a session; the page does not keep it."
            autoComplete="off"
            spellCheck={false}
            required
            withAsterisk={false}
            value={key}
            onChange={(event) => setKey(event.currentTarget.value)}
          />
          {login.error && (
            <Alert color="red" mt="sm" role="alert">
              {isUnauthorized(login.error) ? 'This key is not accepted.' : login.error.message}
            </Alert>
          )}
          <Button type="submit" fullWidth mt="md" loading={login.isPending} disabled={key.trim() === ''}>
            Sign in
          </Button>
        </form>
      </div>
    </main>
  )
}
