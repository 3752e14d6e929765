/** The window of a relay: a new one from what is known of its provider, or one that there is. Secrets are only written. */
import { Checkbox, Group, NativeSelect, PasswordInput, Stack, Text, Textarea, TextInput } from '@mantine/core'
import { useState } from 'react'
import { FormWindow } from '../../shared/forms/form-window.tsx'
import { EXACT, useForm } from '../../shared/forms/use-form.ts'
import { notify } from '../../shared/page/notices.tsx'
import { PRESETS, type PresetName } from './presets.ts'
import { fieldsOf, hasTokens, NEW_RELAY, type RelayFields, relayOf } from './relay-fields.ts'
import { RelayState } from './relay-state.tsx'
import { createRelay, RELAYS_KEY, type Relay, replaceRelay } from './relays-api.ts'
import { FORM, TEXT } from './text.ts'

const options = (names: Readonly<Record<string, string>>) =>
  Object.entries(names).map(([value, label]) => ({ value, label }))

/** `relay` null: a new one. */
export function RelayWindow({ relay, onClose }: { relay: Relay | null; onClose: () => void }) {
  const [preset, setPreset] = useState<PresetName>('own')
  const form = useForm<RelayFields, unknown>({
    initial: relay === null ? NEW_RELAY : fieldsOf(relay),
    send: (fields) =>
      relay === null
        ? createRelay(fields.name.trim(), relayOf(fields))
        : replaceRelay(relay.name, relayOf(fields)),
    changes: RELAYS_KEY,
    onDone(_, { name }) {
      notify({ text: relay === null ? TEXT.added(name.trim()) : TEXT.saved(name) })
      onClose()
    },
  })
  const { values } = form
  const choose = (name: PresetName) => {
    setPreset(name)
    form.set({ ...NEW_RELAY, ...PRESETS[name].fields })
  }
  const needsUser = values.mechanism !== 'none'
  const isComplete =
    values.name.trim() !== '' && values.host.trim() !== '' && (!needsUser || values.username.trim() !== '')
  const { hint } = PRESETS[preset]
  return (
    <FormWindow
      title={relay === null ? TEXT.add : TEXT.editTitle(relay.name)}
      submit={relay === null ? TEXT.create : TEXT.save}
      isComplete={isComplete}
      {...form.window}
      onClose={onClose}
    >
      {relay !== null && <RelayState relay={relay} />}
      {relay === null && (
        <>
          <NativeSelect
            label={FORM.preset}
            data={Object.entries(PRESETS).map(([value, { label }]) => ({ value, label }))}
            value={preset}
            onChange={(event) => choose(event.currentTarget.value as PresetName)}
            data-autofocus
          />
          {hint !== '' && <Text size="sm">{hint}</Text>}
          <TextInput label={FORM.name} description={FORM.nameHelp} {...EXACT} {...form.field('name')} />
        </>
      )}
      <TextInput label={FORM.host} {...EXACT} {...form.field('host')} />
      <Group grow align="flex-start">
        <TextInput label={FORM.port} inputMode="numeric" {...EXACT} {...form.field('port')} />
        <NativeSelect label={FORM.tls} data={options(FORM.tlsNames)} {...form.field('tls')} />
      </Group>
      <Checkbox
        label={FORM.allowUnverified}
        checked={values.allowUnverified}
        onChange={(event) => form.set({ allowUnverified: event.currentTarget.checked })}
      />
      <NativeSelect label={FORM.mechanism} data={options(FORM.mechanisms)} {...form.field('mechanism')} />
      {needsUser && <LoginFields form={form} relay={relay} />}
      <MoreFields form={form} />
    </FormWindow>
  )
}

type Form = ReturnType<typeof useForm<RelayFields, unknown>>

function LoginFields({ form, relay }: { form: Form; relay: Relay | null }) {
  const { values } = form
  const stored = relay?.login ?? null
  const keeps = (isStored: boolean | undefined) => (isStored ? { description: FORM.keeps } : {})
  const secret = { autoComplete: 'new-password' } as const
  return (
    <>
      <TextInput label={FORM.username} {...EXACT} {...form.field('username')} />
      {!hasTokens(values) ? (
        <PasswordInput
          label={FORM.password}
          {...keeps(stored?.has_password)}
          {...secret}
          {...form.field('password')}
        />
      ) : (
        <>
          <NativeSelect label={FORM.grant} data={options(FORM.grants)} {...form.field('grant')} />
          <TextInput label={FORM.tokenUrl} {...EXACT} {...form.field('tokenUrl')} />
          <TextInput label={FORM.clientId} {...EXACT} {...form.field('clientId')} />
          {values.grant === 'jwt_bearer' ? (
            <Textarea
              label={FORM.privateKey}
              {...keeps(stored?.oauth?.has_client_secret)}
              {...EXACT}
              {...form.field('clientSecret')}
            />
          ) : (
            <PasswordInput
              label={FORM.clientSecret}
              {...keeps(stored?.oauth?.has_client_secret)}
              {...secret}
              {...form.field('clientSecret')}
            />
          )}
          {values.grant === 'refresh_token' && (
            <PasswordInput
              label={FORM.refreshToken}
              {...keeps(stored?.oauth?.has_refresh_token)}
              {...secret}
              {...form.field('refreshToken')}
            />
          )}
          <TextInput label={FORM.scope} {...EXACT} {...form.field('scope')} />
          <NativeSelect
            label={FORM.clientAuth}
            data={options(FORM.clientAuths)}
            {...form.field('clientAuth')}
          />
        </>
      )}
    </>
  )
}

const LIMITS = ['connections', 'perConnection', 'perSecond', 'perDay', 'maxSize'] as const

function MoreFields({ form }: { form: Form }) {
  const { values } = form
  const hasSender = values.sender.trim() !== ''
  return (
    <>
      <details className="queue-filters">
        <summary>{FORM.limits}</summary>
        <div className="queue-fields">
          {LIMITS.map((name) => (
            <TextInput key={name} label={FORM[name]} inputMode="decimal" {...EXACT} {...form.field(name)} />
          ))}
        </div>
      </details>
      <TextInput
        label={FORM.sender}
        description={FORM.senderHelp}
        inputMode="email"
        {...EXACT}
        {...form.field('sender')}
      />
      <Checkbox.Group
        label={FORM.alters}
        value={[
          ...(hasSender || values.returnPath ? ['returnPath'] : []),
          ...(values.messageId ? ['messageId'] : []),
        ]}
        onChange={(chosen) =>
          form.set({ returnPath: chosen.includes('returnPath'), messageId: chosen.includes('messageId') })
        }
      >
        <Stack gap={8} mt={8}>
          <Checkbox value="returnPath" label={FORM.returnPath} disabled={hasSender} />
          <Checkbox value="messageId" label={FORM.messageId} />
        </Stack>
      </Checkbox.Group>
      <NativeSelect label={FORM.offered} data={options(FORM.offers)} {...form.field('offered')} />
      {values.offered === 'listed' && (
        <TextInput label={FORM.accounts} {...EXACT} {...form.field('accounts')} />
      )}
    </>
  )
}
