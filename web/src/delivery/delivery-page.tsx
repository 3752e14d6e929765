/**
 * Delivery: what waits and why, by provider, domain or reason, and the queue actions for it. Calls GET /sendwright/v1/queue.
 */
import { Badge, Button, SegmentedControl } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { Icon } from '../look/icons.tsx'
import { useMay } from '../session.ts'
import { Count } from '../shared/copyable.tsx'
import { BUTTONS, type Column, DataTable } from '../shared/page/data-table.tsx'
import { FilterBar } from '../shared/page/filter-bar.tsx'
import { Page, PageHeader, Panel } from '../shared/page/page.tsx'
import { EmptyState } from '../shared/page/states.tsx'
import { siteName } from '../shared/site-names.ts'
import { Time } from '../shared/time.tsx'
import {
  heldContentQuery,
  type Lane,
  lanesQuery,
  type QueueDomain,
  type QueueFilter,
  queueDomainsQuery,
} from './delivery-api.ts'
import { type DeliverySearch, VIEWS, type View } from './delivery-search.ts'
import { HeldContentPanel } from './held-content.tsx'
import { LimitsWindow, OrderButtons, StoppedState, StopWindow, useMayOrder } from './orders/order-windows.tsx'
import { QueueActionWindow } from './queue-action.tsx'
import { TEXT } from './text.ts'
import { UnknownRepliesPanel } from './unknown-replies.tsx'
import './delivery.css'

const route = getRouteApi('/delivery')
const SHOWN_MAX = 200 // more rows are slow to draw; the search finds the others

export default function DeliveryPage() {
  const search = route.useSearch()
  const { view = 'lanes', q = '' } = search
  const navigate = useNavigate()
  const mayAct = useMay({ area: 'domains', access: 'write' })
  const go = (next: DeliverySearch) => void navigate({ to: '/delivery', replace: true, search: next })
  const here: DeliverySearch = { ...(q !== '' && { q }), ...(view !== 'lanes' && { view }) }
  const setView = (value: string) => {
    const chosen = VIEWS.find((each) => each === value && each !== 'lanes')
    go({ ...(q !== '' && { q }), ...(chosen && { view: chosen }) })
  }
  const setQuery = (value: string | undefined) =>
    go({ ...(view !== 'lanes' && { view }), ...(value !== undefined && { q: value }) })
  // What has come must not be moved by what comes later: above the queues first, below them last.
  const held = useQuery(heldContentQuery)
  const lanes = useQuery(lanesQuery)
  const domains = useQuery({ ...queueDomainsQuery, enabled: view !== 'lanes' })
  const isLoading = view === 'lanes' ? lanes.isPending : domains.isPending
  return (
    <Page wide>
      <PageHeader
        title={TEXT.title}
        lead={TEXT.lead}
        actions={
          mayAct && (
            <Button
              leftSection={<Icon name="truck" size={16} />}
              onClick={() => go({ ...search, act: 'pause' })}
            >
              {TEXT.act}
            </Button>
          )
        }
      />
      <Totals />
      <HeldContentPanel />
      {!held.isPending && (
        <>
          <FilterBar
            fields={[{ name: 'q', kind: 'search', label: TEXT.find }]}
            values={{ q }}
            onChange={(_, value) => setQuery(value)}
            onClear={() => setQuery(undefined)}
          >
            <SegmentedControl
              aria-label={TEXT.view}
              size="sm"
              value={view}
              onChange={setView}
              data={VIEWS.map((value) => ({ value, label: TEXT.views[value] }))}
            />
          </FilterBar>
          <Panel title={TEXT.views[view]} flush>
            {view === 'lanes' ? (
              <Lanes q={q} mayAct={mayAct} onOrder={(order) => go({ ...here, ...order })} />
            ) : (
              <Domains view={view} q={q} mayAct={mayAct} />
            )}
          </Panel>
        </>
      )}
      {!isLoading && <UnknownRepliesPanel />}
      {mayAct && search.act && (
        <QueueActionWindow search={{ ...search, act: search.act }} onChange={go} onClose={() => go(here)} />
      )}
      <OrderWindows search={search} onClose={() => go(here)} />
    </Page>
  )
}

/** The windows of orders for a site. */
function OrderWindows({ search, onClose }: { search: DeliverySearch; onClose: () => void }) {
  const mayOrder = useMayOrder()
  const { stop, limits } = search
  const { data } = useQuery({ ...lanesQuery, enabled: mayOrder && (stop ?? limits) !== undefined })
  if (!mayOrder || data === undefined) return null
  const laneOf = (site: string) => data.find((lane) => lane.site === site)
  if (stop !== undefined) return <StopWindow site={stop} onClose={onClose} />
  if (limits === undefined) return null
  const override = laneOf(limits)?.override ?? null
  return <LimitsWindow site={limits} override={override} onClose={onClose} />
}

function Totals() {
  const { data } = useQuery(lanesQuery)
  const sum = (of: (lane: Lane) => number) => data?.reduce((total, lane) => total + of(lane), 0)
  const totals: [string, number | undefined][] = [
    [TEXT.waiting, sum(({ queued }) => queued)],
    [TEXT.due, sum(({ due }) => due)],
    [TEXT.deferred, sum(({ deferred }) => deferred)],
    [TEXT.paused, sum(({ paused }) => paused)],
    [TEXT.lanesHeld, data?.filter(({ backed_off_until }) => backed_off_until !== null).length],
  ]
  return (
    <dl className="queue-totals panel">
      {totals.map(([label, value]) => (
        <div key={label}>
          <dt>{label}</dt>
          <dd>{value === undefined ? '–' : <Count value={value} />}</dd>
        </div>
      ))}
    </dl>
  )
}

/** Opens the window for an action on what the row stands for. */
function RowLink(props: { filter: QueueFilter; label: string; mayAct: boolean; children: ReactNode }) {
  const { filter, label, mayAct, children } = props
  const search = route.useSearch()
  if (!mayAct) return <strong className="breakable">{children}</strong>
  const { q, view } = search
  return (
    <Link
      to="/delivery"
      replace
      search={{ ...(q && { q }), ...(view && { view }), act: 'pause', ...filter }}
      className="row-link breakable"
      title={TEXT.actOn(label)}
    >
      {children}
    </Link>
  )
}

/** Lanes by provider, those with the most mail first. */
function groupsOf(lanes: readonly Lane[]) {
  const byQueued = (a: { queued: number }, b: { queued: number }) => b.queued - a.queued
  return [...Map.groupBy(lanes, ({ provider }) => provider)]
    .map(([provider, own]) => ({
      provider,
      lanes: own.sort((a, b) => byQueued(a, b) || (a.lane < b.lane ? -1 : 1)),
      queued: own.reduce((sum, { queued }) => sum + queued, 0),
    }))
    .sort((a, b) => byQueued(a, b) || (a.provider < b.provider ? -1 : 1))
}

function Lanes(props: {
  q: string
  mayAct: boolean
  onOrder: (order: Pick<DeliverySearch, 'stop' | 'limits'>) => void
}) {
  const { q, mayAct, onOrder } = props
  const mayOrder = useMayOrder()
  const { data, error, refetch } = useQuery(lanesQuery)
  const matching = data?.filter(({ lane, site, provider }) => includes(q, lane, siteName(site), provider))
  const groups = groupsOf(matching ?? [])
  const found = matching && groups.flatMap(({ lanes }) => lanes)
  /** A provider with one queue needs no heading. */
  const groupOf = ({ provider }: Lane) => {
    const group = groups.find((each) => each.provider === provider)
    if (group === undefined || group.lanes.length < 2) return undefined
    return { key: provider, heading: TEXT.group(provider, group.lanes.length, group.queued) }
  }
  const columns: Column<Lane>[] = [
    {
      header: TEXT.lane,
      means: TEXT.means.lane,
      width: '24%',
      cell: ({ lane, site, source }) => (
        <div className="lane-name">
          <RowLink filter={{ lane }} label={lane} mayAct={mayAct}>
            {siteName(site) || lane}
          </RowLink>
          <div className="dimmed queue-small breakable">{TEXT.from(source)}</div>
        </div>
      ),
    },
    { header: TEXT.state, cell: (lane) => <LaneStateCell lane={lane} />, width: '26%' },
    { header: TEXT.waiting, align: 'end', cell: ({ queued }) => <Count value={queued} /> },
    { header: TEXT.due, means: TEXT.means.due, align: 'end', cell: ({ due }) => <Count value={due} /> },
    {
      header: TEXT.deferred,
      means: TEXT.means.deferred,
      align: 'end',
      wideOnly: true,
      cell: ({ deferred }) => <Count value={deferred} />,
    },
    { header: TEXT.paused, align: 'end', cell: ({ paused }) => <Count value={paused} /> },
    {
      header: TEXT.connections,
      align: 'end',
      cell: ({ connections, limits }) => TEXT.connectionsOf(connections, limits.connections),
    },
    { header: TEXT.rate, means: TEXT.means.rate, cell: ({ limits }) => rateWords(limits) },
    {
      header: TEXT.oldestDue,
      wideOnly: true,
      cell: ({ oldest_due }) => (oldest_due === null ? '–' : <Time at={oldest_due} as="age" />),
    },
    ...(mayOrder
      ? [
          {
            ...BUTTONS,
            cell: (lane: Lane) => (
              <OrderButtons
                site={lane.site}
                name={lane.lane}
                override={lane.override}
                onStop={() => onOrder({ stop: lane.site })}
                onLimits={() => onOrder({ limits: lane.site })}
              />
            ),
          },
        ]
      : []),
  ]
  return (
    <>
      <DataTable
        label={TEXT.views.lanes}
        className="lanes-table"
        columns={columns}
        rows={found?.slice(0, SHOWN_MAX)}
        rowKey={({ lane }) => lane}
        groupOf={groupOf}
        error={error}
        retry={refetch}
        empty={<Nothing q={q} />}
      />
      <More count={(found?.length ?? 0) - SHOWN_MAX} />
    </>
  )
}

const rateWords = ({ messages_per_second, messages_per_connection }: Lane['limits']) =>
  [
    messages_per_second !== null && TEXT.perSecond(messages_per_second),
    messages_per_connection !== null && TEXT.perConnection(messages_per_connection),
  ]
    .filter(Boolean)
    .join(', ') || TEXT.noLimit

const LOOK = { variant: 'light', tt: 'none', fw: 550 } as const

const BLOCK_WORDS = { closed: TEXT.blocked, probing: TEXT.probing, listed: TEXT.listed } as const

function LaneStateCell({ lane }: { lane: Lane }) {
  const { override, blocked, backed_off_until, backed_off_why, connections, queued, paused } = lane
  if (override?.pause) return <StoppedState pause={override.pause} />
  if (blocked !== null)
    return (
      <HeldLane
        color="red"
        label={BLOCK_WORDS[blocked.state]}
        until={blocked.state === 'closed' ? blocked.until : null}
        why={blocked.reply}
      />
    )
  if (backed_off_until !== null)
    return <HeldLane color="orange" label={TEXT.backedOff} until={backed_off_until} why={backed_off_why} />
  if (connections > 0)
    return (
      <Badge {...LOOK} color="teal">
        {TEXT.delivering}
      </Badge>
    )
  return (
    <div>
      <Badge {...LOOK} color="gray">
        {queued > 0 && paused >= queued ? TEXT.allPaused : TEXT.idle}
      </Badge>
      <div className="dimmed queue-small">{idleReason(lane)}</div>
    </div>
  )
}

/** Why mail of a lane waits that nothing holds back. */
function idleReason({ queued, paused, due, deferred }: Lane): string {
  if (queued === 0) return TEXT.reasons.empty
  if (paused >= queued) return TEXT.reasons.paused
  if (due > 0) return TEXT.reasons.due
  return deferred > 0 ? TEXT.reasons.deferred(deferred) : TEXT.reasons.scheduled
}

function HeldLane(props: { color: string; label: string; until: string | null; why: string | null }) {
  const { color, label, until, why } = props
  return (
    <div>
      <Badge {...LOOK} color={color}>
        {label}
      </Badge>{' '}
      {until !== null && (
        <span className="queue-nowrap">
          {TEXT.until} <Time at={until} as="time" />
        </span>
      )}
      {why && <div className="dimmed queue-small breakable">{why}</div>}
    </div>
  )
}

function Domains({ view, q, mayAct }: { view: Exclude<View, 'lanes'>; q: string; mayAct: boolean }) {
  const { data, error, refetch } = useQuery(queueDomainsQuery)
  const isDestinations = view === 'destinations'
  const found = (isDestinations ? data?.recipient : data?.sending)?.filter(({ domain }) =>
    includes(q, domain),
  )
  const columns: Column<QueueDomain>[] = [
    {
      header: isDestinations ? TEXT.recipientDomain : TEXT.sendingDomain,
      cell: ({ domain }) => (
        <RowLink
          filter={isDestinations ? { recipient_domain: domain } : { domain }}
          label={domain}
          mayAct={mayAct}
        >
          {domain}
        </RowLink>
      ),
    },
    { header: TEXT.waiting, align: 'end', cell: ({ queued }) => <Count value={queued} /> },
    { header: TEXT.deferred, align: 'end', cell: ({ deferred }) => <Count value={deferred} /> },
    { header: TEXT.paused, align: 'end', cell: ({ paused }) => <Count value={paused} /> },
    {
      header: TEXT.oldest,
      align: 'end',
      cell: ({ oldest }) => (oldest === null ? '–' : <Time at={oldest} as="age" />),
    },
  ]
  return (
    <>
      <DataTable
        label={TEXT.views[view]}
        columns={columns}
        rows={found?.slice(0, SHOWN_MAX)}
        rowKey={({ domain }) => domain}
        error={error}
        retry={refetch}
        empty={<Nothing q={q} />}
      />
      <More count={(found?.length ?? 0) - SHOWN_MAX} />
    </>
  )
}

const includes = (q: string, ...texts: readonly string[]) =>
  texts.some((text) => text.toLowerCase().includes(q.toLowerCase()))

const More = ({ count }: { count: number }) =>
  count > 0 ? <p className="dimmed queue-more">{TEXT.more(count)}</p> : null

function Nothing({ q }: { q: string }) {
  return q === '' ? (
    <EmptyState icon="check" title={TEXT.nothing}>
      {TEXT.nothingWhy}
    </EmptyState>
  ) : (
    <EmptyState icon="search" title={TEXT.nothingFound(q)}>
      {TEXT.nothingFoundWhy}
    </EmptyState>
  )
}
