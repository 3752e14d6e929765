import { Alert, Button, PasswordInput, TextInput } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { signInUser } from '../api.ts'
import type * as Api from '../api-types.ts'
import { RefusedRequest, valueOrThrow } from '../queries.ts'
import { useSending } from '../shared/forms/use-sending.ts'
import { askPasskey, hasPasskeys } from './passkey-client.ts'
import { TEXT } from './text.ts'

interface PasswordFormProps {
  email: string
  onEmail: (email: string) => void
  onForgot: () => void
}

/** Address and password, and a code if the service requires one: then all three are sent again. */
export function PasswordForm({ email, onEmail, onForgot }: PasswordFormProps) {
  const queries = useQueryClient()
  const [password, setPassword] = useState('')
  const [code, setCode] = useState('')
  const login = useSending({
    mutationFn: async (passkey: string | undefined) =>
      valueOrThrow(await signInUser(email.trim(), password, code.trim(), passkey)),
    onSuccess: () => queries.resetQueries(),
  })
  // Each refusal brings another challenge, valid once.
  const passkey = login.error instanceof RefusedRequest ? login.error.passkey : undefined
  const usePasskey = useSending({
    mutationFn: async (options: Api.PasskeyRequest) => askPasskey(options),
    onSuccess: (response) => login.mutate(response),
  })
  const asksForCode = login.error instanceof RefusedRequest && login.error.codeNeeded
  // Shown until another address is entered, also while the code is being checked.
  const [needsCode, setNeedsCode] = useState(false)
  if (asksForCode && !needsCode) setNeedsCode(true)
  // The first time it is no failure.
  const isQuestion = asksForCode && code === ''
  return (
    <form
      className="sign-in-form"
      onSubmit={(event) => {
        event.preventDefault()
        login.mutate(undefined)
      }}
    >
      <TextInput
        label={TEXT.email}
        type="email"
        autoComplete="username"
        required
        withAsterisk={false}
        value={email}
        onChange={(event) => {
          onEmail(event.currentTarget.value)
          setNeedsCode(false)
          setCode('')
          login.reset()
        }}
      />
      <PasswordInput
        mt="sm"
        label={TEXT.password}
        autoComplete="current-password"
        required
        withAsterisk={false}
        value={password}
        onChange={(event) => setPassword(event.currentTarget.value)}
      />
      {needsCode && (
        <TextInput
          mt="sm"
          label={TEXT.code}
          description={TEXT.codeWhy}
          autoComplete="one-time-code"
          spellCheck={false}
          autoFocus
          value={code}
          onChange={(event) => setCode(event.currentTarget.value)}
        />
      )}
      {needsCode && passkey !== undefined && hasPasskeys() && (
        <Button
          mt="sm"
          fullWidth
          variant="default"
          loading={usePasskey.isPending}
          onClick={() => usePasskey.mutate(passkey)}
        >
          {TEXT.passkeyInstead}
        </Button>
      )}
      {usePasskey.error && (
        <Alert color="red" mt="sm" role="alert">
          {usePasskey.error.message}
        </Alert>
      )}
      {login.error && !isQuestion && (
        <Alert color="red" mt="sm" role="alert">
          {sentenceOf(login.error)}
        </Alert>
      )}
      <Button
        type="submit"
        fullWidth
        mt="md"
        loading={login.isPending}
        disabled={email.trim() === '' || password === '' || (needsCode && code.trim() === '')}
      >
        {TEXT.title}
      </Button>
      <button type="button" className="button-link plain-button" onClick={onForgot}>
        {TEXT.forgot}
      </button>
    </form>
  )
}

function sentenceOf(error: Error): string {
  if (!(error instanceof RefusedRequest) || error.status !== 429) return `${error.message}.`
  const minutes = Math.ceil((error.retrySeconds ?? 60) / 60)
  return TEXT.tooMany(minutes)
}
