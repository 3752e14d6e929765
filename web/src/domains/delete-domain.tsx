import { useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { valueOrThrow } from '../queries.ts'
import { useMay } from '../session.ts'
import { RemoveIcon } from '../shared/forms/remove-icon.tsx'
import { DOMAINS_KEY } from './domain-queries.ts'
import { deleteDomain } from './domains-api.ts'
import { DOMAIN_TEXT as TEXT } from './text.ts'

export function DeleteDomain({ name }: { name: string }) {
  const mayDelete = useMay({ area: 'domains', access: 'write' })
  const queries = useQueryClient()
  const navigate = useNavigate()
  if (!mayDelete) return null
  return (
    <RemoveIcon
      label={TEXT.remove}
      ask={{ title: TEXT.removeTitle, consequence: TEXT.removeWhy, action: TEXT.removeNow, mustType: name }}
      run={async () => valueOrThrow(await deleteDomain(name))}
      onDone={async () => {
        const forget = () => queries.removeQueries({ queryKey: [DOMAINS_KEY], type: 'inactive' })
        forget() // the lists, so that none still shows the domain
        await navigate({ to: '/domains' })
        forget() // data of the domain itself
      }}
    />
  )
}
