import { ActionIcon } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { Confirm } from '../base/confirm.tsx'
import { Icon } from '../look/icons.tsx'
import { valueOrThrow } from '../queries.ts'
import { useMay } from '../session.ts'
import { useSending } from '../shared/forms/use-sending.ts'
import { DOMAINS_KEY } from './domain-queries.ts'
import { deleteDomain } from './domains-api.ts'
import { DOMAIN_TEXT as TEXT } from './text.ts'

export function DeleteDomain({ name }: { name: string }) {
  const mayDelete = useMay({ area: 'domains', access: 'write' })
  const [asking, setAsking] = useState(false)
  const queries = useQueryClient()
  const navigate = useNavigate()
  const removal = useSending({
    mutationFn: async () => valueOrThrow(await deleteDomain(name)),
    async onSuccess() {
      const forget = () => queries.removeQueries({ queryKey: [DOMAINS_KEY], type: 'inactive' })
      forget() // the lists, so that none still shows the domain
      await navigate({ to: '/domains' })
      forget() // data of the domain itself
    },
  })
  const close = () => {
    setAsking(false)
    removal.reset()
  }
  if (!mayDelete) return null
  return (
    <>
      <ActionIcon
        variant="subtle"
        color="gray"
        size="lg"
        aria-label={TEXT.remove}
        title={TEXT.remove}
        onClick={() => setAsking(true)}
      >
        <Icon name="trash" />
      </ActionIcon>
      <Confirm
        opened={asking}
        title={TEXT.removeTitle}
        consequence={TEXT.removeWhy}
        action={TEXT.removeNow}
        mustType={name}
        busy={removal.isPending}
        failure={removal.error?.message}
        onConfirm={() => removal.mutate()}
        onClose={close}
      />
    </>
  )
}
