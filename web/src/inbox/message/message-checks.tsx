/** What receivers and mail programs would make of a captured message. Calls /sendwright/v1/inbox/:id/authentication and /html-check. */
import { Badge, Loader } from '@mantine/core'
import { queryOptions, useQuery } from '@tanstack/react-query'
import { type CapturedMessage, getJson } from '../../api.ts'
import type { HtmlCheck } from '../../api-types.ts'
import { countOf } from '../../base/format.ts'
import { valueOrThrow } from '../../queries.ts'
import { CheckList } from '../../shared/mail/message-check.tsx'
import { Panel } from '../../shared/page/page.tsx'
import { Failure } from '../../shared/page/states.tsx'
import { CHECK_TEXT as TEXT } from '../text.ts'

const OWN = '/sendwright/v1/inbox'

const authenticationQuery = (id: string) =>
  queryOptions({
    queryKey: ['inbox-authentication', id],
    queryFn: async ({ signal }) =>
      valueOrThrow(await getJson(`${OWN}/${encodeURIComponent(id)}/authentication`, signal)),
  })

const htmlCheckQuery = (id: string) =>
  queryOptions({
    queryKey: ['inbox-html-check', id],
    queryFn: async ({ signal }) =>
      valueOrThrow(await getJson(`${OWN}/${encodeURIComponent(id)}/html-check`, signal)),
    staleTime: Number.POSITIVE_INFINITY,
  })

export function MessageChecks({ message: { id, html } }: { message: CapturedMessage }) {
  return (
    <div className="inbox-checks">
      <Authentication id={id} />
      {html && <Programs id={id} />}
    </div>
  )
}

export function Authentication({ id }: { id: string }) {
  const { data, error, refetch } = useQuery(authenticationQuery(id))
  return (
    <Panel title={TEXT.authentication}>
      {error ? (
        <Failure title={TEXT.cannotCheck} error={error} retry={refetch} />
      ) : data === undefined ? (
        <Loader size="sm" aria-label={TEXT.checking} />
      ) : (
        <>
          <p className="dimmed inbox-check-lead">{TEXT.authenticationWhy}</p>
          <CheckList checks={data.checks} />
        </>
      )}
    </Panel>
  )
}

function Programs({ id }: { id: string }) {
  const { data, error, refetch } = useQuery(htmlCheckQuery(id))
  return (
    <Panel
      title={TEXT.programs}
      beside={
        data && (
          <Badge
            variant="light"
            tt="none"
            color={data.score >= 90 ? 'teal' : data.score >= 75 ? 'orange' : 'red'}
          >
            {TEXT.score(data.score)}
          </Badge>
        )
      }
    >
      {error ? (
        <Failure title={TEXT.cannotCheck} error={error} retry={refetch} />
      ) : data === undefined ? (
        <Loader size="sm" aria-label={TEXT.checking} />
      ) : (
        <Findings check={data} />
      )}
    </Panel>
  )
}

function Findings({ check: { findings, clients, features, data_of, complete } }: { check: HtmlCheck }) {
  return (
    <>
      <p className="dimmed inbox-check-lead">
        {TEXT.programsWhy(features, clients, data_of)} {!complete && TEXT.incomplete}
      </p>
      {findings.length === 0 && <p>{TEXT.noFindings}</p>}
      <ul className="inbox-findings">
        {findings.map((finding) => (
          <li key={finding.feature}>
            <details>
              <summary>
                <code className="breakable">{finding.feature}</code>{' '}
                <span className="dimmed">{TEXT.notIn(finding.unsupported, finding.partly, clients)}</span>
              </summary>
              <dl className="inbox-finding">
                <Programme name={TEXT.unsupportedIn} list={finding.unsupported_in} />
                <Programme name={TEXT.partlyIn} list={finding.partly_in} />
              </dl>
              <p className="dimmed">
                {countOf(finding.uses, 'use')} ·{' '}
                <a href={finding.url} target="_blank" rel="noopener noreferrer">
                  {TEXT.more}
                </a>
              </p>
            </details>
          </li>
        ))}
      </ul>
    </>
  )
}

const Programme = ({ name, list }: { name: string; list: readonly string[] }) =>
  list.length > 0 && (
    <div>
      <dt>{name}</dt>
      <dd>{list.join(', ')}</dd>
    </div>
  )
