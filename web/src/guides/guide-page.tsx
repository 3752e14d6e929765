/** One guide of docs/, made into a page at build. Calls nothing. */
import { Skeleton } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, useLocation, useRouter } from '@tanstack/react-router'
import { type MouseEvent, useEffect } from 'react'
import type { GuidePart } from '../../guides.ts'
import { CopyButton } from '../base/copy-button.tsx'
import { NoSuchEntry } from '../reference/documentation-frame.tsx'
import { PageHeader } from '../shared/page/page.tsx'
import { Failure } from '../shared/page/states.tsx'
import { guideOf } from './guides-search.ts'
import { TEXT } from './text.ts'

const route = getRouteApi('/docs/guides/$guide')
const back = { to: '/docs/guides', label: TEXT.all }

export function GuidePage() {
  const { guide: slug } = route.useParams()
  const guide = guideOf(slug)
  const { hash } = useLocation()
  const { data, error, refetch } = useQuery({
    queryKey: ['guide', slug],
    queryFn: async () => (await guide?.load()) ?? { parts: [] },
    enabled: guide !== undefined,
    staleTime: Number.POSITIVE_INFINITY,
    meta: { needsNoSession: true },
  })
  useEffect(() => {
    if (data && hash !== '') document.getElementById(hash)?.scrollIntoView()
  }, [data, hash])
  if (guide === undefined)
    return <NoSuchEntry title={TEXT.title} what={TEXT.noSuch} why={TEXT.noSuchWhy} back={back} />
  return (
    <article className="guide">
      <PageHeader title={guide.title} back={back} />
      {error !== null && <Failure title={TEXT.loadFailed} error={error} retry={refetch} />}
      {data === undefined && error === null && <Skeleton height={320} radius="lg" />}
      {data?.parts.map((part, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a guide never change
        <Part key={at} part={part} />
      ))}
    </article>
  )
}

function Part({ part }: { part: GuidePart }) {
  const router = useRouter()
  if (part.kind === 'code')
    return (
      <div className="guide-code">
        <pre>{part.text}</pre>
        <CopyButton text={part.text} what={TEXT.codeWhat(part.language)} />
      </div>
    )
  /** Opens other guides without loading the dashboard anew. */
  const follow = (event: MouseEvent) => {
    const link = event.target instanceof Element ? event.target.closest('a') : null
    const href = link?.getAttribute('href')
    if (!href?.startsWith('/') || event.ctrlKey || event.metaKey || event.shiftKey) return
    event.preventDefault()
    void router.navigate({ href })
  }
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: its links are reached by keyboard
    // biome-ignore lint/a11y/useKeyWithClickEvents: Enter on a link is a click
    <div
      onClick={follow}
      // biome-ignore lint/security/noDangerouslySetInnerHtml: made from our own files, with markup escaped
      dangerouslySetInnerHTML={{ __html: part.html }}
    />
  )
}
