/**
 * The first page: steps that are left, what needs attention, counts and providers. Each part asks for itself and may fail alone.
 */
import { Skeleton } from '@mantine/core'
import { useQueries, useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useRef } from 'react'
import { useMay } from '../session.ts'
import { Page, PageHeader } from '../shared/page/page.tsx'
import { Counts } from './counts.tsx'
import { FirstSteps } from './first-steps.tsx'
import { NeedsHand } from './needs-hand.tsx'
import {
  alertsQuery,
  anyWebhookQuery,
  attemptsQuery,
  blockedDomainsQuery,
  daysQuery,
  lanesQuery,
  ordersQuery,
  ownDomainsQuery,
  READS_ORDERS,
} from './overview-queries.ts'
import { Providers } from './providers.tsx'
import { TEXT } from './text.ts'
import './overview.css'

const route = getRouteApi('/overview')

export default function OverviewPage() {
  const { curve = 'delivered' } = route.useSearch()
  const navigate = useNavigate({ from: '/overview' })
  const isReady = useReady()
  const days = useQuery(daysQuery)
  return (
    <Page wide>
      <PageHeader title={TEXT.title} lead={TEXT.lead} />
      {isReady ? (
        <>
          <FirstSteps />
          <NeedsHand />
          <Counts curve={curve} onCurve={(id) => void navigate({ search: { curve: id }, replace: true })} />
          {/* Below what is shorter when it fails. */}
          {!days.isPending && <Providers />}
        </>
      ) : (
        <Skeleton height={560} radius="lg" role="status" aria-label="Loading" />
      )}
    </Page>
  )
}

/**
 * Whether what decides the height of the upper parts is known (or refused). They are shown together: one after another
 * they would push each other down while somebody reads.
 */
function useReady(): boolean {
  const domains = useQuery(ownDomainsQuery)
  const webhook = useQuery({
    ...anyWebhookQuery(domains.data?.newest),
    enabled: domains.data !== undefined,
  })
  const mayReadAlerts = useMay({ area: 'alerts' })
  const alerts = useQuery({ ...alertsQuery, enabled: mayReadAlerts })
  const others = useQueries({
    queries: [daysQuery, blockedDomainsQuery, attemptsQuery, lanesQuery] as const,
    combine: (results) => results.every(({ isPending }) => !isPending),
  })
  const mayReadOrders = useMay(READS_ORDERS)
  const orders = useQuery({ ...ordersQuery, enabled: mayReadOrders })
  const isReady =
    others &&
    (!mayReadAlerts || !alerts.isPending) &&
    (domains.error !== null || !webhook.isPending) &&
    (!mayReadOrders || !orders.isPending)
  // The parts ask again for what has failed as they appear: without this, they would go away again, for ever.
  const wasReady = useRef(false)
  if (isReady) wasReady.current = true
  return wasReady.current
}
