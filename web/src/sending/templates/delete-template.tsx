import { ActionIcon } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { Confirm } from '../../base/confirm.tsx'
import { Icon } from '../../look/icons.tsx'
import { valueOrThrow } from '../../queries.ts'
import { useMay } from '../../session.ts'
import { useSending } from '../../shared/forms/use-sending.ts'
import { notify } from '../../shared/page/notices.tsx'
import { deleteTemplate } from './templates-api.ts'
import { TEMPLATES_KEY } from './templates-queries.ts'
import { TEXT } from './text.ts'

export function DeleteTemplate({ name, domain }: { name: string; domain: string }) {
  const mayDelete = useMay({ area: 'templates', access: 'write' })
  const [asking, setAsking] = useState(false)
  const queries = useQueryClient()
  const navigate = useNavigate()
  const removal = useSending({
    mutationFn: async () => valueOrThrow(await deleteTemplate(domain, name)),
    async onSuccess() {
      queries.removeQueries({ queryKey: [TEMPLATES_KEY], type: 'inactive' })
      await navigate({ to: '/sending/templates', search: domain === '' ? {} : { domain } })
      queries.removeQueries({ queryKey: [TEMPLATES_KEY], type: 'inactive' })
      notify({ text: TEXT.deleted(name) })
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
        aria-label={TEXT.deleteTemplate}
        title={TEXT.deleteTemplate}
        onClick={() => setAsking(true)}
      >
        <Icon name="trash" />
      </ActionIcon>
      <Confirm
        opened={asking}
        title={TEXT.deleteTemplate}
        consequence={TEXT.deleteWhy}
        action={TEXT.deleteTemplate}
        mustType={name}
        busy={removal.isPending}
        failure={removal.error?.message}
        onConfirm={() => removal.mutate()}
        onClose={close}
      />
    </>
  )
}
