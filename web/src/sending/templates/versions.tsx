import { ActionIcon, Badge, Button } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { Confirm } from '../../base/confirm.tsx'
import { Icon } from '../../look/icons.tsx'
import { valueOrThrow } from '../../queries.ts'
import { useMay } from '../../session.ts'
import { useSending } from '../../shared/forms/use-sending.ts'
import { BUTTONS, type Column, DataTable } from '../../shared/page/data-table.tsx'
import { notify } from '../../shared/page/notices.tsx'
import { Panel } from '../../shared/page/page.tsx'
import { EmptyState } from '../../shared/page/states.tsx'
import { Time } from '../../shared/time.tsx'
import { activateVersion, deleteVersion, type Template, type VersionSummary } from './templates-api.ts'
import { TEMPLATES_KEY } from './templates-queries.ts'
import { TEXT } from './text.ts'

interface VersionsProps {
  template: Template & { versions: VersionSummary[] }
  domain: string
}

interface RowButtonsProps {
  version: VersionSummary
  /** Tag of the active version. */
  active: string | undefined
  /** Name of the template. */
  name: string
  search: { domain?: string }
  isActivating: boolean
  onActivate: () => void
  onDelete: () => void
}

function RowButtons({ version, active, name, search, isActivating, onActivate, onDelete }: RowButtonsProps) {
  const mayWrite = useMay({ area: 'templates', access: 'write' })
  return (
    <span className="row-buttons">
      {!version.active && active !== undefined && (
        <Button
          size="compact-sm"
          variant="subtle"
          renderRoot={(props) => (
            <Link
              {...props}
              to="/sending/templates/$name"
              params={{ name }}
              search={{ ...search, view: 'compare', version: active, with: version.tag }}
            />
          )}
        >
          {TEXT.compare}
        </Button>
      )}
      {mayWrite && !version.active && (
        <Button size="compact-sm" variant="light" loading={isActivating} onClick={onActivate}>
          {TEXT.activate}
        </Button>
      )}
      {mayWrite && (
        <ActionIcon
          variant="subtle"
          color="gray"
          aria-label={TEXT.deleteVersion(version.tag)}
          title={TEXT.deleteVersion(version.tag)}
          onClick={onDelete}
        >
          <Icon name="trash" size={16} />
        </ActionIcon>
      )}
    </span>
  )
}

export function Versions({ template, domain }: VersionsProps) {
  const [toDelete, setToDelete] = useState<string>()
  const queries = useQueryClient()
  const refresh = () => queries.invalidateQueries({ queryKey: [TEMPLATES_KEY, domain, template.name] })
  const activation = useSending({
    mutationFn: async ({ tag }: { tag: string; before: string | undefined }) =>
      valueOrThrow(await activateVersion(domain, template.name, tag)),
    async onSuccess(_, { tag, before }) {
      await refresh()
      notify({
        text: TEXT.activated(tag),
        ...(before !== undefined && { undo: () => activation.mutate({ tag: before, before: undefined }) }),
      })
    },
    onError: ({ message }) => notify({ text: message, tone: 'bad' }),
  })
  const removal = useSending({
    mutationFn: async (tag: string) => valueOrThrow(await deleteVersion(domain, template.name, tag)),
    async onSuccess(_, tag) {
      setToDelete(undefined)
      await refresh()
      notify({ text: TEXT.versionDeleted(tag) })
    },
  })
  const active = template.versions.find((version) => version.active)?.tag
  const search = domain === '' ? {} : { domain }
  const columns: Column<VersionSummary>[] = [
    {
      header: TEXT.version,
      cell: ({ tag }) => (
        <Link
          to="/sending/templates/$name"
          params={{ name: template.name }}
          search={{ ...search, version: tag }}
          className="row-link breakable"
        >
          {tag}
        </Link>
      ),
    },
    {
      header: TEXT.active,
      cell: (version) =>
        version.active ? (
          <Badge variant="light" color="teal" tt="none">
            {TEXT.active}
          </Badge>
        ) : (
          <span className="dimmed">–</span>
        ),
    },
    { header: TEXT.engine, cell: ({ mjml }) => TEXT.engines[mjml === '' ? 'handlebars' : 'mjml'] },
    {
      header: TEXT.comment,
      cell: ({ comment }) => <span className="dimmed breakable">{comment || '–'}</span>,
    },
    { header: TEXT.created, cell: ({ createdAt }) => <Time at={createdAt} as="age" /> },
    {
      ...BUTTONS,
      cell: (version) => (
        <RowButtons
          version={version}
          active={active}
          name={template.name}
          search={search}
          isActivating={activation.isPending && activation.variables.tag === version.tag}
          onActivate={() => activation.mutate({ tag: version.tag, before: active })}
          onDelete={() => setToDelete(version.tag)}
        />
      ),
    },
  ]
  return (
    <Panel flush>
      <DataTable
        label={TEXT.views.versions}
        columns={columns}
        rows={[...template.versions].reverse()}
        rowKey={({ id }) => id}
        empty={
          <EmptyState icon="file" title={TEXT.noVersion}>
            {TEXT.noVersionWhy}
          </EmptyState>
        }
      />
      <Confirm
        opened={toDelete !== undefined}
        title={TEXT.deleteVersion(toDelete ?? '')}
        consequence={TEXT.deleteVersionWhy}
        action={TEXT.deleteVersion(toDelete ?? '')}
        busy={removal.isPending}
        failure={removal.error?.message}
        onConfirm={() => toDelete !== undefined && removal.mutate(toDelete)}
        onClose={() => {
          setToDelete(undefined)
          removal.reset()
        }}
      />
    </Panel>
  )
}
