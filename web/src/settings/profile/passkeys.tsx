/** Passkeys of the own user. */
import { Button, Text, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { ActionButton } from '../../shared/forms/action-button.tsx'
import { FormWindow } from '../../shared/forms/form-window.tsx'
import { useForm } from '../../shared/forms/use-form.ts'
import { BUTTONS, type Column, DataTable } from '../../shared/page/data-table.tsx'
import { notify } from '../../shared/page/notices.tsx'
import { Panel } from '../../shared/page/page.tsx'
import { Time } from '../../shared/time.tsx'
import { hasPasskeys } from '../../sign-in/passkey-client.ts'
import {
  addPasskey,
  beginPasskey,
  type Passkey,
  PROFILE_KEY,
  passkeysQuery,
  removePasskey,
  renamePasskey,
} from './profile-api.ts'
import { useProof } from './proof.tsx'
import { RecoveryCodes } from './recovery-codes.tsx'
import { TEXT } from './text.ts'

export function Passkeys() {
  const prove = useProof()
  const list = useQuery(passkeysQuery)
  const [isAdding, setAdding] = useState(false)
  const [renamed, setRenamed] = useState<Passkey | null>(null)
  const [codes, setCodes] = useState<string[] | null>(null)
  const origin = list.data?.origin
  const worksHere = origin === window.location.origin && hasPasskeys()
  const columns: Column<Passkey>[] = [
    { header: TEXT.passkeyName, cell: ({ name }) => <span className="breakable">{name}</span> },
    { header: TEXT.added, cell: ({ created_at }) => <Time at={created_at} as="date" /> },
    {
      header: TEXT.lastUsed,
      cell: ({ last_used_at: at }) => (at === null ? TEXT.never : <Time at={at} as="age" />),
    },
    {
      ...BUTTONS,
      cell: (passkey) => (
        <span className="profile-buttons">
          <Button
            size="xs"
            variant="default"
            aria-label={TEXT.renameOf(passkey.name)}
            onClick={() => setRenamed(passkey)}
          >
            {TEXT.rename}
          </Button>
          <ActionButton
            label={TEXT.remove}
            name={TEXT.removeOf(passkey.name)}
            run={() => prove(() => removePasskey(passkey.id))}
            done={TEXT.passkeyRemoved(passkey.name)}
            changes={PROFILE_KEY}
            ask={{ title: TEXT.removePasskey, consequence: TEXT.removePasskeyWhy(passkey.name) }}
          />
        </span>
      ),
    },
  ]
  return (
    <Panel
      title={TEXT.passkeys}
      beside={worksHere && <Button onClick={() => setAdding(true)}>{TEXT.addPasskey}</Button>}
    >
      <Text size="sm" mb="sm">
        {TEXT.passkeysWhy}{' '}
        {list.data !== undefined &&
          !worksHere &&
          (origin == null ? TEXT.passkeysNowhere : TEXT.passkeysElsewhere(origin))}
      </Text>
      <DataTable
        label={TEXT.passkeys}
        columns={columns}
        rows={list.data?.items}
        rowKey={({ id }) => id}
        error={list.error}
        retry={list.refetch}
        expectedRows={1}
        empty={<p className="dimmed">{TEXT.noPasskeys}</p>}
      />
      {isAdding && <AddPasskey onClose={() => setAdding(false)} onCodes={setCodes} />}
      {renamed && <RenamePasskey passkey={renamed} onClose={() => setRenamed(null)} />}
      {codes && <RecoveryCodes codes={codes} onClose={() => setCodes(null)} />}
    </Panel>
  )
}

function AddPasskey({ onClose, onCodes }: { onClose: () => void; onCodes: (codes: string[]) => void }) {
  const prove = useProof()
  const form = useForm({
    initial: { name: '' },
    send: async ({ name }) => addPasskey(name.trim(), await prove(beginPasskey)),
    changes: PROFILE_KEY,
    onDone({ passkey, recovery_codes: codes }) {
      notify({ text: TEXT.passkeyAdded(passkey.name) })
      onClose()
      if (codes !== null) onCodes(codes)
    },
  })
  return (
    <FormWindow
      title={TEXT.addPasskey}
      submit={TEXT.addPasskey}
      isComplete={form.values.name.trim() !== ''}
      {...form.window}
      onClose={onClose}
    >
      <TextInput
        label={TEXT.passkeyName}
        description={TEXT.passkeyNameWhy}
        autoComplete="off"
        {...form.field('name')}
        data-autofocus
      />
    </FormWindow>
  )
}

function RenamePasskey({ passkey: { id, name }, onClose }: { passkey: Passkey; onClose: () => void }) {
  const form = useForm({
    initial: { name },
    send: (given) => renamePasskey(id, given.name.trim()),
    changes: PROFILE_KEY,
    onDone(passkey) {
      notify({ text: TEXT.renamed(passkey.name) })
      onClose()
    },
  })
  return (
    <FormWindow
      title={TEXT.renameOf(name)}
      submit={TEXT.rename}
      isComplete={form.values.name.trim() !== ''}
      {...form.window}
      onClose={onClose}
    >
      <TextInput label={TEXT.passkeyName} autoComplete="off" {...form.field('name')} data-autofocus />
    </FormWindow>
  )
}
