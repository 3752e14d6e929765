import { getRouteApi, Link, Outlet, useNavigate, useParams } from '@tanstack/react-router'
import { DocumentationTabs } from '../reference/documentation-tabs.tsx'
import { FilterBar } from '../shared/filter-bar.tsx'
import { PageHeader, Panel } from '../shared/page.tsx'
import { withSearch } from '../shared/search.ts'
import { guideOf, searchGuides } from './guides-search.ts'
import { TEXT } from './text.ts'
import '../reference/reference.css'
import './guides.css'

const route = getRouteApi('/docs/guides')
const SEARCH_FIELD = {
  name: 'q',
  kind: 'search',
  label: TEXT.search,
  placeholder: TEXT.searchPlaceholder,
} as const

/** List and guide side by side; on a narrow screen one at a time, as the API reference. */
export function GuidesPage() {
  const { q = '' } = route.useSearch()
  // Without `from`: searching leaves the open guide open.
  const navigate = useNavigate()
  const openSlug = useParams({ strict: false }).guide
  const search = (text: string | undefined) =>
    void navigate({ to: '.', replace: true, search: (old) => withSearch(old, { q: text }) })
  return (
    <main
      className={openSlug === undefined ? 'reference' : 'reference reference-reading'}
      id="main"
      tabIndex={-1}
    >
      <nav className="reference-side" aria-label={TEXT.list}>
        <div className="reference-search">
          <DocumentationTabs open="guides" />
          <FilterBar
            fields={[SEARCH_FIELD]}
            values={{ q }}
            onChange={(_, value) => search(value)}
            onClear={() => search(undefined)}
          />
        </div>
        <GuideList q={q} openSlug={openSlug} />
      </nav>
      <div className="reference-main" key={openSlug}>
        <div className="page">
          <Outlet />
        </div>
      </div>
    </main>
  )
}

function GuideList({ q, openSlug }: { q: string; openSlug: string | undefined }) {
  const found = searchGuides(q)
  if (found.length === 0) return <p className="reference-nothing">{TEXT.nothing}</p>
  return found.map(({ name, guides }) => (
    <section key={name} aria-label={name}>
      <h2 className="guide-group">{name}</h2>
      <ul className="reference-links">
        {guides.map(({ slug, title }) => (
          <li key={slug}>
            <Link
              to="/docs/guides/$guide"
              params={{ guide: slug }}
              search={(old) => old}
              className="row-link guide-link"
              {...(slug === openSlug && { 'aria-current': 'page' as const })}
            >
              {title}
            </Link>
          </li>
        ))}
      </ul>
    </section>
  ))
}

export function GuidesStart() {
  return (
    <>
      <PageHeader title={TEXT.title} lead={TEXT.lead} />
      <Panel>
        <dl className="reference-facts">
          {TEXT.goals.map(([goal, slug]) => (
            <div key={slug}>
              <dt>{goal}</dt>
              <dd>
                <Link to="/docs/guides/$guide" params={{ guide: slug }} className="guide-goal">
                  {guideOf(slug)?.title}
                </Link>
              </dd>
            </div>
          ))}
        </dl>
      </Panel>
    </>
  )
}
