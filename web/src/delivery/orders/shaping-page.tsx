/** Limits of each provider, from the shaping file and from orders of the operator. Calls /sendwright/v1/shaping. */
import { Alert, Badge, Button } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { Icon } from '../../look/icons.tsx'
import { type Override, type Shaping, type SiteLimits, shapingQuery } from '../../shared/orders-api.ts'
import { BUTTONS, type Column } from '../../shared/page/data-table.tsx'
import { FilterBar } from '../../shared/page/filter-bar.tsx'
import { ListPage } from '../../shared/page/list-page.tsx'
import { withSearch } from '../../shared/page/search.ts'
import { EmptyState } from '../../shared/page/states.tsx'
import { siteName } from '../../shared/site-names.ts'
import { LimitsWindow, OrderButtons, StoppedState, StopWindow, useMayOrder } from './order-windows.tsx'
import { orderedRate, rateWords, TEXT } from './text.ts'
import '../delivery.css'

const route = getRouteApi('/delivery/providers')

interface Row {
  site: string
  /** Hosts of the provider, by the end of their names; none for a domain. */
  mx: readonly string[]
  /** Null: a site that the shaping does not name. */
  shaped: SiteLimits
  override: Override | null
}

/** Sites with orders come first. */
function rowsOf({ providers, overrides, default: common }: Shaping): Row[] {
  const overrideOf = new Map(overrides.map((override) => [override.site, override]))
  const shapedOf = new Map(providers.map((provider) => [provider.site, provider]))
  return [
    ...overrides.map((override) => ({
      site: override.site,
      mx: shapedOf.get(override.site)?.mx ?? [],
      shaped: shapedOf.get(override.site) ?? common,
      override,
    })),
    ...providers
      .filter(({ site }) => !overrideOf.has(site))
      .map((shaped) => ({ site: shaped.site, mx: shaped.mx, shaped, override: null })),
  ]
}

export default function ShapingPage() {
  const { q = '', stop, limits } = route.useSearch()
  const navigate = useNavigate({ from: '/delivery/providers' })
  const mayOrder = useMayOrder()
  const list = useQuery(shapingQuery)
  const { data } = list
  const rows = data && rowsOf(data)
  const found = rows?.filter(({ site, mx }) =>
    [siteName(site), site, ...mx].some((text) => text.toLowerCase().includes(q.toLowerCase())),
  )
  const change = (changes: {
    q?: string | undefined
    stop?: string | undefined
    limits?: string | undefined
  }) => void navigate({ replace: true, search: (old) => withSearch(old, changes) })
  const columns: Column<Row>[] = [
    {
      header: TEXT.provider,
      cell: ({ site, mx }) => (
        <div>
          <strong className="breakable">{siteName(site)}</strong>
          <div className="dimmed queue-small breakable" title={mx.join('\n')}>
            {TEXT.hosts(site, mx)}
          </div>
        </div>
      ),
    },
    {
      header: TEXT.state,
      cell: ({ override }) => (override?.pause ? <StoppedState pause={override.pause} /> : TEXT.sends),
    },
    {
      header: TEXT.rate,
      cell: ({ shaped, override }) =>
        override?.limits?.rate ? (
          <Ordered>{orderedRate(override.limits.rate)}</Ordered>
        ) : (
          rateWords(shaped.messages_per_second)
        ),
    },
    {
      header: TEXT.connections,
      align: 'end',
      cell: ({ shaped, override }) =>
        override?.limits?.connections ? <Ordered>{override.limits.connections}</Ordered> : shaped.connections,
    },
    {
      header: TEXT.perConnection,
      align: 'end',
      wideOnly: true,
      cell: ({ shaped }) => TEXT.perConnectionOf(shaped.messages_per_connection),
    },
    ...(mayOrder
      ? [
          {
            ...BUTTONS,
            cell: ({ site, override }: Row) => (
              <OrderButtons
                site={site}
                name={siteName(site)}
                override={override}
                onStop={() => change({ stop: site })}
                onLimits={() => change({ limits: site })}
              />
            ),
          },
        ]
      : []),
  ]
  return (
    <ListPage
      title={TEXT.title}
      lead={TEXT.lead}
      beside={data && <span className="tag">{TEXT.version(data.version)}</span>}
      actions={
        mayOrder && (
          <Button leftSection={<Icon name="pause" size={16} />} onClick={() => change({ stop: NEW_SITE })}>
            {TEXT.stopOther}
          </Button>
        )
      }
      above={
        <>
          {data && data.faults.length > 0 && (
            <Alert color="red" title={TEXT.faults} className="breakable">
              {data.faults.join('\n')}
            </Alert>
          )}
          <FilterBar
            fields={[{ name: 'q', kind: 'search', label: TEXT.find }]}
            values={{ q }}
            onChange={(_, value) => change({ q: value })}
            onClear={() => change({ q: undefined })}
          />
        </>
      }
      list={list}
      rows={found}
      rowKey={({ site }) => site}
      columns={columns}
      empty={
        <EmptyState icon="search" title={TEXT.noneFound(q)}>
          {TEXT.noneFoundWhy}
        </EmptyState>
      }
    >
      {mayOrder && stop !== undefined && (
        <StopWindow site={stop === NEW_SITE ? '' : stop} onClose={() => change({ stop: undefined })} />
      )}
      {mayOrder && limits !== undefined && rows && (
        <LimitsWindow
          key={limits}
          site={limits}
          override={rows.find(({ site }) => site === limits)?.override ?? null}
          onClose={() => change({ limits: undefined })}
        />
      )}
    </ListPage>
  )
}

/** Value of the search parameter `stop`: the window asks for the site. No site has an asterisk. */
const NEW_SITE = '*'

const Ordered = ({ children }: { children: React.ReactNode }) => (
  <span>
    {children}{' '}
    <Badge variant="light" tt="none" size="sm" color="blue">
      {TEXT.ordered}
    </Badge>
  </span>
)
