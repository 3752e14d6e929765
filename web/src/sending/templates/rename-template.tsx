import { Text, TextInput } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import { valueOrThrow } from '../../queries.ts'
import { FormWindow } from '../../shared/forms/form-window.tsx'
import { EXACT, useForm } from '../../shared/forms/use-form.ts'
import { notify } from '../../shared/page/notices.tsx'
import { withSearch } from '../../shared/page/search.ts'
import { describeTemplate, renameTemplate, type Template } from './templates-api.ts'
import { TEMPLATES_KEY } from './templates-queries.ts'
import { TEXT } from './text.ts'

/** Changes the name and the description of a template. */
export function RenameTemplate(props: { template: Template; domain: string; onClose: () => void }) {
  const { template, domain, onClose } = props
  const navigate = useNavigate({ from: '/sending/templates/$name' })
  const form = useForm({
    initial: { name: template.name, description: template.description },
    async send({ name, description }) {
      if (description !== template.description)
        valueOrThrow(await describeTemplate(domain, template.name, description.trim()))
      // Names are kept in lower case.
      const wanted = name.trim().toLowerCase()
      if (wanted === template.name) return wanted
      return valueOrThrow(await renameTemplate(domain, template.name, wanted)).template.name
    },
    async onDone(name) {
      notify({ text: TEXT.renamed(name) })
      await navigate({
        params: { name },
        replace: true,
        search: (old) => withSearch(old, { rename: undefined }),
      })
    },
    changes: TEMPLATES_KEY,
    doneFirst: true,
  })
  return (
    <FormWindow
      title={TEXT.renameTitle}
      submit={TEXT.save}
      isComplete={form.values.name.trim() !== ''}
      {...form.window}
      onClose={onClose}
    >
      <TextInput
        label={TEXT.name}
        description={TEXT.nameHint}
        {...EXACT}
        {...form.field('name')}
        data-autofocus
      />
      <TextInput label={TEXT.description} autoComplete="off" {...form.field('description')} />
      {form.values.name.trim() !== template.name && <Text size="sm">{TEXT.renameWhy}</Text>}
    </FormWindow>
  )
}
