/**
 * One domain: its state, DNS records to publish, and keys. Calls GET /v4/domains/:name and PUT /v4/domains/:name/verify.
 */
import { Alert, Skeleton, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { exactTime, shortDate } from '../base/format.ts'
import { RefusedRequest } from '../queries.ts'
import { Page, PageHeader } from '../shared/page/page.tsx'
import { Failure } from '../shared/page/states.tsx'
import { DeleteDomain } from './delete-domain.tsx'
import { DomainKeys } from './domain-keys.tsx'
import { DomainNav } from './domain-nav.tsx'
import { domainDnsQuery, domainQuery } from './domain-queries.ts'
import { DomainState } from './domain-state.tsx'
import type { DomainDetails } from './domains-api.ts'
import { DomainRecords } from './records/domain-records.tsx'
import { ServiceFaults } from './service-faults.tsx'
import { DomainStateBadge } from './state-badge.tsx'
import { LIST_TEXT, NAV_TEXT, DOMAIN_TEXT as TEXT } from './text.ts'
import './domains.css'

const route = getRouteApi('/domains/$name')

export default function DomainPage() {
  const { name } = route.useParams()
  const domain = useQuery(domainQuery(name))
  return (
    <Page key={name}>
      {isGone(domain.error) ? (
        <>
          <PageHeader title={name} back={BACK} />
          <Alert color="gray" title={TEXT.gone(name)} className="breakable">
            {TEXT.goneWhy}
          </Alert>
        </>
      ) : domain.data !== undefined ? (
        <Found domain={domain.data} />
      ) : (
        <>
          <PageHeader title={name} back={BACK} />
          {domain.error !== null ? (
            <Failure title={NAV_TEXT.unreadable} error={domain.error} retry={domain.refetch} />
          ) : (
            <Skeleton height={320} role="status" aria-label={NAV_TEXT.loading} />
          )}
        </>
      )}
    </Page>
  )
}

const BACK = { to: '/domains', label: LIST_TEXT.title }

const isGone = (error: Error | null) => error instanceof RefusedRequest && error.status === 404

function Found({ domain }: { domain: DomainDetails }) {
  const createdMs = Date.parse(domain.created_at)
  const isSandbox = domain.type === 'sandbox'
  return (
    <>
      <PageHeader
        title={domain.name}
        back={BACK}
        beside={
          <>
            <DomainStateBadge state={domain.state} size="lg" />
            {isSandbox && <span className="tag">{LIST_TEXT.sandbox}</span>}
          </>
        }
        actions={
          <>
            <span className="dimmed domain-added" title={exactTime(createdMs)}>
              {TEXT.added} {shortDate(createdMs)}
            </span>
            {!isSandbox && <DeleteDomain name={domain.name} />}
          </>
        }
      />
      <DomainNav name={domain.name} isSandbox={isSandbox} />
      {isSandbox ? <SandboxNotice /> : <WithDns domain={domain} />}
    </>
  )
}

/** Its records are not checked, so none are shown. */
function SandboxNotice() {
  return (
    <section className="panel domain-state" aria-label={TEXT.state}>
      <Text>{TEXT.sandbox}</Text>
      <Text size="sm" c="dimmed" mt={4}>
        {TEXT.sandboxWhy}
      </Text>
    </section>
  )
}

function WithDns({ domain }: { domain: DomainDetails }) {
  const isWaiting = domain.state === 'unverified'
  const dns = useQuery(domainDnsQuery(domain.name, isWaiting))
  if (dns.data === undefined)
    return dns.error === null ? (
      <Skeleton height={120} role="status" aria-label={TEXT.loadingRecords} />
    ) : (
      <Failure title={TEXT.recordsUnreadable} error={dns.error} retry={dns.refetch} />
    )
  return (
    <>
      <DomainState domain={domain} dns={dns.data} />
      <ServiceFaults faults={dns.data.service} />
      <DomainRecords dns={dns.data} />
      <DomainKeys domain={domain} />
    </>
  )
}
