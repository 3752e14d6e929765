/** The own user: name and dates, password, second factor, passkeys, sessions. Calls /me. */
import { Button, Group, NativeSelect, PasswordInput, Text, TextInput } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { shortDateTime } from '../../base/format.ts'
import { useNow } from '../../base/use-now.ts'
import { sessionQuery, useSession } from '../../session.ts'
import { FormWindow } from '../../shared/forms/form-window.tsx'
import { useForm } from '../../shared/forms/use-form.ts'
import { notify } from '../../shared/page/notices.tsx'
import { Page, PageHeader, Panel } from '../../shared/page/page.tsx'
import { EmptyState, Failure } from '../../shared/page/states.tsx'
import { Time } from '../../shared/time.tsx'
import { Passkeys } from './passkeys.tsx'
import { changePassword, changeProfile, type Profile, profileQuery } from './profile-api.ts'
import { ProofGate, useProof } from './proof.tsx'
import { SecondFactor } from './second-factor.tsx'
import { OwnSessions } from './sessions.tsx'
import { TEXT } from './text.ts'
import './profile.css'

export default function ProfilePage() {
  const session = useSession()
  return (
    <Page>
      <PageHeader title={TEXT.title} />
      {session.user === null || session.kind !== 'session' ? (
        <Panel>
          <EmptyState icon="users" title={TEXT.noUser}>
            {TEXT.noUserWhy}
          </EmptyState>
        </Panel>
      ) : (
        <OwnProfile />
      )}
    </Page>
  )
}

function OwnProfile() {
  const { data: profile, error, refetch } = useQuery(profileQuery)
  if (error !== null) return <Failure title={TEXT.title} error={error} retry={refetch} />
  if (profile === undefined) return null
  return (
    <ProofGate>
      <Dates profile={profile} />
      <Panel title={TEXT.signIn}>
        {profile.sign_in === 'oidc' ? <Text size="sm">{TEXT.provider}</Text> : <Password profile={profile} />}
      </Panel>
      {profile.sign_in === 'password' && <SecondFactor profile={profile} />}
      <Passkeys />
      <OwnSessions />
    </ProofGate>
  )
}

/** Languages whose dates every browser can write. */
const LANGUAGES = [
  'en-GB',
  'en-US',
  'da',
  'de',
  'es',
  'fi',
  'fr',
  'it',
  'ja',
  'ko',
  'nb',
  'nl',
  'pl',
  'pt',
  'pt-BR',
  'sv',
  'uk',
  'zh',
]
const nameOf = (language: string) =>
  new Intl.DisplayNames([language], { type: 'language' }).of(language) ?? language
const ZONES = Intl.supportedValuesOf('timeZone')
const ZONE_OF_BROWSER = new Intl.DateTimeFormat().resolvedOptions().timeZone

function Dates({ profile }: { profile: Profile }) {
  const queries = useQueryClient()
  const now = useNow()
  const form = useForm({
    initial: { name: profile.name, language: profile.language ?? '', time_zone: profile.time_zone ?? '' },
    send: changeProfile,
    changes: 'own-profile',
    async onDone() {
      await queries.refetchQueries({ queryKey: sessionQuery.queryKey })
      notify({ text: TEXT.saved })
    },
  })
  // What somebody has chosen elsewhere stays, known to this browser or not.
  const withOwn = (names: readonly string[], own: string | null) =>
    own === null || names.includes(own) ? names : [own, ...names]
  return (
    <Panel title={TEXT.dates}>
      <form
        className="profile-form"
        onSubmit={(event) => {
          event.preventDefault()
          form.window.onSubmit()
        }}
      >
        <TextInput label={TEXT.name} autoComplete="name" {...form.field('name')} />
        <TextInput label={TEXT.email} value={profile.email} readOnly />
        <NativeSelect
          label={TEXT.language}
          data={[
            { value: '', label: TEXT.english },
            ...withOwn(LANGUAGES, profile.language).map((value) => ({ value, label: nameOf(value) })),
          ]}
          {...form.field('language')}
        />
        <NativeSelect
          label={TEXT.timeZone}
          data={[
            { value: '', label: TEXT.zoneOfBrowser(ZONE_OF_BROWSER) },
            ...withOwn(ZONES, profile.time_zone),
          ]}
          {...form.field('time_zone')}
        />
        {form.window.error && (
          <Text size="sm" c="red" role="alert">
            {form.window.error.message}
          </Text>
        )}
        <Group>
          <Button type="submit" loading={form.window.busy} disabled={form.values.name.trim() === ''}>
            {TEXT.save}
          </Button>
          <Text size="sm" c="dimmed">
            {TEXT.example(shortDateTime(now))}
          </Text>
        </Group>
      </form>
    </Panel>
  )
}

function Password({ profile: { password_updated_at: at } }: { profile: Profile }) {
  const [isOpen, setOpen] = useState(false)
  return (
    <Group justify="space-between">
      <Text size="sm">
        {TEXT.passwordSince} {at === null ? TEXT.never : <Time at={at} as="date" />}
      </Text>
      <Button variant="default" onClick={() => setOpen(true)}>
        {TEXT.changePassword}
      </Button>
      {isOpen && <PasswordWindow onClose={() => setOpen(false)} />}
    </Group>
  )
}

function PasswordWindow({ onClose }: { onClose: () => void }) {
  const prove = useProof()
  const form = useForm({
    initial: { password: '' },
    send: ({ password }) => prove(() => changePassword(password)),
    changes: 'own-profile',
    onDone() {
      notify({ text: TEXT.passwordChanged })
      onClose()
    },
  })
  return (
    <FormWindow
      title={TEXT.changePassword}
      submit={TEXT.changePassword}
      isComplete={form.values.password !== ''}
      {...form.window}
      onClose={onClose}
    >
      <PasswordInput
        label={TEXT.newPassword}
        description={TEXT.newPasswordWhy}
        autoComplete="new-password"
        {...form.field('password')}
        data-autofocus
      />
    </FormWindow>
  )
}
