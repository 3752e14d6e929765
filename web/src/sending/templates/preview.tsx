import { Alert, Skeleton } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useMemo } from 'react'
import { Choice } from '../../shared/forms/choice.tsx'
import { useChosenDomain } from '../../shared/forms/domain-choice.tsx'
import { MessageCheck } from '../../shared/mail/message-check.tsx'
import { frameDocument, readHtml } from '../../shared/mail/safe-html.ts'
import { Panel } from '../../shared/page/page.tsx'
import { Failure } from '../../shared/page/states.tsx'
import { Marked, markHoles } from './holes.tsx'
import { withoutHoles } from './sample.ts'
import type { Draft, Rendered } from './templates-api.ts'
import { renderQuery } from './templates-queries.ts'
import type { PreviewKind } from './templates-search.ts'
import { TEXT } from './text.ts'

const route = getRouteApi('/sending/templates/$name')
const NO_IMAGES: ReadonlyMap<string, string> = new Map()

interface PreviewProps {
  draft: Draft
  /** Undefined: they cannot be read, and the last picture stays. */
  variables: Record<string, unknown> | undefined
}

/** The draft as a recipient would see it, made by the service that sends it. */
export function Preview({ draft, variables }: PreviewProps) {
  const { show = 'desk' } = route.useSearch()
  const navigate = useNavigate({ from: '/sending/templates/$name' })
  const { data, error, refetch } = useQuery(renderQuery(draft, variables))
  return (
    <Panel
      title={TEXT.preview}
      beside={
        <Choice<PreviewKind>
          label={TEXT.preview}
          size="xs"
          options={Object.entries(TEXT.previewKinds) as [PreviewKind, string][]}
          value={show}
          onChange={(chosen) => void navigate({ replace: true, search: (old) => ({ ...old, show: chosen }) })}
        />
      }
      flush
    >
      {error !== null && <Failure title={TEXT.preview} error={error} retry={refetch} />}
      {data === undefined && error === null && <Loading show={show} />}
      {data && <Picture rendered={data} show={show} />}
    </Panel>
  )
}

/** Has the size that the picture will have, so that nothing below it jumps. */
function Loading({ show }: { show: PreviewKind }) {
  return (
    <>
      <div className="preview-subject">
        <Skeleton height={22} width="40%" />
      </div>
      <div className="template-stage">
        <Skeleton className="template-frame" data-show={show} />
      </div>
    </>
  )
}

/** Checks the draft as a message to its own author; a template of the account is checked for the first domain. */
export function DraftCheck({ domain, draft, variables }: PreviewProps & { domain: string }) {
  const { data } = useQuery(renderQuery(draft, variables))
  const sender = useChosenDomain(domain === '' ? undefined : domain)
  const isReady = data !== undefined && variables !== undefined && data.errors.length === 0
  const form = () => {
    const fields = new FormData()
    const filled = (text: string | null | undefined) => withoutHoles(text ?? '', data?.missing ?? [])
    const from = filled(data?.headers['From']) || `postmaster@${sender}`
    fields.append('from', from)
    fields.append('to', from)
    fields.append('subject', filled(data?.subject))
    fields.append('html', filled(data?.html))
    fields.append('text', filled(data?.text))
    return fields
  }
  return (
    <MessageCheck domain={sender} form={form} version={JSON.stringify([sender, data])} disabled={!isReady} />
  )
}

function Picture({ rendered, show }: { rendered: Rendered; show: PreviewKind }) {
  const { html, text, subject, headers, errors, missing } = rendered
  // Images of other hosts are loaded: they are the author's own.
  const srcDoc = useMemo(() => {
    const content = readHtml(html)
    markHoles(content.document, missing)
    return frameDocument(content, NO_IMAGES, true)
  }, [html, missing])
  if (errors.length > 0)
    return (
      <Alert color="red" title={TEXT.cannotRender} role="alert" m="md">
        {errors.map((error) => (
          <div key={error} className="breakable">
            {error}
          </div>
        ))}
      </Alert>
    )
  return (
    <>
      <div className="preview-subject">
        <strong className="breakable">
          {subject ? <Marked text={subject} missing={missing} /> : TEXT.noSubject}
        </strong>
        {headers['From'] && (
          <span className="dimmed breakable">
            <Marked text={headers['From']} missing={missing} />
          </span>
        )}
      </div>
      {show === 'text' ? (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard
        <section className="template-text" tabIndex={0} aria-label={TEXT.previewKinds.text}>
          <Marked text={text} missing={missing} />
        </section>
      ) : (
        <div className="template-stage">
          <iframe
            className="template-frame"
            data-show={show}
            title={TEXT.previewOf}
            sandbox=""
            referrerPolicy="no-referrer"
            srcDoc={srcDoc}
          />
        </div>
      )}
    </>
  )
}
