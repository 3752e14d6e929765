import { Link, Outlet, useNavigate } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { Icon } from '../look/icons.tsx'
import { FilterBar } from '../shared/page/filter-bar.tsx'
import { PageHeader } from '../shared/page/page.tsx'
import { withSearch } from '../shared/page/search.ts'
import { EmptyState } from '../shared/page/states.tsx'
import { DocumentationTabs } from './documentation-tabs.tsx'
import './reference.css'

export interface DocumentationFrameProps {
  tab: 'guides' | 'reference'
  /** Names the list. */
  label: string
  search: { label: string; placeholder: string }
  q: string
  /** Enter in the search field, with what was typed. */
  onEnter?: (text: string) => void
  list: ReactNode
  /** The page beside the list that is open; undefined: the introduction. */
  openId: string | undefined
  isBusy?: boolean
  /** Default: the open page. */
  children?: ReactNode
}

/** List and page side by side; on a narrow screen one at a time (the style sheet decides). */
export function DocumentationFrame(props: DocumentationFrameProps) {
  const { tab, label, search, q, onEnter, list, openId, isBusy, children = <Outlet /> } = props
  // Without `from`: searching leaves the open page open.
  const navigate = useNavigate()
  const change = (text: string | undefined) =>
    void navigate({ to: '.', replace: true, search: (old) => withSearch(old, { q: text }) })
  return (
    <main
      className={openId === undefined ? 'reference' : 'reference reference-reading'}
      aria-busy={isBusy}
      id="main"
      tabIndex={-1}
    >
      <nav className="reference-side" aria-label={label}>
        {/* biome-ignore lint/a11y/noStaticElementInteractions: Enter in the input within */}
        <div
          className="reference-search"
          onKeyDown={(event) => {
            if (event.key === 'Enter' && event.target instanceof HTMLInputElement)
              onEnter?.(event.target.value)
          }}
        >
          <DocumentationTabs open={tab} />
          <FilterBar
            fields={[{ name: 'q', kind: 'search', ...search }]}
            values={{ q }}
            onChange={(_, value) => change(value)}
            onClear={() => change(undefined)}
          />
        </div>
        {list}
      </nav>
      <div className="reference-main" key={openId}>
        <div className="page">{children}</div>
      </div>
    </main>
  )
}

/** In place of a page of the documentation that does not exist. */
export function NoSuchEntry(props: {
  title: string
  what: string
  why: string
  back: { to: string; label: string }
}) {
  const { title, what, why, back } = props
  return (
    <>
      <PageHeader title={title} />
      <EmptyState
        icon="search"
        title={what}
        action={
          <Link to={back.to as '/'} className="page-back">
            <Icon name="back" size={16} /> {back.label}
          </Link>
        }
      >
        {why}
      </EmptyState>
    </>
  )
}
