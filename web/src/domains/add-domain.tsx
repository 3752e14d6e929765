import { Button, Group, Modal, Text, TextInput } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { valueOrThrow } from '../queries.ts'
import { useSending } from '../shared/forms/use-sending.ts'
import { DOMAINS_KEY } from './domain-queries.ts'
import { createDomain } from './domains-api.ts'
import { LIST_TEXT as TEXT } from './text.ts'

/** Asks for a name and opens the new domain's page; a refusal of the API is shown at the name. */
export function AddDomain({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  return (
    <Modal opened={opened} onClose={onClose} title={<strong>{TEXT.add}</strong>} centered>
      <AddDomainForm onClose={onClose} />
    </Modal>
  )
}

function AddDomainForm({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState('')
  const queries = useQueryClient()
  const navigate = useNavigate()
  const creation = useSending({
    mutationFn: async () => valueOrThrow(await createDomain(name.trim())),
    async onSuccess({ domain }) {
      void queries.invalidateQueries({ queryKey: [DOMAINS_KEY] })
      await navigate({ to: '/domains/$name', params: { name: domain.name } })
    },
  })
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (!creation.isPending) creation.mutate()
      }}
    >
      <TextInput
        label={TEXT.name}
        placeholder={TEXT.placeholder}
        autoComplete="off"
        autoCapitalize="none"
        spellCheck={false}
        inputMode="url"
        value={name}
        error={creation.error?.message}
        onChange={(event) => {
          setName(event.currentTarget.value)
          creation.reset()
        }}
        data-autofocus
      />
      <Text size="sm" c="dimmed" mt="sm">
        {TEXT.nameWhy}
      </Text>
      <Group justify="flex-end" mt="lg">
        <Button variant="default" onClick={onClose}>
          {TEXT.cancel}
        </Button>
        <Button type="submit" loading={creation.isPending} disabled={name.trim() === ''}>
          {TEXT.addNow}
        </Button>
      </Group>
    </form>
  )
}
