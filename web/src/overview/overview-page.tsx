import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { Page, PageHeader } from '../shared/page.tsx'
import { Counts } from './counts.tsx'
import { FirstSteps } from './first-steps.tsx'
import { NeedsHand } from './needs-hand.tsx'
import { Providers } from './providers.tsx'
import { TEXT } from './text.ts'
import './overview.css'

const route = getRouteApi('/overview')

export function OverviewPage() {
  const { curve = 'delivered' } = route.useSearch()
  const navigate = useNavigate({ from: '/overview' })
  return (
    <Page wide>
      <PageHeader title={TEXT.title} lead={TEXT.lead} />
      <FirstSteps />
      <NeedsHand />
      <Counts curve={curve} onCurve={(id) => void navigate({ search: { curve: id }, replace: true })} />
      <Providers />
    </Page>
  )
}
