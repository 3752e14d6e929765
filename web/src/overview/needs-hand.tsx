/** What needs a hand now, each with the button that mends it. */
import { Button, Skeleton, Text } from '@mantine/core'
import { type UseQueryResult, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { useNow } from '../base/use-now.ts'
import { Icon, type IconName } from '../look/icons.tsx'
import { valueOrThrow } from '../queries.ts'
import { useMay, useSession } from '../session.ts'
import { useSending } from '../shared/forms/use-sending.ts'
import { notify } from '../shared/page/notices.tsx'
import { Panel } from '../shared/page/page.tsx'
import { Failure } from '../shared/page/states.tsx'
import { ResumeSite } from '../shared/resume-site.tsx'
import { siteName } from '../shared/site-names.ts'
import { standingQuery } from '../shared/standing-api.ts'
import { ORDER_TEXT } from '../shared/text.ts'
import { Time } from '../shared/time.tsx'
import {
  alarmsOf,
  type FailingWebhook,
  failingWebhooks,
  type StoppedSite,
  stoppedSites,
  stuckLanes,
} from './needs.ts'
import { type Lane, replayAttempt, retryLane } from './overview-api.ts'
import {
  alertsQuery,
  attemptsQuery,
  blockedDomainsQuery,
  lanesQuery,
  ordersQuery,
  READS_ORDERS,
} from './overview-queries.ts'
import { TEXT } from './text.ts'

export function NeedsHand() {
  const mayReadAlerts = useMay({ area: 'alerts' })
  const domains = useQuery(blockedDomainsQuery)
  const alerts = useQuery({ ...alertsQuery, enabled: mayReadAlerts })
  const attempts = useQuery(attemptsQuery)
  const lanes = useQuery(lanesQuery)
  const mayReadOrders = useMay(READS_ORDERS)
  const standing = useQuery(standingQuery(useSession().account.id))
  const orders = useQuery({ ...ordersQuery, enabled: mayReadOrders })
  const now = useNow()
  const asked: UseQueryResult<unknown>[] = [
    ...[domains, attempts, lanes],
    ...(mayReadAlerts ? [alerts] : []),
    ...(mayReadOrders ? [orders] : []),
  ]
  const failed = asked.find(({ error, data }) => error !== null && data === undefined)
  const retryFailed = () =>
    Promise.all(asked.filter(({ error }) => error !== null).map(({ refetch }) => refetch()))
  if (asked.some(({ data, error }) => data === undefined && error === null))
    return <Skeleton height={112} radius="lg" role="status" aria-label="Loading" />
  const stopped = stoppedSites(orders.data?.overrides ?? [], lanes.data ?? [], now)
  const items: ReactNode[] = [
    ...(domains.data?.disabled.items ?? []).map(({ name }) => (
      <DomainItem key={`disabled ${name}`} name={name} title={TEXT.disabled(name)} action={TEXT.open} />
    )),
    ...(standing.data?.stopped ?? []).map(({ domain, state, reason, since }) => (
      <Item
        key={`standing ${domain}`}
        icon="warning"
        title={TEXT.standing[state](domain)}
        why={reason}
        since={since}
      />
    )),
    ...alarmsOf(alerts.data?.system ?? [], alerts.data?.hits ?? []).map(({ key, title, advice, since }) => (
      <Item key={key} icon="warning" title={title} why={advice} {...(since && { since })} />
    )),
    ...failingWebhooks(attempts.data ?? []).map((failing) => (
      <WebhookItem key={`${failing.domain} ${failing.url}`} failing={failing} />
    )),
    ...stopped.map((each) => <StoppedItem key={`stopped ${each.site}`} stopped={each} />),
    ...stuckLanes(lanes.data ?? [], now, stopped).map((lane) => (
      <LaneItem key={`${lane.source}/${lane.site}`} lane={lane} />
    )),
    ...(domains.data?.unverified.items ?? []).map(({ name }) => (
      <DomainItem key={name} name={name} title={TEXT.records(name)} action={TEXT.openRecords} />
    )),
  ]
  const more = (domains.data?.unverified.total_count ?? 0) - (domains.data?.unverified.items.length ?? 0)
  return (
    <Panel title={TEXT.hand} flush>
      {failed?.error && <Failure title={TEXT.hand} error={failed.error} retry={retryFailed} />}
      {items.length === 0 && !failed && (
        <p className="hand-well">
          <Icon name="check" size={18} /> {TEXT.allWell}
        </p>
      )}
      <ul className="hand-items">
        {items}
        {more > 0 && (
          <Item icon="globe" title={TEXT.moreDomains(more)}>
            <ButtonLink to="/domains" words={TEXT.showDomains} />
          </Item>
        )}
      </ul>
    </Panel>
  )
}

function Item(props: {
  icon: IconName
  title: string
  why?: ReactNode
  since?: string
  children?: ReactNode
}) {
  const { icon, title, why, since, children } = props
  return (
    <li className="hand-item">
      <span className="hand-icon">
        <Icon name={icon} size={18} />
      </span>
      <span className="hand-words">
        <span className="hand-title breakable">{title}</span>
        {(why || since) && (
          <span className="dimmed">
            {why}
            {since && (
              <>
                {' · '}
                {TEXT.since_} <Time at={since} as="age" />
              </>
            )}
          </span>
        )}
      </span>
      {children}
    </li>
  )
}

function ButtonLink({ to, words }: { to: '/domains'; words: string }) {
  return (
    <Button size="xs" variant="default" renderRoot={(props) => <Link {...props} to={to} />}>
      {words}
    </Button>
  )
}

function DomainItem({ name, title, action }: { name: string; title: string; action: string }) {
  return (
    <Item icon="globe" title={title}>
      <Button
        size="xs"
        variant="default"
        aria-label={`${action}: ${name}`}
        renderRoot={(props) => <Link {...props} to="/domains/$name" params={{ name }} />}
      >
        {action}
      </Button>
    </Item>
  )
}

function WebhookItem({ failing }: { failing: FailingWebhook }) {
  const { url, attemptIds, lastAnswer, since } = failing
  const mayReplay = useMay({ area: 'domains', access: 'write' })
  const queries = useQueryClient()
  const replay = useSending({
    mutationFn: async () => {
      // One after another: an endpoint that has just failed is not flooded.
      for (const id of attemptIds) valueOrThrow(await replayAttempt(id))
      return attemptIds.length
    },
    onSuccess(count) {
      notify({ text: TEXT.replayed(count) })
      return queries.invalidateQueries({ queryKey: attemptsQuery.queryKey })
    },
  })
  return (
    <Item
      icon="hook"
      title={TEXT.webhook(url, attemptIds.length)}
      why={TEXT.webhookWhy(lastAnswer)}
      since={since}
    >
      {mayReplay && (
        <Button size="xs" variant="default" loading={replay.isPending} onClick={() => replay.mutate()}>
          {TEXT.replay}
        </Button>
      )}
      <Refusal error={replay.error} />
    </Item>
  )
}

function StoppedItem({ stopped: { site, pause, waiting } }: { stopped: StoppedSite }) {
  const mayResume = useMay({ area: 'domains', access: 'write', only: 'first' })
  const { reason, since, until } = pause
  return (
    <Item
      icon="pause"
      title={TEXT.stopped(siteName(site))}
      why={
        <>
          {[reason, TEXT.stoppedWaiting(waiting)].filter(Boolean).join(' · ')}
          {until !== null && (
            <>
              {' · '}
              {ORDER_TEXT.stoppedUntil} <Time at={until} />
            </>
          )}
        </>
      }
      since={since}
    >
      {mayResume && <ResumeSite site={site} pause={pause} />}
    </Item>
  )
}

function LaneItem({ lane }: { lane: Lane }) {
  const { source, site, queued, backed_off_why, oldest_due } = lane
  const mayRetry = useMay({ area: 'domains', access: 'write' })
  const queries = useQueryClient()
  const retry = useSending({
    mutationFn: async () => valueOrThrow(await retryLane(`${source}/${site}`)),
    onSuccess({ changed }) {
      notify({ text: TEXT.retried(changed) })
      return queries.invalidateQueries({ queryKey: lanesQuery.queryKey })
    },
  })
  return (
    <Item
      icon="clock"
      title={TEXT.waiting(queued, siteName(site), source)}
      why={backed_off_why ?? TEXT.since}
      {...(oldest_due !== null && { since: oldest_due })}
    >
      {mayRetry && (
        <Button size="xs" variant="default" loading={retry.isPending} onClick={() => retry.mutate()}>
          {TEXT.retry}
        </Button>
      )}
      <Refusal error={retry.error} />
    </Item>
  )
}

function Refusal({ error }: { error: Error | null }) {
  if (error === null) return null
  return (
    <Text size="sm" c="red" role="alert" className="hand-refusal">
      {error.message}
    </Text>
  )
}
