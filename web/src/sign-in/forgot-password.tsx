import { Alert, Button, Text, TextInput, Title } from '@mantine/core'
import { requestPasswordReset } from '../api.ts'
import { Brand } from '../look/brand.tsx'
import { valueOrThrow } from '../queries.ts'
import { useSending } from '../shared/forms/use-sending.ts'
import { TEXT } from './text.ts'

interface ForgotPasswordProps {
  email: string
  onEmail: (email: string) => void
  onBack: () => void
}

export function ForgotPassword({ email, onEmail, onBack }: ForgotPasswordProps) {
  const request = useSending({
    mutationFn: async () => valueOrThrow(await requestPasswordReset(email.trim())),
  })
  return (
    <main className="centered">
      <div className="centered-card">
        <Brand />
        <Title order={1} size="h3" mt="lg">
          {TEXT.forgot}
        </Title>
        {request.isSuccess ? (
          <Text mt="sm" size="sm" role="status">
            {TEXT.linkSent(request.data.message)}
          </Text>
        ) : (
          <form
            className="sign-in-form"
            onSubmit={(event) => {
              event.preventDefault()
              request.mutate()
            }}
          >
            <TextInput
              label={TEXT.email}
              description="A link to choose a new one is sent there."
              type="email"
              autoComplete="username"
              required
              withAsterisk={false}
              value={email}
              onChange={(event) => onEmail(event.currentTarget.value)}
            />
            {request.error && (
              <Alert color="red" mt="sm" role="alert">
                {request.error.message}
              </Alert>
            )}
            <Button
              type="submit"
              fullWidth
              mt="md"
              loading={request.isPending}
              disabled={email.trim() === ''}
            >
              {TEXT.sendLink}
            </Button>
          </form>
        )}
        <button type="button" className="button-link plain-button" onClick={onBack}>
          {TEXT.back}
        </button>
      </div>
    </main>
  )
}
