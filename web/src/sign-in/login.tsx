import { Code, Text, Title } from '@mantine/core'
import { useState } from 'react'
import { Brand } from '../look/brand.tsx'
import { ForgotPassword } from './forgot-password.tsx'
import { KeyForm } from './key-form.tsx'
import { PasskeyButton } from './passkey-button.tsx'
import { PasswordForm } from './password-form.tsx'
import { ProviderButton } from './provider-button.tsx'
import { TEXT } from './text.ts'

export function Login() {
  const [email, setEmail] = useState('')
  const [forgot, setForgot] = useState(false)
  if (forgot) return <ForgotPassword email={email} onEmail={setEmail} onBack={() => setForgot(false)} />
  return (
    <main className="centered">
      <div className="centered-card">
        <Brand />
        <Title order={1} size="h3" mt="lg">
          {TEXT.title}
        </Title>
        <ProviderButton />
        <PasswordForm email={email} onEmail={setEmail} onForgot={() => setForgot(true)} />
        <PasskeyButton />
        <div className="login-form">
          <Text c="dimmed" size="sm">
            {TEXT.linkBefore} <Code>sendwright</Code> {TEXT.linkAfter}
          </Text>
          <Code block mt="xs">
            sendwright login-link
          </Code>
          <KeyForm />
        </div>
      </div>
    </main>
  )
}
