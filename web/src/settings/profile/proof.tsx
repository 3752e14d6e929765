/** Asks who is there before a change of the own sign-in, if the service wants to know again. */
import { Button, PasswordInput, Text, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { createContext, type ReactNode, useCallback, useContext, useRef, useState } from 'react'
import { RefusedRequest } from '../../queries.ts'
import { FormWindow } from '../../shared/forms/form-window.tsx'
import { useSending } from '../../shared/forms/use-sending.ts'
import { hasPasskeys } from '../../sign-in/passkey-client.ts'
import { ProviderButton } from '../../sign-in/provider-button.tsx'
import { profileQuery, proveByPasskey, proveByPassword } from './profile-api.ts'
import { TEXT } from './text.ts'

/** Runs a change; where it is refused for want of a proof, asks for one and runs it again. */
type Prove = <T>(run: () => Promise<T>) => Promise<T>

const ProofContext = createContext<Prove>((run) => run())

export const useProof = () => useContext(ProofContext)

export function ProofGate({ children }: { children: ReactNode }) {
  const [isAsking, setAsking] = useState(false)
  const waiting = useRef<{ go: () => void; stop: (error: Error) => void } | null>(null)
  const prove: Prove = useCallback(async (run) => {
    try {
      return await run()
    } catch (error) {
      if (!(error instanceof RefusedRequest) || !error.proofNeeded) throw error
      await new Promise<void>((go, stop) => {
        waiting.current = { go, stop: () => stop(error) }
        setAsking(true)
      })
      return run()
    }
  }, [])
  const close = (isProved: boolean) => {
    setAsking(false)
    if (isProved) waiting.current?.go()
    else waiting.current?.stop(new Error(TEXT.proveWhy))
    waiting.current = null
  }
  return (
    <ProofContext.Provider value={prove}>
      {children}
      {isAsking && <ProofWindow onProved={() => close(true)} onClose={() => close(false)} />}
    </ProofContext.Provider>
  )
}

function ProofWindow({ onProved, onClose }: { onProved: () => void; onClose: () => void }) {
  const { data: profile } = useQuery(profileQuery)
  const [password, setPassword] = useState('')
  const [code, setCode] = useState('')
  const byPassword = useSending({
    mutationFn: () => proveByPassword(password, code.trim()),
    onSuccess: onProved,
  })
  const byPasskey = useSending({ mutationFn: proveByPasskey, onSuccess: onProved })
  const hasPassword = profile?.sign_in !== 'oidc'
  const needsCode = profile !== undefined && (profile.totp_created_at !== null || profile.passkeys > 0)
  return (
    <FormWindow
      title={TEXT.prove}
      submit={TEXT.provePassword}
      busy={byPassword.isPending}
      isComplete={hasPassword && password !== '' && (!needsCode || code.trim() !== '')}
      error={byPassword.error ?? byPasskey.error}
      onSubmit={() => byPassword.mutate()}
      onClose={onClose}
    >
      <Text size="sm">{hasPassword ? TEXT.proveWhy : `${TEXT.proveWhy} ${TEXT.proveProvider}`}</Text>
      {(profile?.passkeys ?? 0) > 0 && hasPasskeys() && (
        <Button variant="default" loading={byPasskey.isPending} onClick={() => byPasskey.mutate()}>
          {TEXT.provePasskey}
        </Button>
      )}
      {!hasPassword && <ProviderButton proof />}
      {hasPassword && (
        <PasswordInput
          label={TEXT.password}
          autoComplete="current-password"
          value={password}
          onChange={(event) => setPassword(event.currentTarget.value)}
          data-autofocus
        />
      )}
      {hasPassword && needsCode && (
        <TextInput
          label={TEXT.proveCode}
          autoComplete="one-time-code"
          spellCheck={false}
          value={code}
          onChange={(event) => setCode(event.currentTarget.value)}
        />
      )}
    </FormWindow>
  )
}
