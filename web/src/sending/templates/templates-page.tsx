import { Button, Group, Modal, Stack, Text, TextInput } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { Icon } from '../../icons.tsx'
import { valueOrThrow } from '../../queries.ts'
import { useMay } from '../../session.ts'
import { Choice } from '../../shared/choice.tsx'
import { type Column, DataTable } from '../../shared/data-table.tsx'
import { DomainChoice } from '../../shared/domain-choice.tsx'
import { FilterBar } from '../../shared/filter-bar.tsx'
import { Page, PageHeader, Panel } from '../../shared/page.tsx'
import { withSearch } from '../../shared/search.ts'
import { EmptyState } from '../../shared/states.tsx'
import { Time } from '../../shared/time.tsx'
import { createTemplate, type Template } from './templates-api.ts'
import { TEMPLATES_KEY, templatesQuery } from './templates-queries.ts'
import { STARTS, TEXT } from './text.ts'
import './templates.css'

const route = getRouteApi('/sending/templates')

export function TemplatesPage() {
  const { domain = '', q = '', add } = route.useSearch()
  const navigate = useNavigate({ from: '/sending/templates' })
  const mayWrite = useMay({ area: 'templates', access: 'write' })
  const list = useQuery(templatesQuery(domain))
  const found = list.data?.filter(({ name, description }) =>
    `${name} ${description}`.toLowerCase().includes(q.toLowerCase()),
  )
  const setAdding = (adding: boolean) =>
    void navigate({ replace: true, search: (old) => withSearch(old, { add: adding ? 'yes' : undefined }) })
  const addButton = mayWrite && (
    <Button leftSection={<Icon name="plus" size={16} />} onClick={() => setAdding(true)}>
      {TEXT.newTemplate}
    </Button>
  )
  return (
    <Page wide>
      <PageHeader title={TEXT.templates} lead={TEXT.lead} actions={addButton} />
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
      <Panel flush>
        <DataTable
          label={TEXT.templates}
          columns={columnsOf(domain)}
          rows={found}
          rowKey={({ id }) => id}
          error={list.error}
          retry={list.refetch}
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
        />
      </Panel>
      <Modal
        opened={add === 'yes' && mayWrite}
        onClose={() => setAdding(false)}
        title={<strong>{TEXT.newTemplate}</strong>}
        centered
      >
        <NewTemplate domain={domain} onClose={() => setAdding(false)} />
      </Modal>
    </Page>
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
    cell: ({ description }) => <span className="dimmed template-description">{description || '–'}</span>,
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
  const [name, setName] = useState('')
  const [description, setDescription] = useState('')
  const [start, setStart] = useState<Start>('html')
  const queries = useQueryClient()
  const navigate = useNavigate()
  const creation = useMutation({
    mutationFn: async () => {
      const engine = start === 'mjml' ? 'mjml' : 'handlebars'
      const draft = { engine, content: STARTS[start], headers: {} } as const
      return valueOrThrow(await createTemplate(domain, name.trim(), description.trim(), draft)).template
    },
    async onSuccess(template) {
      await queries.invalidateQueries({ queryKey: [TEMPLATES_KEY] })
      await navigate({
        to: '/sending/templates/$name',
        params: { name: template.name },
        search: domain === '' ? {} : { domain },
      })
    },
  })
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (!creation.isPending) creation.mutate()
      }}
    >
      <Stack gap="md">
        <TextInput
          label={TEXT.name}
          description={TEXT.nameHint}
          placeholder="welcome"
          autoComplete="off"
          autoCapitalize="none"
          spellCheck={false}
          value={name}
          error={creation.error?.message}
          onChange={(event) => {
            setName(event.currentTarget.value)
            creation.reset()
          }}
          data-autofocus
        />
        <TextInput
          label={TEXT.description}
          value={description}
          onChange={(event) => setDescription(event.currentTarget.value)}
        />
        <div>
          <Text size="sm" fw={500} mb={4}>
            {TEXT.startWith}
          </Text>
          <Choice
            label={TEXT.startWith}
            options={Object.entries(TEXT.starts) as [Start, string][]}
            value={start}
            onChange={setStart}
          />
          <Text size="sm" c="dimmed" mt={6}>
            {TEXT.startHints[start]}
          </Text>
        </div>
      </Stack>
      <Group justify="flex-end" mt="lg">
        <Button variant="default" onClick={onClose}>
          {TEXT.cancel}
        </Button>
        <Button type="submit" loading={creation.isPending} disabled={name.trim() === ''}>
          {TEXT.create}
        </Button>
      </Group>
    </form>
  )
}
