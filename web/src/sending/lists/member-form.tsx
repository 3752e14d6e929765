import { Switch, Textarea, TextInput } from '@mantine/core'
import { valueOrThrow } from '../../queries.ts'
import { FormWindow } from '../../shared/forms/form-window.tsx'
import { EXACT, useForm } from '../../shared/forms/use-form.ts'
import { addMember, LISTS_KEY, type Member, updateMember } from './lists-api.ts'
import { TEXT } from './text.ts'

/** The object that the text is; undefined if it is none. */
export function readObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text.trim() || '{}')
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined
  } catch {
    return undefined
  }
}

/** Adds a member, or changes `member`. */
export function MemberForm(props: {
  list: string
  member?: Member
  onSaved: (member: Member) => unknown
  onClose: () => void
}) {
  const { list, member, onSaved, onClose } = props
  const form = useForm({
    initial: {
      address: member?.address ?? '',
      name: member?.name ?? '',
      vars: JSON.stringify(member?.vars ?? {}, null, 2),
      subscribed: member?.subscribed ?? true,
      asks: false,
    },
    async send({ address, name, vars, subscribed, asks }) {
      const fields = { address: address.trim(), name: name.trim(), vars: readObject(vars) ?? {}, subscribed }
      const given: Member = { ...fields, ...(member?.pending && { pending: true }) }
      const confirm = asks && subscribed ? 'yes' : undefined
      valueOrThrow(
        await (member ? updateMember(list, member.address, given) : addMember(list, given, confirm)),
      )
      return given
    },
    changes: LISTS_KEY,
    onDone: onSaved,
  })
  const isObject = readObject(form.values.vars) !== undefined
  return (
    <FormWindow
      title={member ? TEXT.editMember : TEXT.addMember}
      submit={TEXT.save}
      isComplete={form.values.address.trim() !== '' && isObject}
      {...form.window}
      onClose={onClose}
    >
      <TextInput
        label={TEXT.address}
        placeholder="bob@example.com"
        inputMode="email"
        {...EXACT}
        {...form.field('address')}
        data-autofocus
      />
      <TextInput label={TEXT.name} {...form.field('name')} />
      <Textarea
        label={TEXT.vars}
        description={TEXT.varsHint}
        autosize
        minRows={2}
        maxRows={8}
        spellCheck={false}
        error={isObject ? undefined : TEXT.badVars}
        {...form.field('vars')}
      />
      <Switch
        label={TEXT.subscribed}
        checked={form.values.subscribed}
        onChange={(event) => form.set({ subscribed: event.currentTarget.checked })}
      />
      {member === undefined && form.values.subscribed && (
        <Switch
          label={TEXT.askFirst}
          checked={form.values.asks}
          onChange={(event) => form.set({ asks: event.currentTarget.checked })}
        />
      )}
    </FormWindow>
  )
}
