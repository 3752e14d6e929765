import { Button, Group, Stack, Switch, Text, Textarea, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { valueOrThrow } from '../../queries.ts'
import { addMember, type Member, updateMember } from './lists-api.ts'
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
  const [address, setAddress] = useState(member?.address ?? '')
  const [name, setName] = useState(member?.name ?? '')
  const [vars, setVars] = useState(JSON.stringify(member?.vars ?? {}, null, 2))
  const [subscribed, setSubscribed] = useState(member?.subscribed ?? true)
  const object = readObject(vars)
  const saving = useMutation({
    mutationFn: async () => {
      const given = { address: address.trim(), name: name.trim(), vars: object ?? {}, subscribed }
      valueOrThrow(await (member ? updateMember(list, member.address, given) : addMember(list, given)))
      return given
    },
    onSuccess: onSaved,
  })
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (!saving.isPending && object !== undefined) saving.mutate()
      }}
    >
      <Stack gap="md">
        <TextInput
          label={TEXT.address}
          placeholder="bob@example.com"
          autoComplete="off"
          autoCapitalize="none"
          spellCheck={false}
          inputMode="email"
          value={address}
          onChange={(event) => setAddress(event.currentTarget.value)}
          data-autofocus
        />
        <TextInput label={TEXT.name} value={name} onChange={(event) => setName(event.currentTarget.value)} />
        <Textarea
          label={TEXT.vars}
          description={TEXT.varsHint}
          autosize
          minRows={2}
          maxRows={8}
          spellCheck={false}
          value={vars}
          error={object === undefined ? TEXT.badVars : undefined}
          onChange={(event) => setVars(event.currentTarget.value)}
        />
        <Switch
          label={TEXT.subscribed}
          checked={subscribed}
          onChange={(event) => setSubscribed(event.currentTarget.checked)}
        />
        {saving.error && (
          <Text size="sm" c="red" role="alert" className="breakable">
            {saving.error.message}
          </Text>
        )}
      </Stack>
      <Group justify="flex-end" mt="lg">
        <Button variant="default" onClick={onClose}>
          {TEXT.cancel}
        </Button>
        <Button
          type="submit"
          loading={saving.isPending}
          disabled={address.trim() === '' || object === undefined}
        >
          {TEXT.save}
        </Button>
      </Group>
    </form>
  )
}
