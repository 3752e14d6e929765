import { Button, Group, NativeSelect, Stack, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { valueOrThrow } from '../../queries.ts'
import { ACCESS_LEVELS, createList, type MailingList, REPLY_PREFERENCES, updateList } from './lists-api.ts'
import { TEXT } from './text.ts'

/** Makes a list, or changes `list`. */
export function ListForm(props: {
  list?: MailingList
  onSaved: (list: MailingList) => unknown
  onClose: () => void
}) {
  const { list, onSaved, onClose } = props
  const [fields, setFields] = useState({
    address: list?.address ?? '',
    name: list?.name ?? '',
    description: list?.description ?? '',
    access_level: list?.access_level ?? 'readonly',
    reply_preference: list?.reply_preference ?? 'list',
  })
  const saving = useMutation({
    mutationFn: async () =>
      valueOrThrow(await (list ? updateList(list.address, fields) : createList(fields))).list,
    onSuccess: onSaved,
  })
  const change = (name: keyof typeof fields) => (event: { currentTarget: { value: string } }) => {
    const { value } = event.currentTarget
    setFields((old) => ({ ...old, [name]: value }))
    saving.reset()
  }
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (!saving.isPending) saving.mutate()
      }}
    >
      <Stack gap="md">
        <TextInput
          label={TEXT.address}
          description={TEXT.addressHint}
          placeholder="news@example.com"
          autoComplete="off"
          autoCapitalize="none"
          spellCheck={false}
          inputMode="email"
          value={fields.address}
          error={saving.error?.message}
          onChange={change('address')}
          data-autofocus
        />
        <TextInput label={TEXT.name} value={fields.name} onChange={change('name')} />
        <TextInput label={TEXT.description} value={fields.description} onChange={change('description')} />
        <NativeSelect
          label={TEXT.access}
          value={fields.access_level}
          data={ACCESS_LEVELS.map((value) => ({ value, label: TEXT.accessLevels[value] }))}
          onChange={change('access_level')}
        />
        {fields.access_level !== 'readonly' && (
          <NativeSelect
            label={TEXT.reply}
            value={fields.reply_preference}
            data={REPLY_PREFERENCES.map((value) => ({ value, label: TEXT.replies[value] }))}
            onChange={change('reply_preference')}
          />
        )}
      </Stack>
      <Group justify="flex-end" mt="lg">
        <Button variant="default" onClick={onClose}>
          {TEXT.cancel}
        </Button>
        <Button type="submit" loading={saving.isPending} disabled={fields.address.trim() === ''}>
          {list ? TEXT.save : TEXT.create}
        </Button>
      </Group>
    </form>
  )
}
