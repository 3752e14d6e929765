import { NativeSelect, TextInput } from '@mantine/core'
import { valueOrThrow } from '../../queries.ts'
import { FormWindow } from '../../shared/forms/form-window.tsx'
import { EXACT, useForm } from '../../shared/forms/use-form.ts'
import {
  ACCESS_LEVELS,
  createList,
  LISTS_KEY,
  type MailingList,
  REPLY_PREFERENCES,
  updateList,
} from './lists-api.ts'
import { TEXT } from './text.ts'

/** Makes a list, or changes `list`. */
export function ListForm(props: {
  list?: MailingList
  onSaved: (list: MailingList) => unknown
  onClose: () => void
}) {
  const { list, onSaved, onClose } = props
  const form = useForm({
    initial: {
      address: list?.address ?? '',
      name: list?.name ?? '',
      description: list?.description ?? '',
      access_level: list?.access_level ?? 'readonly',
      reply_preference: list?.reply_preference ?? 'list',
    },
    send: async (fields: Readonly<Record<string, string>>) =>
      valueOrThrow(await (list ? updateList(list.address, fields) : createList(fields))).list,
    changes: LISTS_KEY,
    doneFirst: true,
    onDone: onSaved,
  })
  return (
    <FormWindow
      title={list ? TEXT.editTitle : TEXT.newList}
      submit={list ? TEXT.save : TEXT.create}
      isComplete={form.values.address.trim() !== ''}
      {...form.window}
      onClose={onClose}
    >
      <TextInput
        label={TEXT.address}
        description={TEXT.addressHint}
        placeholder="news@example.com"
        inputMode="email"
        {...EXACT}
        {...form.field('address')}
        data-autofocus
      />
      <TextInput label={TEXT.name} {...form.field('name')} />
      <TextInput label={TEXT.description} {...form.field('description')} />
      <NativeSelect
        label={TEXT.access}
        data={ACCESS_LEVELS.map((value) => ({ value, label: TEXT.accessLevels[value] }))}
        {...form.field('access_level')}
      />
      {form.values.access_level !== 'readonly' && (
        <NativeSelect
          label={TEXT.reply}
          data={REPLY_PREFERENCES.map((value) => ({ value, label: TEXT.replies[value] }))}
          {...form.field('reply_preference')}
        />
      )}
    </FormWindow>
  )
}
