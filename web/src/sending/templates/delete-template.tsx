import { useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { valueOrThrow } from '../../queries.ts'
import { useMay } from '../../session.ts'
import { RemoveIcon } from '../../shared/forms/remove-icon.tsx'
import { notify } from '../../shared/page/notices.tsx'
import { deleteTemplate } from './templates-api.ts'
import { TEMPLATES_KEY } from './templates-queries.ts'
import { TEXT } from './text.ts'

export function DeleteTemplate({ name, domain }: { name: string; domain: string }) {
  const mayDelete = useMay({ area: 'templates', access: 'write' })
  const queries = useQueryClient()
  const navigate = useNavigate()
  const title = TEXT.deleteTemplate
  if (!mayDelete) return null
  return (
    <RemoveIcon
      label={title}
      ask={{ title, consequence: TEXT.deleteWhy, action: title, mustType: name }}
      run={async () => valueOrThrow(await deleteTemplate(domain, name))}
      onDone={async () => {
        queries.removeQueries({ queryKey: [TEMPLATES_KEY], type: 'inactive' })
        await navigate({ to: '/sending/templates', search: domain === '' ? {} : { domain } })
        queries.removeQueries({ queryKey: [TEMPLATES_KEY], type: 'inactive' })
        notify({ text: TEXT.deleted(name) })
      }}
    />
  )
}
