import { Skeleton } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { Page, PageHeader } from '../shared/page/page.tsx'
import { Failure } from '../shared/page/states.tsx'
import { DomainNav } from './domain-nav.tsx'
import { domainQuery } from './domain-queries.ts'
import type { DomainDetails } from './domains-api.ts'
import { NAV_TEXT as TEXT } from './text.ts'

/** A page about one domain beside the one of its records. `children` gets the domain when it is loaded. */
export function DomainFrame(props: {
  name: string
  title: string
  lead: (domain: DomainDetails) => string
  actions?: ReactNode
  children: (domain: DomainDetails) => ReactNode
}) {
  const { name, title, lead, actions, children } = props
  const { data: domain, error, refetch } = useQuery(domainQuery(name))
  return (
    <Page key={name}>
      <PageHeader
        title={title}
        lead={<span className="breakable">{domain ? lead(domain) : name}</span>}
        actions={actions}
        back={{ to: `/domains/${encodeURIComponent(name)}`, label: name }}
      />
      <DomainNav name={name} isSandbox={domain?.type === 'sandbox'} />
      {domain ? (
        children(domain)
      ) : error ? (
        <Failure title={TEXT.unreadable} error={error} retry={refetch} />
      ) : (
        <Skeleton height={320} role="status" aria-label={TEXT.loading} />
      )}
    </Page>
  )
}
