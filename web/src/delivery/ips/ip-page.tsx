/**
 * One sending address: checks, blocks by provider, warm-up, pools and domains that use it. Calls GET /sendwright/v1/ips/:ip
 * and changes /v3/ips, /v3/domains/:domain/ips and /v3/ip_pools.
 */
import { Button, Skeleton } from '@mantine/core'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { Icon } from '../../look/icons.tsx'
import { useMay } from '../../session.ts'
import { ActionButton } from '../../shared/forms/action-button.tsx'
import { DomainChoice } from '../../shared/forms/domain-choice.tsx'
import { FormWindow } from '../../shared/forms/form-window.tsx'
import { useForm } from '../../shared/forms/use-form.ts'
import { BUTTONS, type Column, DataTable } from '../../shared/page/data-table.tsx'
import { FilterBar } from '../../shared/page/filter-bar.tsx'
import { notify } from '../../shared/page/notices.tsx'
import { Page, PageHeader, Panel } from '../../shared/page/page.tsx'
import { placeOf, placePath, skipLinks } from '../../shared/page/paging.ts'
import { withSearch } from '../../shared/page/search.ts'
import { EmptyState, Failure } from '../../shared/page/states.tsx'
import { siteName } from '../../shared/site-names.ts'
import { Time } from '../../shared/time.tsx'
import { poolsQuery } from '../delivery-api.ts'
import { Health } from './health.tsx'
import {
  type Address,
  addressesQuery,
  assignToAll,
  assignToDomain,
  type Block,
  clearBlock,
  DOMAINS_PAGE_SIZE,
  enableAddress,
  IPS_KEY,
  type Ip,
  ipDomainsPath,
  ipDomainsQuery,
  ipsQuery,
  removeFromDomain,
} from './ips-api.ts'
import { TEXT } from './text.ts'
import { WarmupPanel } from './warmup-panel.tsx'
import '../delivery.css'
import './ips.css'

const route = getRouteApi('/delivery/ips/$ip')
const back = { to: '/delivery/ips', label: TEXT.title }

export default function IpPage() {
  const { ip } = route.useParams()
  const isOperator = useMay({ area: 'account', only: 'first' })
  const list = useQuery(ipsQuery)
  const addresses = useQuery({ ...addressesQuery, enabled: isOperator })
  const found = list.data?.find((each) => each.ip === ip)
  const isLoaded = list.data !== undefined && (!isOperator || !addresses.isPending)
  if (found && isLoaded) return <Found ip={found} address={addresses.data?.find((each) => each.ip === ip)} />
  return (
    <Page>
      <PageHeader title={ip} back={back} />
      {list.error ? (
        <Failure title={TEXT.gone(ip)} error={list.error} retry={list.refetch} />
      ) : isLoaded ? (
        <EmptyState icon="globe" title={TEXT.gone(ip)} />
      ) : (
        <Skeleton height={520} />
      )}
    </Page>
  )
}

function Found({ ip, address }: { ip: Ip; address: Address | undefined }) {
  const mayOperate = useMay({ area: 'account', access: 'write', only: 'first' })
  return (
    <Page>
      <PageHeader
        title={ip.ip}
        beside={<Health ip={ip} address={address} />}
        back={back}
        actions={
          mayOperate &&
          address && (
            <ActionButton
              label={address.enabled ? TEXT.switchOff : TEXT.switchOn}
              run={() => enableAddress(ip.ip, !address.enabled)}
              done={(address.enabled ? TEXT.switchedOff : TEXT.switchedOn)(ip.ip)}
              undo={() => enableAddress(ip.ip, address.enabled)}
              undone={(address.enabled ? TEXT.switchedOn : TEXT.switchedOff)(ip.ip)}
              changes={IPS_KEY}
            />
          )
        }
      />
      <Panel title={TEXT.health}>
        <Facts ip={ip} address={address} />
      </Panel>
      {address && <Blocks ip={ip.ip} blocks={address.blocked_by} mayClear={mayOperate} />}
      {ip.dedicated && <WarmupPanel ip={ip.ip} />}
      <Domains ip={ip} />
    </Page>
  )
}

const known = (value: boolean | null) => (value === null ? TEXT.unknown : value ? TEXT.yes : TEXT.no)

function Facts({ ip, address }: { ip: Ip; address: Address | undefined }) {
  const pools = useQuery({ ...poolsQuery, enabled: ip.pool_id !== undefined })
  return (
    <dl className="ip-facts">
      <div>
        <dt>{TEXT.rdns}</dt>
        <dd className="breakable">{ip.rdns || TEXT.noRdns}</dd>
      </div>
      <div>
        <dt>{TEXT.kind}</dt>
        <dd>{ip.dedicated ? TEXT.dedicated : TEXT.shared}</dd>
      </div>
      {ip.pool_id !== undefined && (
        <div>
          <dt>{TEXT.pool}</dt>
          <dd>
            <Link to="/delivery/pools/$id" params={{ id: ip.pool_id }} className="ip-pool breakable">
              {pools.data?.find(({ pool_id }) => pool_id === ip.pool_id)?.name ?? ip.pool_id}
            </Link>
          </dd>
        </div>
      )}
      {address && (
        <>
          {address.local_ip !== null && (
            <div>
              <dt>{TEXT.localIp}</dt>
              <dd className="breakable">{address.local_ip}</dd>
            </div>
          )}
          {address.proxy === null ? (
            <div>
              <dt>{TEXT.bound}</dt>
              <dd>{known(address.check.bound)}</dd>
            </div>
          ) : (
            <div>
              <dt>{TEXT.proxy}</dt>
              <dd className="breakable">{address.proxy}</dd>
            </div>
          )}
          <div>
            <dt>{TEXT.dnsAgrees}</dt>
            <dd>{known(address.check.dns_agrees)}</dd>
          </div>
          <div>
            <dt>{TEXT.checked}</dt>
            <dd>
              {address.check.checked_at === null ? (
                TEXT.neverChecked
              ) : (
                <Time at={address.check.checked_at} as="age" />
              )}
            </dd>
          </div>
        </>
      )}
    </dl>
  )
}

function Blocks(props: { ip: string; blocks: readonly Block[]; mayClear: boolean }) {
  const { ip, blocks, mayClear } = props
  const columns: Column<Block>[] = [
    { header: TEXT.provider, cell: ({ site }) => <strong className="breakable">{siteName(site)}</strong> },
    {
      header: TEXT.state,
      cell: ({ state, until }) => (
        <span>
          {TEXT.states[state]}
          {state === 'closed' && (
            <>
              {' '}
              {TEXT.until} <Time at={until} />
            </>
          )}
        </span>
      ),
    },
    { header: TEXT.reply, cell: ({ reply }) => <span className="breakable">{reply}</span> },
    ...(mayClear
      ? [
          {
            ...BUTTONS,
            cell: ({ site }: Block) => (
              <ActionButton
                label={TEXT.again}
                name={TEXT.againOf(siteName(site))}
                run={() => clearBlock(ip, site)}
                done={TEXT.usedAgain(siteName(site))}
                changes={IPS_KEY}
              />
            ),
          },
        ]
      : []),
  ]
  return (
    <Panel title={TEXT.blocks} flush>
      <DataTable
        label={TEXT.blocks}
        rows={blocks}
        rowKey={({ site }) => site}
        columns={columns}
        empty={
          <EmptyState icon="check" title={TEXT.noBlocks}>
            {TEXT.blocksWhy}
          </EmptyState>
        }
      />
    </Panel>
  )
}

function Domains({ ip: { ip, dedicated, domains_count } }: { ip: Ip }) {
  const { q = '', at, add } = route.useSearch()
  const navigate = useNavigate({ from: '/delivery/ips/$ip' })
  const mayChange = useMay({ area: 'ips', access: 'write' }) && dedicated
  const first = ipDomainsPath(ip, q)
  const list = useQuery({ ...ipDomainsQuery(placePath(first, at)), placeholderData: keepPreviousData })
  const skip = Number(new URLSearchParams(at).get('skip') ?? 0)
  const setAdding = (adding: boolean) =>
    void navigate({ replace: true, search: (old) => withSearch(old, { add: adding ? 'yes' : undefined }) })
  const columns: Column<{ domain: string; ips: string[] }>[] = [
    { header: TEXT.domain, cell: ({ domain }) => <strong className="breakable">{domain}</strong> },
    {
      header: TEXT.others,
      cell: ({ ips }) => (
        <span className="breakable">{ips.filter((each) => each !== ip).join(', ') || '–'}</span>
      ),
    },
    ...(mayChange
      ? [
          {
            ...BUTTONS,
            cell: ({ domain }: { domain: string }) => (
              <ActionButton
                label={TEXT.remove}
                name={TEXT.removeOf(domain)}
                run={() => removeFromDomain(ip, domain)}
                done={TEXT.removed(domain)}
                undo={() => assignToDomain(ip, domain)}
                undone={TEXT.restored(domain)}
                changes={IPS_KEY}
              />
            ),
          },
        ]
      : []),
  ]
  return (
    <Panel
      title={TEXT.domains}
      flush
      beside={
        mayChange && (
          <>
            <ActionButton
              label={TEXT.assignAll}
              run={() => assignToAll(ip)}
              done={TEXT.started}
              changes={IPS_KEY}
              ask={{ title: TEXT.assignAllTitle, consequence: TEXT.assignAllWhy }}
            />
            <Button size="xs" leftSection={<Icon name="plus" size={14} />} onClick={() => setAdding(true)}>
              {TEXT.assign}
            </Button>
          </>
        )
      }
    >
      {(domains_count > DOMAINS_PAGE_SIZE || q !== '') && (
        <FilterBar
          fields={[{ name: 'q', kind: 'search', label: TEXT.findDomain }]}
          values={{ q }}
          onChange={(_, value) =>
            void navigate({ replace: true, search: (old) => withSearch(old, { q: value, at: undefined }) })
          }
          onClear={() => void navigate({ replace: true, search: {} })}
        />
      )}
      <DataTable
        label={TEXT.domains}
        rows={list.data?.items}
        rowKey={({ domain }) => domain}
        columns={columns}
        error={list.error}
        retry={list.refetch}
        isStale={list.isPlaceholderData}
        links={list.data && skipLinks(first, skip, DOMAINS_PAGE_SIZE, list.data.total_count)}
        onPage={(link) => void navigate({ search: (old) => withSearch(old, { at: placeOf(link) }) })}
        expectedRows={3}
        empty={<EmptyState icon="globe" title={q === '' ? TEXT.noDomains : TEXT.noDomainFound} />}
      />
      {mayChange && add === 'yes' && <AssignForm ip={ip} onClose={() => setAdding(false)} />}
    </Panel>
  )
}

function AssignForm({ ip, onClose }: { ip: string; onClose: () => void }) {
  const form = useForm({
    initial: { domain: '' },
    send: ({ domain }) => assignToDomain(ip, domain),
    changes: IPS_KEY,
    onDone(_, { domain }) {
      notify({ text: TEXT.assigned(domain) })
      onClose()
    },
  })
  return (
    <FormWindow
      title={TEXT.assign}
      submit={TEXT.assignSubmit}
      isComplete={form.values.domain !== ''}
      {...form.window}
      onClose={onClose}
    >
      <DomainChoice
        label={TEXT.domain}
        value={form.values.domain}
        onChange={(domain) => form.set({ domain })}
        autoFocus
      />
    </FormWindow>
  )
}
