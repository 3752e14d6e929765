import { Alert, Button, PasswordInput } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { signIn } from '../api.ts'
import { isUnauthorized, valueOrThrow } from '../queries.ts'
import { useSending } from '../shared/forms/use-sending.ts'
import { TEXT } from './text.ts'

export function KeyForm() {
  const queries = useQueryClient()
  const [key, setKey] = useState('')
  const login = useSending({
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
        label={TEXT.key}
        description={TEXT.keyWhy}
        autoComplete="off"
        spellCheck={false}
        required
        withAsterisk={false}
        value={key}
        onChange={(event) => setKey(event.currentTarget.value)}
      />
      {login.error && (
        <Alert color="red" mt="sm" role="alert">
          {isUnauthorized(login.error) ? TEXT.keyRefused : login.error.message}
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
        {TEXT.withKey}
      </Button>
    </form>
  )
}
