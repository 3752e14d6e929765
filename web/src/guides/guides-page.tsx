/** The list of guides, with a search over their texts. Calls nothing. */
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useParams } from '@tanstack/react-router'
import { DocumentationFrame } from '../reference/documentation-frame.tsx'
import { PageHeader, Panel } from '../shared/page/page.tsx'
import { guideOf, searchGuides } from './guides-search.ts'
import { TEXT } from './text.ts'
import './guides.css'

const route = getRouteApi('/docs/guides')

export function GuidesPage() {
  const { q = '' } = route.useSearch()
  const openSlug = useParams({ strict: false }).guide
  return (
    <DocumentationFrame
      tab="guides"
      label={TEXT.list}
      search={{ label: TEXT.search, placeholder: TEXT.searchPlaceholder }}
      q={q}
      list={<GuideList q={q} openSlug={openSlug} />}
      openId={openSlug}
    />
  )
}

function GuideList({ q, openSlug }: { q: string; openSlug: string | undefined }) {
  const { data: texts } = useQuery({
    queryKey: ['guide-texts'],
    queryFn: async () => (await import('virtual:guide-texts')).texts,
    enabled: q !== '',
    staleTime: Number.POSITIVE_INFINITY,
    meta: { needsNoSession: true },
  })
  const found = searchGuides(q, texts)
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
