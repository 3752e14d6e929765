/** The parts of a page of health: the score, what was looked at, and the steps of all in one order (docs/dashboard.md). */
import { Badge, Skeleton } from '@mantine/core'
import { queryOptions, type UseQueryResult } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { getJson } from '../../api.ts'
import type { HealthScore } from '../../api-types.ts'
import { valueOrThrow } from '../../queries.ts'
import { Panel } from '../page/page.tsx'
import { EmptyState } from '../page/states.tsx'
import { inOrder, type Level, rateSteps, type Step } from './steps.ts'
import { AREA_TEXT, TEXT } from './text.ts'
import './health.css'

export const HEALTH_KEY = 'health'

/** Listings of all domains that are looked up in blocklists. */
export const listedQuery = queryOptions({
  queryKey: [HEALTH_KEY, 'listed'],
  queryFn: async ({ signal }) =>
    valueOrThrow(await getJson('/v1/monitoring/domains?limit=1000', signal)).domains,
})

/** A part of the page: its steps, once they are known. */
export interface Part {
  name: string
  query: Pick<UseQueryResult, 'isPending' | 'error'>
  steps: readonly Step[] | undefined
  /** False: without a step it cannot be said that all is right. Default true. */
  isKnown?: boolean
}

const isComplaint = ({ id }: Step) => id === 'complaint_rate'
/** Bounces and complaints, of one score. */
export const rateParts = (
  query: Part['query'],
  score: HealthScore | null | undefined,
  domain?: string,
): Part[] => {
  const steps = score === undefined ? undefined : rateSteps((score ?? NOTHING_SENT).rates, domain)
  const isKnown = score != null && score.counters.delivered > 0
  return [
    { name: AREA_TEXT.bounces, query, isKnown, steps: steps?.filter((step) => !isComplaint(step)) },
    { name: AREA_TEXT.complaints, query, isKnown, steps: steps?.filter(isComplaint) },
  ]
}

const NOTHING_SENT = {
  rates: { bounce_rate: 0, complaint_rate: 0, trap_rate: 0, full_mailbox_rate: 0, bad_failure_rate: 0 },
}

/** The score, the steps of all parts in their order, and what was looked at. Shown together, so that nothing jumps. */
export function Parts(props: {
  score: Pick<UseQueryResult<HealthScore | null>, 'data' | 'isPending'> | undefined
  parts: readonly Part[]
  /** Asked as well, for what follows. */
  also?: Pick<UseQueryResult, 'isPending'>
  /** After the steps. */
  children?: ReactNode
}) {
  const { score, parts, also, children } = props
  if (parts.some(({ query }) => query.isPending) || score?.isPending || also?.isPending)
    return <Skeleton height={420} radius="lg" role="status" aria-label={TEXT.loading} />
  const steps = inOrder(parts.flatMap((part) => part.steps ?? []))
  const failed = parts.filter(({ query }) => query.error !== null)
  return (
    <>
      <div className="health-top">
        {score && <Score score={score.data ?? undefined} />}
        <Panel title={TEXT.areas}>
          <dl className="health-areas">
            {parts.map((part) => (
              <div key={part.name}>
                <dt>{part.name}</dt>
                <dd>
                  <AreaState part={part} />
                </dd>
              </div>
            ))}
          </dl>
        </Panel>
      </div>
      <Panel title={TEXT.next}>
        {failed.length > 0 && (
          <p className="dimmed breakable">
            {TEXT.partly} {[...new Set(failed.map(({ query }) => query.error?.message))].join('; ')}
          </p>
        )}
        {steps.length === 0 && failed.length === 0 ? (
          <EmptyState icon="check" title={TEXT.nothing}>
            {TEXT.nothingWhy}
          </EmptyState>
        ) : (
          <ol className="health-steps">
            {steps.map((step) => (
              <StepRow key={step.id} step={step} />
            ))}
          </ol>
        )}
      </Panel>
      {children}
    </>
  )
}

function AreaState({ part: { steps, isKnown = true } }: { part: Part }): ReactNode {
  const [color, label] =
    steps === undefined || (steps.length === 0 && !isKnown)
      ? ['gray', AREA_TEXT.unknown]
      : steps.length === 0
        ? ['teal', AREA_TEXT.fine]
        : [COLORS[inOrder(steps)[0]?.level ?? 'better'], AREA_TEXT.toDo(steps.length)]
  return (
    <Badge variant="light" tt="none" fw={550} color={color}>
      {label}
    </Badge>
  )
}

function Score({ score }: { score: HealthScore | undefined }) {
  return (
    <Panel title={TEXT.score}>
      {score === undefined || score.counters.delivered === 0 ? (
        <p className="dimmed">{TEXT.noMail}</p>
      ) : (
        <>
          <p className="health-score">
            <strong>{score.score}</strong> <span className="dimmed">{TEXT.of100}</span>
          </p>
          <p className="dimmed">{TEXT.delivered(score.counters.delivered.toLocaleString('en'))}</p>
        </>
      )}
    </Panel>
  )
}

const COLORS: Readonly<Record<Level, string>> = { now: 'red', soon: 'orange', better: 'gray' }

const StepRow = ({ step: { level, title, why, href } }: { step: Step }) => (
  <li className="health-step">
    <Badge variant="light" tt="none" fw={550} color={COLORS[level]}>
      {TEXT.levels[level]}
    </Badge>
    <div>
      <strong className="breakable">{title}</strong>
      <p className="breakable">{why}</p>
    </div>
    {href !== undefined && (
      <Link to={href as '/'} className="button-link" aria-label={`${TEXT.open}: ${title}`}>
        {TEXT.open}
      </Link>
    )}
  </li>
)
