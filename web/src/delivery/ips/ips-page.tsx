/** Sending addresses with their health and use. Calls GET /sendwright/v1/ips and /v3/ips/details/all. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useMay } from '../../session.ts'
import { Count } from '../../shared/copyable.tsx'
import { ActionButton } from '../../shared/forms/action-button.tsx'
import type { Column } from '../../shared/page/data-table.tsx'
import { ListPage } from '../../shared/page/list-page.tsx'
import { EmptyState } from '../../shared/page/states.tsx'
import { TEXT as SECTION } from '../text.ts'
import { Health } from './health.tsx'
import { addressesQuery, IPS_KEY, type Ip, ipsQuery, requestableQuery, requestIp } from './ips-api.ts'
import { TEXT } from './text.ts'
import { WatchedListsPanel } from './watched-lists.tsx'
import '../delivery.css'

export default function IpsPage() {
  const isOperator = useMay({ area: 'account', only: 'first' })
  const mayChange = useMay({ area: 'ips', access: 'write' })
  const list = useQuery(ipsQuery)
  const addresses = useQuery({ ...addressesQuery, enabled: isOperator })
  const requestable = useQuery(requestableQuery).data ?? 0
  const isLoaded = list.data && (!isOperator || !addresses.isPending)
  const addressOf = (ip: string) => addresses.data?.find((each) => each.ip === ip)
  const columns: Column<Ip>[] = [
    {
      header: TEXT.ip,
      cell: ({ ip }) => (
        <Link to="/delivery/ips/$ip" params={{ ip }} className="row-link breakable">
          {ip}
        </Link>
      ),
    },
    { header: TEXT.health, cell: (ip) => <Health ip={ip} address={addressOf(ip.ip)} /> },
    {
      header: TEXT.rdns,
      cell: ({ rdns }) => <span className="breakable">{rdns || TEXT.noRdns}</span>,
    },
    { header: TEXT.kind, cell: ({ dedicated }) => (dedicated ? TEXT.dedicated : TEXT.shared) },
    {
      header: TEXT.domains,
      align: 'end',
      cell: ({ domains_count }) => <Count value={domains_count} />,
    },
  ]
  return (
    <ListPage
      title={TEXT.title}
      lead={TEXT.lead}
      back={{ to: '/delivery', label: SECTION.title }}
      actions={
        mayChange &&
        requestable > 0 && (
          <ActionButton
            label={TEXT.request}
            size="sm"
            run={requestIp}
            done={TEXT.requested}
            changes={IPS_KEY}
          />
        )
      }
      list={list}
      rows={isLoaded ? list.data : undefined}
      rowKey={({ ip }) => ip}
      columns={columns}
      empty={
        <EmptyState icon="globe" title={TEXT.none}>
          {TEXT.noneWhy}
        </EmptyState>
      }
    >
      <WatchedListsPanel />
    </ListPage>
  )
}
