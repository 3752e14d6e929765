/** Templates of a domain or of the account. Calls /v3/:domain/templates and /v4/templates. */
import { Text, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { valueOrThrow } from '../../queries.ts'
import { useMay } from '../../session.ts'
import { AddButton } from '../../shared/forms/add-button.tsx'
import { Choice } from '../../shared/forms/choice.tsx'
import { DomainChoice } from '../../shared/forms/domain-choice.tsx'
import { FormWindow } from '../../shared/forms/form-window.tsx'
import { EXACT, useForm } from '../../shared/forms/use-form.ts'
import type { Column } from '../../shared/page/data-table.tsx'
import { FilterBar } from '../../shared/page/filter-bar.tsx'
import { ListPage } from '../../shared/page/list-page.tsx'
import { withSearch } from '../../shared/page/search.ts'
import { EmptyState } from '../../shared/page/states.tsx'
import { Time } from '../../shared/time.tsx'
import { createTemplate, type Template } from './templates-api.ts'
import { TEMPLATES_KEY, templatesQuery } from './templates-queries.ts'
import { STARTS, TEXT } from './text.ts'
import './templates.css'

const route = getRouteApi('/sending/templates')

export default function TemplatesPage() {
  const { domain = '', q = '', add } = route.useSearch()
  const navigate = useNavigate({ from: '/sending/templates' })
  const mayWrite = useMay({ area: 'templates', access: 'write' })
  const list = useQuery(templatesQuery(domain))
  const found = list.data?.filter(({ name, description }) =>
    `${name} ${description}`.toLowerCase().includes(q.toLowerCase()),
  )
  const setAdding = (adding: boolean) =>
    void navigate({ replace: true, search: (old) => withSearch(old, { add: adding ? 'yes' : undefined }) })
  const addButton = mayWrite && <AddButton label={TEXT.newTemplate} onClick={() => setAdding(true)} />
  return (
    <ListPage
      title={TEXT.templates}
      lead={TEXT.lead}
      actions={addButton}
      above={
        <FilterBar
          fields={[{ name: 'q', kind: 'search', label: TEXT.search }]}
          values={{ q }}
          onChange={(name, value) =>
            void navigate({ replace: true, search: (old) => withSearch(old, { [name]: value }) })
          }
          onClear={() => void navigate({ replace: true, search: (old) => withSearch(old, { q: undefined }) })}
        >
          <DomainChoice
            value={domain}
            none={TEXT.ofAccount}
            onChange={(chosen) =>
              void navigate({
                search: (old) => withSearch(old, { domain: chosen === '' ? undefined : chosen }),
              })
            }
          />
        </FilterBar>
      }
      list={list}
      rows={found}
      rowKey={({ id }) => id}
      columns={columnsOf(domain)}
      empty={
        q !== '' && list.data?.length !== 0 ? (
          <EmptyState icon="search" title={TEXT.noneFound(q)} />
        ) : (
          <EmptyState
            icon="file"
            title={domain === '' ? TEXT.none : TEXT.noneHere(domain)}
            action={addButton}
          >
            {TEXT.noneWhy}
          </EmptyState>
        )
      }
    >
      {add === 'yes' && mayWrite && <NewTemplate domain={domain} onClose={() => setAdding(false)} />}
    </ListPage>
  )
}

const columnsOf = (domain: string): Column<Template>[] => [
  {
    header: TEXT.name,
    cell: ({ name }) => (
      <Link
        to="/sending/templates/$name"
        params={{ name }}
        search={domain === '' ? {} : { domain }}
        className="row-link breakable"
      >
        {name}
      </Link>
    ),
  },
  {
    header: TEXT.description,
    cell: ({ description }) => (
      <span className="dimmed template-description breakable">{description || '–'}</span>
    ),
  },
  {
    header: TEXT.created,
    align: 'end',
    width: '10em',
    cell: ({ createdAt }) => <Time at={createdAt} as="age" />,
  },
]

type Start = keyof typeof STARTS

function NewTemplate({ domain, onClose }: { domain: string; onClose: () => void }) {
  const navigate = useNavigate()
  const form = useForm({
    initial: { name: '', description: '', start: 'html' as Start },
    async send({ name, description, start }) {
      const engine = start === 'mjml' || start === 'blocks' ? 'mjml' : 'handlebars'
      const draft = { engine, content: STARTS[start], headers: {}, sample: '' } as const
      const made = valueOrThrow(await createTemplate(domain, name.trim(), description.trim(), draft))
      return { name: made.template.name, start }
    },
    changes: TEMPLATES_KEY,
    onDone: ({ name, start }) =>
      navigate({
        to: '/sending/templates/$name',
        params: { name },
        search: {
          ...(domain !== '' && { domain }),
          ...(start === 'mjml' && { write: 'source' as const }),
        },
      }),
  })
  const { start } = form.values
  return (
    <FormWindow
      title={TEXT.newTemplate}
      submit={TEXT.create}
      isComplete={form.values.name.trim() !== ''}
      {...form.window}
      onClose={onClose}
    >
      <TextInput
        label={TEXT.name}
        description={TEXT.nameHint}
        placeholder="welcome"
        {...EXACT}
        {...form.field('name')}
        data-autofocus
      />
      <TextInput label={TEXT.description} {...form.field('description')} />
      <div>
        <Text size="sm" fw={500} mb={4}>
          {TEXT.startWith}
        </Text>
        <Choice
          label={TEXT.startWith}
          options={Object.entries(TEXT.starts) as [Start, string][]}
          value={start}
          onChange={(chosen) => form.set({ start: chosen })}
        />
        <Text size="sm" c="dimmed" mt={6}>
          {TEXT.startHints[start]}
        </Text>
      </div>
    </FormWindow>
  )
}
