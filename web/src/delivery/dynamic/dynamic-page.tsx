/**
 * Dynamic pools: the bands with their addresses, enrolled domains and their history. Calls /v3/dynamic_pools and
 * /v1/dynamic_pools.
 */
import { Badge, Button, NativeSelect } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { useMay } from '../../session.ts'
import { Count } from '../../shared/copyable.tsx'
import { ActionButton, Refusal } from '../../shared/forms/action-button.tsx'
import { AddButton } from '../../shared/forms/add-button.tsx'
import { Choice } from '../../shared/forms/choice.tsx'
import { domainOptions } from '../../shared/forms/choices.ts'
import { useSending } from '../../shared/forms/use-sending.ts'
import { BUTTONS, type Column } from '../../shared/page/data-table.tsx'
import { FilterBar } from '../../shared/page/filter-bar.tsx'
import { ListPage } from '../../shared/page/list-page.tsx'
import { notify } from '../../shared/page/notices.tsx'
import { placeOf, placePath } from '../../shared/page/paging.ts'
import { withSearch } from '../../shared/page/search.ts'
import { EmptyState } from '../../shared/page/states.tsx'
import { Time } from '../../shared/time.tsx'
import { IPS_KEY } from '../ips/ips-api.ts'
import { TEXT as SECTION } from '../text.ts'
import {
  BANDS,
  type Band,
  type DynamicPool,
  type EnrolledDomain,
  enrollAll,
  enrolledPath,
  enrolledQuery,
  type HistoryRecord,
  historyPath,
  historyQuery,
  type ListOf,
  poolsQuery,
  removePools,
  setOverride,
} from './dynamic-api.ts'
import { type DynamicSearch, type DynamicView, SORTS, VIEWS } from './dynamic-search.ts'
import { EnrollForm, LeaveForm, SetsForm } from './dynamic-windows.tsx'
import { bandWords, rateWords, TEXT } from './text.ts'
import '../delivery.css'

const route = getRouteApi('/delivery/dynamic-pools')

export default function DynamicPage() {
  const search = route.useSearch()
  const { view = 'domains', open, leave } = search
  const navigate = useNavigate({ from: '/delivery/dynamic-pools' })
  const mayChange = useMay({ area: 'ips', access: 'write' })
  const isParent = useMay({ area: 'ips', access: 'write', only: 'parent' })
  const pools = useQuery(poolsQuery)
  const isSet = (pools.data ?? []).some(({ ips }) => ips.length > 0)
  const change: Change = (changes, replace = true) =>
    void navigate({ replace, search: (old) => withSearch(old, changes) })
  const show = (next: DynamicView) =>
    void navigate({ replace: true, search: next === 'domains' ? {} : { view: next } })
  const sets = isParent && (
    <Button variant={isSet ? 'default' : 'filled'} onClick={() => change({ open: 'sets' })}>
      {isSet ? TEXT.change : TEXT.set}
    </Button>
  )
  const frame: Frame = {
    title: TEXT.title,
    lead: TEXT.lead,
    back: { to: '/delivery', label: SECTION.title },
    actions: (
      <>
        {isSet && sets}
        {isSet && mayChange && <AddButton label={TEXT.enroll} onClick={() => change({ open: 'enroll' })} />}
      </>
    ),
    views: (
      <Choice
        label={TEXT.view}
        options={VIEWS.map((each) => [each, TEXT.views[each]] as const)}
        value={view}
        onChange={show}
      />
    ),
    windows: (
      <>
        {isParent && open === 'sets' && pools.data && (
          <SetsForm pools={pools.data} onClose={() => change({ open: undefined })} />
        )}
        {mayChange && open === 'enroll' && <EnrollForm onClose={() => change({ open: undefined })} />}
        {mayChange && leave !== undefined && (
          <LeaveForm key={leave} domain={leave} onClose={() => change({ leave: undefined })} />
        )}
      </>
    ),
  }
  if (view === 'history') return <History frame={frame} search={search} change={change} />
  if (view === 'pools' || (pools.data && !isSet))
    return <Sets frame={frame} pools={pools} isSet={isSet} button={sets} mayRemove={isParent} />
  return <Domains frame={frame} search={search} change={change} mayChange={mayChange} isParent={isParent} />
}

type Change = (
  changes: { [Name in keyof DynamicSearch]?: DynamicSearch[Name] | undefined },
  replace?: boolean,
) => void

interface Frame {
  title: string
  lead: string
  back: { to: string; label: string }
  actions: ReactNode
  views: ReactNode
  windows: ReactNode
}

/** The API's links, which are left out where there is no such page. */
const linksOf = (list: ListOf<unknown> | undefined) =>
  list && { previous: list.paging.Previous, next: list.paging.Next }

const COLORS: Record<Band, string> = { dynamic_good: 'teal', dynamic_new: 'blue', dynamic_poor: 'orange' }

const BandBadge = ({ band }: { band: Band | '' }) => (
  <Badge variant="light" tt="none" fw={550} color={band === '' ? 'gray' : COLORS[band]}>
    {bandWords(band)}
  </Badge>
)

function Domains(props: {
  frame: Frame
  search: DynamicSearch
  change: Change
  mayChange: boolean
  isParent: boolean
}) {
  const { frame, search, change, mayChange, isParent } = props
  const { windows, views, ...header } = frame
  const { pool = '', sort = '', at } = search
  const list = useQuery(enrolledQuery(placePath(enrolledPath(pool, sort), at)))
  const columns: Column<EnrolledDomain>[] = [
    {
      header: TEXT.domain,
      cell: ({ name, account_name }) => (
        <div>
          <strong className="breakable">{name}</strong>
          <div className="dimmed queue-small breakable">{account_name}</div>
        </div>
      ),
    },
    { header: TEXT.band, cell: ({ pool: band }) => <BandBadge band={band} /> },
    { header: TEXT.bounces, align: 'end', cell: ({ bounce_rate }) => rateWords(bounce_rate) },
    { header: TEXT.complaints, align: 'end', cell: ({ complaint_rate }) => rateWords(complaint_rate) },
    {
      header: TEXT.processed,
      align: 'end',
      cell: ({ processed_count }) => <Count value={processed_count} />,
    },
    {
      header: TEXT.choice,
      cell: (domain) =>
        mayChange ? (
          <BandChoice domain={domain} />
        ) : domain.override ? (
          TEXT.always(bandWords(domain.pool))
        ) : (
          TEXT.byChecks
        ),
    },
    ...(mayChange
      ? [
          {
            ...BUTTONS,
            cell: ({ name }: EnrolledDomain) => (
              <Button
                variant="default"
                size="xs"
                aria-label={TEXT.leaveOf(name)}
                onClick={() => change({ leave: name })}
              >
                {TEXT.leave}
              </Button>
            ),
          },
        ]
      : []),
  ]
  return (
    <ListPage
      {...header}
      above={
        <FilterBar
          fields={[
            {
              name: 'pool',
              kind: 'choice',
              label: TEXT.band,
              any: TEXT.anyBand,
              options: BANDS.map((band) => [band, TEXT.bands[band]] as const),
            },
            {
              name: 'sort',
              kind: 'choice',
              label: TEXT.sort,
              any: TEXT.sort,
              options: SORTS.map((each) => [each, TEXT.sorts[each]] as const),
            },
          ]}
          values={{ pool, sort }}
          onChange={(name, value) => change({ [name]: value, at: undefined })}
          onClear={() => change({ pool: undefined, sort: undefined, at: undefined })}
        >
          {views}
        </FilterBar>
      }
      list={list}
      rows={list.data?.items}
      rowKey={({ id }) => id}
      columns={columns}
      links={linksOf(list.data)}
      onPage={(link) => change({ at: placeOf(link) }, false)}
      empty={
        pool !== '' ? (
          <EmptyState icon="search" title={TEXT.noDomainsHere} />
        ) : (
          <EmptyState
            icon="mail"
            title={TEXT.noDomains}
            action={
              isParent && (
                <ActionButton
                  label={TEXT.enrollAll}
                  run={enrollAll}
                  done={TEXT.started}
                  changes={IPS_KEY}
                  ask={{ title: TEXT.enrollAllTitle, consequence: TEXT.enrollAllWhy }}
                />
              )
            }
          >
            {TEXT.noDomainsWhy}
          </EmptyState>
        )
      }
    >
      {windows}
    </ListPage>
  )
}

function BandChoice({ domain: { name, pool, override } }: { domain: EnrolledDomain }) {
  const queries = useQueryClient()
  const before = override ? pool : ''
  const change = useSending({
    mutationFn: (band: Band | '') => setOverride(name, band),
    onSuccess(_, band) {
      void queries.invalidateQueries({ queryKey: [IPS_KEY] })
      notify({
        text: band === '' ? TEXT.overrideEnded(name) : TEXT.overridden(name, bandWords(band)),
        ...(band !== before && { undo: () => change.mutate(before) }),
      })
    },
  })
  return (
    <div>
      <NativeSelect
        size="xs"
        aria-label={TEXT.choiceOf(name)}
        value={change.isPending ? change.variables : before}
        disabled={change.isPending}
        data={[
          { value: '', label: TEXT.byChecks },
          ...BANDS.map((band) => ({ value: band, label: TEXT.always(TEXT.bands[band]) })),
        ]}
        onChange={(event) => change.mutate(BANDS.find((band) => band === event.currentTarget.value) ?? '')}
      />
      {change.error && <Refusal error={change.error} />}
    </div>
  )
}

function Sets(props: {
  frame: Frame
  pools: { data?: DynamicPool[] | undefined; error: Error | null; refetch: () => unknown }
  isSet: boolean
  button: ReactNode
  mayRemove: boolean
}) {
  const { frame, pools, isSet, button, mayRemove } = props
  const { windows, views, ...header } = frame
  return (
    <ListPage
      {...header}
      above={<div>{views}</div>}
      list={pools}
      rows={isSet || pools.data === undefined ? pools.data : []}
      rowKey={({ name }) => name}
      columns={[
        {
          header: TEXT.band,
          cell: ({ name }) => (
            <div>
              <BandBadge band={name} />
              <div className="dimmed queue-small">{TEXT.bandMeanings[name]}</div>
            </div>
          ),
        },
        {
          header: TEXT.ips,
          cell: ({ ips }) => <span className="breakable">{ips.join(', ') || TEXT.none}</span>,
        },
      ]}
      expectedRows={BANDS.length}
      empty={
        <EmptyState icon="chart" title={TEXT.notSet} action={button}>
          {TEXT.notSetWhy}
        </EmptyState>
      }
    >
      {isSet && mayRemove && (
        <div>
          <ActionButton
            label={TEXT.removeAll}
            run={removePools}
            done={TEXT.removed}
            changes={IPS_KEY}
            ask={{ title: TEXT.removeTitle, consequence: TEXT.removeWhy }}
          />
        </div>
      )}
      {windows}
    </ListPage>
  )
}

const HISTORY: readonly Column<HistoryRecord>[] = [
  { header: TEXT.when, cell: ({ timestamp }) => <Time at={timestamp} /> },
  { header: TEXT.domain, cell: ({ domain_name }) => <strong className="breakable">{domain_name}</strong> },
  { header: TEXT.from, cell: ({ prev_band }) => <BandBadge band={prev_band} /> },
  { header: TEXT.to, cell: ({ new_band }) => <BandBadge band={new_band} /> },
  { header: TEXT.why, cell: ({ reason }) => <span className="breakable">{reason}</span> },
  {
    header: TEXT.by,
    cell: ({ initiated_by }) => (
      <span className="breakable">{initiated_by === 'system' ? TEXT.bySystem : initiated_by}</span>
    ),
  },
]

function History(props: { frame: Frame; search: DynamicSearch; change: Change }) {
  const { frame, search, change } = props
  const { windows, views, ...header } = frame
  const { domain = '', at } = search
  const list = useQuery(historyQuery(placePath(historyPath(domain), at)))
  return (
    <ListPage
      {...header}
      above={
        <FilterBar
          fields={[
            {
              name: 'domain',
              kind: 'chooser',
              label: TEXT.domain,
              any: TEXT.allDomains,
              options: domainOptions(),
            },
          ]}
          values={{ domain }}
          onChange={(_, value) => change({ domain: value, at: undefined })}
          onClear={() => change({ domain: undefined, at: undefined })}
        >
          {views}
        </FilterBar>
      }
      list={list}
      rows={list.data?.items}
      rowKey={({ id }) => id}
      columns={HISTORY}
      links={linksOf(list.data)}
      onPage={(link) => change({ at: placeOf(link) }, false)}
      empty={<EmptyState icon="clock" title={TEXT.noHistory} />}
    >
      {windows}
    </ListPage>
  )
}
