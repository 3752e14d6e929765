import { Alert, Button, PasswordInput, Text, Title } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { acceptInvitation, resetPassword } from '../api.ts'
import { Brand } from '../look/brand.tsx'
import { valueOrThrow } from '../queries.ts'
import { useSending } from '../shared/forms/use-sending.ts'
import type { MailedLink } from './mailed-link.ts'
import { TEXT } from './text.ts'

export function ChoosePassword({ link, onDone }: { link: MailedLink; onDone: () => void }) {
  const queries = useQueryClient()
  const [password, setPassword] = useState('')
  const isInvitation = link.purpose === 'invitation'
  const leave = () => {
    onDone()
    // Another user's session may have been open here.
    void queries.resetQueries()
  }
  const choice = useSending({
    mutationFn: async () =>
      valueOrThrow(await (isInvitation ? acceptInvitation : resetPassword)(link.token, password)),
    onSuccess: () => isInvitation && leave(),
  })
  return (
    <main className="centered">
      <div className="centered-card">
        <Brand />
        <Title order={1} size="h3" mt="lg">
          {isInvitation ? TEXT.welcome : TEXT.choose}
        </Title>
        {choice.isSuccess ? (
          <>
            <Text mt="sm" size="sm" role="status">
              {TEXT.changed}
            </Text>
            <Button fullWidth mt="md" onClick={leave}>
              {TEXT.title}
            </Button>
          </>
        ) : (
          <form
            className="sign-in-form"
            onSubmit={(event) => {
              event.preventDefault()
              choice.mutate()
            }}
          >
            <PasswordInput
              label={TEXT.newPassword}
              description={TEXT.newPasswordWhy}
              autoComplete="new-password"
              required
              withAsterisk={false}
              value={password}
              onChange={(event) => setPassword(event.currentTarget.value)}
            />
            {choice.error && (
              <Alert color="red" mt="sm" role="alert">
                {sentence(choice.error.message)}
              </Alert>
            )}
            <Button type="submit" fullWidth mt="md" loading={choice.isPending} disabled={password === ''}>
              {TEXT.set}
            </Button>
            <button type="button" className="button-link plain-button" onClick={leave}>
              {TEXT.toSignIn}
            </button>
          </form>
        )}
      </div>
    </main>
  )
}

const sentence = (text: string) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`
