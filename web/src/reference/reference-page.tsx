/** The API reference: all operations by section, with search. Made from GET /openapi.json. */
import { Anchor, Skeleton } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, Outlet, useNavigate, useParams } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { Copyable } from '../shared/copyable.tsx'
import { PageHeader, Panel } from '../shared/page/page.tsx'
import { withSearch } from '../shared/page/search.ts'
import { Failure } from '../shared/page/states.tsx'
import { type Operation, type Reference, searchOperations } from './description.ts'
import { DocumentationFrame, NoSuchEntry } from './documentation-frame.tsx'
import { referenceQuery } from './reference-query.ts'
import { TEXT } from './text.ts'
import { Words } from './words.tsx'

const route = getRouteApi('/docs')

export function ReferencePage() {
  const { q = '' } = route.useSearch()
  const navigate = useNavigate()
  const openId = useParams({ strict: false }).operation
  const { data: reference, error, refetch } = useQuery(referenceQuery)
  const openFirst = (text: string) => {
    const first = reference && searchOperations(reference, text)[0]?.operations[0]
    if (first)
      void navigate({
        to: '/docs/$operation',
        params: { operation: first.id },
        search: (old) => withSearch(old, { q: text || undefined }),
      })
  }
  return (
    <DocumentationFrame
      tab="reference"
      label={TEXT.operations}
      search={{ label: TEXT.search, placeholder: TEXT.searchPlaceholder }}
      q={q}
      onEnter={openFirst}
      list={reference && <OperationList reference={reference} q={q} openId={openId} />}
      openId={openId}
      isBusy={reference === undefined && error === null}
    >
      {error !== null && <Failure title={TEXT.loadFailed} error={error} retry={refetch} />}
      {reference === undefined && error === null && <Skeleton height={260} radius="lg" />}
      {reference && <Outlet />}
    </DocumentationFrame>
  )
}

function OperationList(props: { reference: Reference; q: string; openId: string | undefined }) {
  const { reference, q, openId } = props
  const [toggled, setToggled] = useState<Readonly<Record<string, boolean>>>({})
  const openTag = openId === undefined ? undefined : reference.byId.get(openId)?.tag
  const found = q === '' ? reference.tags : searchOperations(reference, q)
  useEffect(() => {
    if (openId !== undefined)
      document.querySelector('.reference-link[aria-current]')?.scrollIntoView({ block: 'nearest' })
  }, [openId])
  if (found.length === 0) return <p className="reference-nothing">{TEXT.nothing}</p>
  return found.map(({ name, operations }) => {
    const isOpen = q !== '' || (toggled[name] ?? name === openTag)
    return (
      <section key={name} aria-label={name}>
        <h2 className="reference-tag">
          <button
            type="button"
            aria-expanded={isOpen}
            disabled={q !== ''}
            onClick={() => setToggled({ ...toggled, [name]: !isOpen })}
          >
            <span className="grow">{name}</span>
            <span className="dimmed">{operations.length}</span>
          </button>
        </h2>
        {isOpen && (
          <ul className="reference-links">
            {operations.map((operation) => (
              <OperationLink key={operation.id} operation={operation} isOpen={operation.id === openId} />
            ))}
          </ul>
        )}
      </section>
    )
  })
}

function OperationLink({ operation, isOpen }: { operation: Operation; isOpen: boolean }) {
  const { id, method, summary, path, deprecated } = operation
  return (
    <li>
      <Link
        to="/docs/$operation"
        params={{ operation: id }}
        search={(old) => old}
        className="row-link reference-link"
        data-deprecated={deprecated || undefined}
        title={`${method} ${path}`}
        {...(isOpen && { 'aria-current': 'page' as const })}
      >
        <span className="reference-method" data-method={method}>
          {method}
        </span>
        <span>{summary}</span>
      </Link>
    </li>
  )
}

/** What holds for all operations. */
export function ReferenceStart() {
  const { data: reference } = useQuery(referenceQuery)
  if (reference === undefined) return null
  return (
    <>
      <PageHeader title={TEXT.title} lead={TEXT.lead} />
      <Panel>
        <dl className="reference-facts">
          <Fact label={TEXT.base}>
            <Copyable text={reference.baseUrl} what={TEXT.baseWhat} />
          </Fact>
          <Fact label={TEXT.signIn}>
            <Words text={TEXT.signInWords} />
          </Fact>
          <Fact label={TEXT.machine}>
            <Anchor href="/openapi.json" underline="always" inherit>
              /openapi.json
            </Anchor>{' '}
            {TEXT.machineWords}
          </Fact>
          <Fact label={TEXT.count}>{reference.byId.size}</Fact>
          <Fact label={TEXT.keyboard}>
            <Words text={TEXT.keyboardWords} />
          </Fact>
        </dl>
      </Panel>
    </>
  )
}

function Fact({ label, children }: { label: string; children: React.ReactNode }) {
  return (
    <div>
      <dt>{label}</dt>
      <dd>{children}</dd>
    </div>
  )
}

export const NoSuchOperation = () => (
  <NoSuchEntry
    title={TEXT.title}
    what={TEXT.noSuch}
    why={TEXT.noSuchWhy}
    back={{ to: '/docs', label: TEXT.all }}
  />
)
