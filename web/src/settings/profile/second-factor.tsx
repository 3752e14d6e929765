/** Authenticator app and recovery codes. */
import { Button, Group, Text, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { ActionButton, Refusal } from '../../shared/forms/action-button.tsx'
import { FormWindow } from '../../shared/forms/form-window.tsx'
import { useForm } from '../../shared/forms/use-form.ts'
import { useSending } from '../../shared/forms/use-sending.ts'
import { Panel } from '../../shared/page/page.tsx'
import { Time } from '../../shared/time.tsx'
import { beginApp, confirmApp, PROFILE_KEY, type Profile, removeApp, renewCodes } from './profile-api.ts'
import { useProof } from './proof.tsx'
import { RecoveryCodes } from './recovery-codes.tsx'
import { TEXT } from './text.ts'

export function SecondFactor({ profile }: { profile: Profile }) {
  const { totp_created_at: since, recovery_codes_left: left, passkeys } = profile
  const prove = useProof()
  const [codes, setCodes] = useState<string[] | null>(null)
  const [isAdding, setAdding] = useState(false)
  return (
    <Panel title={TEXT.secondFactor}>
      <Text size="sm" mb="md">
        {TEXT.secondFactorWhy}
      </Text>
      <div className="profile-rows">
        <Group justify="space-between">
          <span>
            <strong>{TEXT.app}</strong>{' '}
            {since === null ? (
              TEXT.noApp
            ) : (
              <>
                {TEXT.appSince} <Time at={since} as="date" />
              </>
            )}
          </span>
          {since === null ? (
            <Button size="xs" onClick={() => setAdding(true)}>
              {TEXT.addApp}
            </Button>
          ) : (
            <ActionButton
              label={TEXT.removeApp}
              run={() => prove(removeApp)}
              done={TEXT.appRemoved}
              changes={PROFILE_KEY}
              ask={{ title: TEXT.removeApp, consequence: TEXT.removeAppWhy }}
            />
          )}
        </Group>
        {(since !== null || passkeys > 0) && (
          <Group justify="space-between">
            <span>
              <strong>{TEXT.codes}</strong> {TEXT.codesLeft(left)}
            </span>
            <ActionButton
              label={TEXT.renew}
              run={() => prove(renewCodes)}
              done={TEXT.saved}
              changes={PROFILE_KEY}
              onDone={setCodes}
              ask={{ title: TEXT.renew, consequence: TEXT.renewWhy }}
            />
          </Group>
        )}
      </div>
      {isAdding && (
        <AddApp
          onClose={() => setAdding(false)}
          onDone={(made) => {
            setAdding(false)
            setCodes(made)
          }}
        />
      )}
      {codes && <RecoveryCodes codes={codes} onClose={() => setCodes(null)} />}
    </Panel>
  )
}

function AddApp({ onClose, onDone }: { onClose: () => void; onDone: (codes: string[]) => void }) {
  const prove = useProof()
  const begun = useSending({ mutationFn: () => prove(beginApp) })
  const form = useForm({
    initial: { code: '' },
    send: ({ code }) => prove(() => confirmApp(code.trim())),
    changes: PROFILE_KEY,
    doneFirst: true,
    onDone,
  })
  if (begun.data === undefined)
    return (
      <FormWindow
        title={TEXT.addApp}
        submit={TEXT.addApp}
        isComplete
        busy={begun.isPending}
        error={begun.error}
        onSubmit={() => begun.mutate()}
        onClose={onClose}
      >
        <Text size="sm">{TEXT.secondFactorWhy}</Text>
      </FormWindow>
    )
  return (
    <FormWindow
      title={TEXT.addApp}
      submit={TEXT.confirm}
      isComplete={form.values.code.trim() !== ''}
      {...form.window}
      onClose={onClose}
    >
      <Text size="sm">{TEXT.scan}</Text>
      <QrCode text={begun.data.otpauth_url} />
      <Text size="sm">
        {TEXT.orType} <code className="breakable">{begun.data.secret}</code>
      </Text>
      <TextInput
        label={TEXT.code}
        inputMode="numeric"
        autoComplete="one-time-code"
        {...form.field('code')}
        autoFocus
      />
    </FormWindow>
  )
}

const QUIET_ZONE = 2 // modules; the white box around it does the rest

/** Drawn as one path: the policy of the page allows no picture made of text. The library is loaded with the window. */
function QrCode({ text }: { text: string }) {
  const { data: code, error } = useQuery({
    queryKey: ['qr', text],
    queryFn: async () => (await import('uqr')).encode(text, { border: QUIET_ZONE }),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0, // it is a secret
  })
  if (error !== null) return <Refusal error={error} />
  if (code === undefined) return <div className="profile-qr" />
  const path = code.data
    .flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : '')))
    .join('')
  return (
    <svg className="profile-qr" viewBox={`0 0 ${code.size} ${code.size}`} role="img" aria-label={TEXT.qr}>
      <path d={path} fill="#000" shapeRendering="crispEdges" />
    </svg>
  )
}
