/**
 * One template with its versions and preview. Calls /v3/:domain/templates or /v4/templates, and
 * POST /sendwright/v1/templates/render.
 */
import { Alert, Badge, Button, NativeSelect, Skeleton } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { Icon } from '../../look/icons.tsx'
import { RefusedRequest } from '../../queries.ts'
import { useMay } from '../../session.ts'
import { Choice } from '../../shared/forms/choice.tsx'
import { Page, PageHeader } from '../../shared/page/page.tsx'
import { withSearch } from '../../shared/page/search.ts'
import { Failure } from '../../shared/page/states.tsx'
import { Compare } from './compare.tsx'
import { DeleteTemplate } from './delete-template.tsx'
import { Editor } from './editor.tsx'
import { RenameTemplate } from './rename-template.tsx'
import { SendTest } from './send-test.tsx'
import { draftOf, type Template, type VersionSummary } from './templates-api.ts'
import { versionQuery, versionsQuery } from './templates-queries.ts'
import type { TemplateView } from './templates-search.ts'
import { TEXT } from './text.ts'
import { Versions } from './versions.tsx'
import './templates.css'

const route = getRouteApi('/sending/templates/$name')

export default function TemplatePage() {
  const { name } = route.useParams()
  const { domain = '' } = route.useSearch()
  const template = useQuery(versionsQuery(domain, name))
  const isGone = template.error instanceof RefusedRequest && template.error.status === 404
  if (template.data !== undefined)
    return (
      <Page wide key={`${domain}/${name}`}>
        <Found template={template.data} domain={domain} />
      </Page>
    )
  return (
    <Page wide>
      <PageHeader title={name} back={{ to: '/sending/templates', label: TEXT.templates }} />
      {isGone ? (
        <Alert color="gray" title={TEXT.gone(name)} className="breakable">
          {TEXT.goneWhy}
        </Alert>
      ) : template.error !== null ? (
        <Failure title={TEXT.gone(name)} error={template.error} retry={template.refetch} />
      ) : (
        <Skeleton height={420} role="status" aria-label={TEXT.templates} />
      )}
    </Page>
  )
}

function Found({
  template,
  domain,
}: {
  template: Template & { versions: VersionSummary[] }
  domain: string
}) {
  const search = route.useSearch()
  const navigate = useNavigate({ from: '/sending/templates/$name' })
  const maySend = useMay({ area: 'messages:send', access: 'write' })
  const mayWrite = useMay({ area: 'templates', access: 'write' })
  const setRenaming = (renaming: boolean) =>
    void navigate({
      replace: true,
      search: (old) => withSearch(old, { rename: renaming ? 'yes' : undefined }),
    })
  const { versions } = template
  const active = versions.find((version) => version.active)
  const open = versions.find(({ tag }) => tag === search.version) ?? active
  const view = search.view ?? 'edit'
  const setTesting = (testing: boolean) =>
    void navigate({ replace: true, search: (old) => withSearch(old, { test: testing ? 'yes' : undefined }) })
  return (
    <>
      <PageHeader
        title={template.name}
        back={{ to: '/sending/templates', label: TEXT.templates }}
        lead={template.description || undefined}
        beside={
          <>
            <span className="tag">{domain === '' ? TEXT.ofAccount : domain}</span>
            {active && (
              <Badge variant="light" color="teal" tt="none">
                {TEXT.active}: {active.tag}
              </Badge>
            )}
          </>
        }
        actions={
          <>
            <DeleteTemplate name={template.name} domain={domain} />
            {mayWrite && (
              <Button variant="default" onClick={() => setRenaming(true)}>
                {TEXT.rename}
              </Button>
            )}
            {maySend && open && (
              <Button
                variant="default"
                leftSection={<Icon name="send" size={16} />}
                onClick={() => setTesting(true)}
              >
                {TEXT.sendTest}
              </Button>
            )}
          </>
        }
      />
      <div className="template-bar">
        <Choice
          label={TEXT.viewsLabel}
          options={Object.entries(TEXT.views) as [TemplateView, string][]}
          value={view}
          onChange={(chosen) => void navigate({ search: (old) => withSearch(old, { view: chosen }) })}
        />
        {view === 'edit' && open && (
          <NativeSelect
            size="sm"
            aria-label={TEXT.version}
            value={open.tag}
            data={versions.map(({ tag, active: isActive }) => ({
              value: tag,
              label: isActive ? `${tag} (${TEXT.active.toLowerCase()})` : tag,
            }))}
            onChange={(event) => {
              const version = event.currentTarget.value
              void navigate({ search: (old) => withSearch(old, { version }) })
            }}
          />
        )}
      </div>
      {view === 'versions' && <Versions template={template} domain={domain} />}
      {view === 'compare' && <Compare template={template} domain={domain} />}
      {view === 'edit' && <OpenVersion template={template} domain={domain} version={open} />}
      {mayWrite && search.rename === 'yes' && (
        <RenameTemplate template={template} domain={domain} onClose={() => setRenaming(false)} />
      )}
      {open && (
        <SendTest
          opened={search.test === 'yes' && maySend}
          onClose={() => setTesting(false)}
          template={template.name}
          domain={domain}
          tag={open.tag}
        />
      )}
    </>
  )
}

const NO_CONTENT = { engine: 'handlebars', content: '', headers: {}, sample: '' } as const

function OpenVersion(props: {
  template: Template & { versions: VersionSummary[] }
  domain: string
  version: VersionSummary | undefined
}) {
  const { template, domain, version } = props
  const content = useQuery(versionQuery(domain, template.name, version?.tag ?? ''))
  if (version === undefined)
    return (
      <>
        <Alert color="gray" title={TEXT.noVersion}>
          {TEXT.noVersionWhy}
        </Alert>
        <Editor template={template} domain={domain} version={undefined} stored={NO_CONTENT} />
      </>
    )
  if (content.data === undefined)
    return content.error === null ? (
      <Skeleton height={420} role="status" aria-label={TEXT.content} />
    ) : (
      <Failure title={version.tag} error={content.error} retry={content.refetch} />
    )
  return (
    <Editor
      key={version.id}
      template={template}
      domain={domain}
      version={version}
      stored={draftOf(content.data)}
    />
  )
}
