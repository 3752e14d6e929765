import { Alert, Button, Skeleton, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { exactTime, shortDate } from '../format.ts'
import { Icon } from '../icons.tsx'
import { RefusedRequest } from '../queries.ts'
import { DeleteDomain } from './delete-domain.tsx'
import { DomainKeys } from './domain-keys.tsx'
import { DomainNav } from './domain-nav.tsx'
import { domainDnsQuery, domainQuery } from './domain-queries.ts'
import { DomainRecords } from './domain-records.tsx'
import { DomainState } from './domain-state.tsx'
import type { DomainDetails } from './domains-api.ts'
import { ServiceFaults } from './service-faults.tsx'
import { DomainStateBadge } from './state-badge.tsx'
import './domains.css'

const route = getRouteApi('/domains/$name')

export function DomainPage() {
  const { name } = route.useParams()
  const domain = useQuery(domainQuery(name))
  return (
    <main className="domains-scroll" id="main" tabIndex={-1}>
      <article className="domains" key={name}>
        <Link to="/domains" className="domain-back">
          <Icon name="back" size={16} /> Domains
        </Link>
        {isGone(domain.error) ? (
          <Alert color="gray" title={`There is no domain ${name}`} className="breakable">
            It was deleted, or it belongs to another account.
          </Alert>
        ) : domain.data !== undefined ? (
          <Found domain={domain.data} />
        ) : domain.error !== null ? (
          <Failure title="The domain cannot be read" error={domain.error} retry={domain.refetch} />
        ) : (
          <Skeleton height={28} width="60%" role="status" aria-label="Loading the domain" />
        )}
      </article>
    </main>
  )
}

const isGone = (error: Error | null) => error instanceof RefusedRequest && error.status === 404

function Found({ domain }: { domain: DomainDetails }) {
  const createdMs = Date.parse(domain.created_at)
  const isSandbox = domain.type === 'sandbox'
  return (
    <>
      <header className="domains-heading">
        <h1 className="breakable">{domain.name}</h1>
        <DomainStateBadge state={domain.state} size="lg" />
        {isSandbox && <span className="tag">sandbox</span>}
        <span className="grow" />
        <span className="dimmed" title={exactTime(createdMs)}>
          Added {shortDate(createdMs)}
        </span>
        {!isSandbox && <DeleteDomain name={domain.name} />}
      </header>
      <DomainNav name={domain.name} isSandbox={isSandbox} />
      {isSandbox ? <SandboxNotice /> : <WithDns domain={domain} />}
    </>
  )
}

/** Its records are not checked, so none are shown. */
function SandboxNotice() {
  return (
    <section className="panel domain-state" aria-label="State">
      <Text>This domain is there for trying things out. It may send at once and needs no DNS records.</Text>
      <Text size="sm" c="dimmed" mt={4}>
        Outside capture mode it sends to authorised recipients only. To send to everybody, add a domain of
        your own.
      </Text>
    </section>
  )
}

function WithDns({ domain }: { domain: DomainDetails }) {
  const isWaiting = domain.state === 'unverified'
  const dns = useQuery(domainDnsQuery(domain.name, isWaiting))
  if (dns.data === undefined)
    return dns.error === null ? (
      <Skeleton height={120} role="status" aria-label="Loading the records" />
    ) : (
      <Failure title="The records cannot be read" error={dns.error} retry={dns.refetch} />
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

function Failure(props: { title: string; error: Error; retry: () => unknown }) {
  return (
    <Alert color="red" title={props.title}>
      <Text size="sm" className="breakable">
        {props.error.message}
      </Text>
      <Button mt="sm" size="xs" variant="default" onClick={() => props.retry()}>
        Try again
      </Button>
    </Alert>
  )
}
