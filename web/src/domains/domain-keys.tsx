import { Badge, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { domainKeysQuery } from './domain-queries.ts'
import type { DomainDetails, DomainKey } from './domains-api.ts'
import { DOMAIN_TEXT as TEXT } from './text.ts'

/** The keys of the signing domain, and which of them sign. */
export function DomainKeys({ domain }: { domain: DomainDetails }) {
  const authority = domain.dkim_host
  const keys = useQuery(domainKeysQuery(authority, domain.state === 'unverified'))
  if (keys.data === undefined && keys.error === null) return null
  return (
    <section className="record-group" aria-label={TEXT.keys}>
      <h2>{TEXT.keys}</h2>
      <p className="breakable">{authority === domain.name ? TEXT.keysWhy : TEXT.keysOf(authority)}</p>
      <div className="panel">
        {keys.error !== null && (
          <Text size="sm" c="red" p="md" role="alert">
            {keys.error.message}
          </Text>
        )}
        {keys.data?.length === 0 && (
          <Text size="sm" p="md">
            {TEXT.noKey}
          </Text>
        )}
        <ul className="key-rows">
          {keys.data?.map((key) => (
            <KeyRow key={key.selector} domainKey={key} />
          ))}
        </ul>
      </div>
    </section>
  )
}

function KeyRow({ domainKey: { selector, dns_record } }: { domainKey: DomainKey }) {
  const { is_active, valid } = dns_record
  return (
    <li className="key-row">
      <strong className="breakable">{selector}</strong>
      <span className="dimmed">{kindOf(dns_record)}</span>
      <span className="grow" />
      <span className="dimmed">{valid === 'VALID' ? TEXT.recordFound : TEXT.recordNotFound}</span>
      <Badge variant="light" tt="none" fw={550} color={is_active ? 'teal' : 'gray'}>
        {is_active ? TEXT.keySigns : TEXT.keyRests}
      </Badge>
    </li>
  )
}

/** How the key came about, or its algorithm. */
export function kindOf({ record_type, value }: DomainKey['dns_record']): string {
  if (record_type === 'CNAME') return TEXT.keptByService
  return /(?:^|;)\s*k=ed25519/.test(value) ? 'Ed25519' : 'RSA'
}
