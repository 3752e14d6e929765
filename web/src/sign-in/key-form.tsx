import { Alert, Button, PasswordInput } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { signIn } from '../api.ts'
import { isUnauthorized, valueOrThrow } from '../queries.ts'

export function KeyForm() {
  const queries = useQueryClient()
  const [key, setKey] = useState('')
  const login = useMutation({
    mutationFn: async () => valueOrThrow(await signIn(key.trim())),
    onSuccess: () => queries.resetQueries(),
  })
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        login.mutate()
      }}
    >
      <PasswordInput
        mt="md"
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
      <Button
        type="submit"
        variant="default"
        fullWidth
        mt="md"
        loading={login.isPending}
        disabled={key.trim() === ''}
      >
        Sign in with the key
      </Button>
    </form>
  )
}
