/** All domains of the account with their state. Calls GET /v4/domains. */
import { Button, CloseButton, Skeleton, TextInput } from '@mantine/core'
import { useInfiniteQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { countOf, exactTime, shortDate } from '../base/format.ts'
import { useTyped } from '../base/use-typed.ts'
import { Icon } from '../look/icons.tsx'
import { useMay } from '../session.ts'
import { AddButton } from '../shared/forms/add-button.tsx'
import { Page, PageHeader } from '../shared/page/page.tsx'
import { EmptyState, Failure } from '../shared/page/states.tsx'
import { AddDomain } from './add-domain.tsx'
import { domainPagesQuery } from './domain-queries.ts'
import type { ListedDomain } from './domains-api.ts'
import { DomainStateBadge } from './state-badge.tsx'
import { LIST_TEXT as TEXT } from './text.ts'
import './domains.css'

const route = getRouteApi('/domains')

export default function DomainsPage() {
  const { q = '', add } = route.useSearch()
  const navigate = useNavigate()
  const mayAdd = useMay({ area: 'domains', access: 'write' })
  const setAdding = (adding: boolean) =>
    void navigate({
      to: '/domains',
      replace: true,
      search: { ...(q !== '' && { q }), ...(adding && { add: 'yes' as const }) },
    })
  const list = useInfiniteQuery(domainPagesQuery(q))
  const pages = list.data?.pages
  const domains = pages?.flatMap(({ items }) => items)
  const addButton = mayAdd && <AddButton label={TEXT.add} onClick={() => setAdding(true)} />
  return (
    <Page>
      <PageHeader
        title={TEXT.title}
        lead={TEXT.lead}
        beside={
          pages ? (
            <span className="dimmed">{countOf(pages[0]?.total_count ?? 0, 'domain')}</span>
          ) : (
            <Skeleton height="1em" width="6em" />
          )
        }
        actions={addButton}
      />
      <SearchInput applied={q} />
      {list.error !== null && (
        <Failure title={TEXT.unreadable} error={list.error} retry={() => void list.refetch()} />
      )}
      {domains === undefined && list.error === null && <Loading />}
      {domains !== undefined && domains.length > 0 && <DomainRows domains={domains} />}
      {domains?.length === 0 && (
        <div className="panel">
          {q === '' ? (
            <EmptyState icon="globe" title={TEXT.none} action={addButton}>
              {TEXT.noneWhy}
            </EmptyState>
          ) : (
            <EmptyState icon="search" title={TEXT.noneFound(q)} />
          )}
        </div>
      )}
      {list.hasNextPage && (
        <div className="domains-more">
          <Button
            variant="default"
            loading={list.isFetchingNextPage}
            onClick={() => void list.fetchNextPage()}
          >
            {TEXT.more}
          </Button>
        </div>
      )}
      <AddDomain opened={add === 'yes' && mayAdd} onClose={() => setAdding(false)} />
    </Page>
  )
}

function SearchInput({ applied }: { applied: string }) {
  const navigate = useNavigate()
  const [typed, change] = useTyped(applied, (value) => {
    void navigate({ to: '/domains', replace: true, search: value === '' ? {} : { q: value } })
  })
  return (
    <TextInput
      type="search"
      aria-label={TEXT.search}
      placeholder={TEXT.search}
      value={typed}
      onChange={(event) => change(event.currentTarget.value)}
      data-search
      leftSection={<Icon name="search" size={16} />}
      rightSection={
        typed !== '' && <CloseButton size="sm" aria-label={TEXT.clear} onClick={() => change('')} />
      }
    />
  )
}

function DomainRows({ domains }: { domains: readonly ListedDomain[] }) {
  return (
    <ul className="domain-rows panel">
      {domains.map(({ name, state, type, created_at }) => (
        <li key={name}>
          <Link to="/domains/$name" params={{ name }} className="domain-row row-link">
            <span className="domain-row-name breakable">
              {name} {type === 'sandbox' && <span className="tag">{TEXT.sandbox}</span>}
            </span>
            <DomainStateBadge state={state} />
            <time dateTime={created_at} title={exactTime(Date.parse(created_at))}>
              {shortDate(Date.parse(created_at))}
            </time>
          </Link>
        </li>
      ))}
    </ul>
  )
}

function Loading() {
  return (
    <div className="panel domains-loading" role="status" aria-label={TEXT.loading}>
      <Skeleton height={16} width="40%" />
      <Skeleton height={16} width="52%" />
      <Skeleton height={16} width="34%" />
    </div>
  )
}
