import { Badge, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { Copyable } from '../../shared/copyable.tsx'
import { ActionButton, Refusal } from '../../shared/forms/action-button.tsx'
import { Panel } from '../../shared/page/page.tsx'
import { DOMAINS_KEY, domainDnsQuery } from '../domain-queries.ts'
import type { DomainDetails } from '../domains-api.ts'
import { OPTIONS_TEXT as TEXT } from '../text.ts'
import { certificateQuery, orderCertificate } from './options-api.ts'
import { ShownRow, useMayChange } from './rows.tsx'

/** The host of the links in mail, with its record and its certificate. */
export function TrackingHost({ domain, button }: { domain: DomainDetails; button: ReactNode }) {
  const { name, state, type, tracking_host, web_scheme } = domain
  const dns = useQuery({ ...domainDnsQuery(name, state === 'unverified'), enabled: type !== 'sandbox' })
  const found = dns.data?.records.find(({ record }) => record.purpose === 'tracking')
  return (
    <Panel title={TEXT.host} beside={button} flush>
      <ShownRow label={TEXT.hostName} why={TEXT.hostWhy} value={`${web_scheme}://${tracking_host}`} />
      {type !== 'sandbox' && (
        <ShownRow
          label={TEXT.record}
          value={
            found && (
              <Badge variant="light" tt="none" color={found.valid === 'valid' ? 'teal' : 'gray'}>
                {found.valid === 'valid' ? TEXT.recordValid : TEXT.recordUnknown}
              </Badge>
            )
          }
        >
          <div className="option-wide">
            {dns.error && <Refusal error={dns.error} />}
            {found ? (
              <>
                <Text size="xs" c="dimmed">
                  {TEXT.recordValue(found.record.type)}
                </Text>
                <Copyable text={found.record.value} what={TEXT.copyRecord} />
              </>
            ) : (
              <span aria-hidden="true">…</span>
            )}
          </div>
        </ShownRow>
      )}
      <CertificateRow host={tracking_host} />
    </Panel>
  )
}

const COLORS: Readonly<Record<string, string>> = { active: 'teal', expired: 'orange', error: 'red' }

function CertificateRow({ host }: { host: string }) {
  const { data, error } = useQuery(certificateQuery(host))
  const mayChange = useMayChange()
  const status = data?.status
  const isRenewal = status === 'expired'
  return (
    <ShownRow
      label={TEXT.certificate}
      value={
        status && (
          <Badge variant="light" tt="none" color={COLORS[status] ?? 'gray'}>
            {TEXT.certificateStates[status] ?? status}
          </Badge>
        )
      }
    >
      {error && <Refusal error={error} />}
      {data?.error && <Refusal error={new Error(data.error)} />}
      {mayChange && (
        <div className="option-wide">
          <ActionButton
            label={isRenewal ? TEXT.renew : TEXT.order}
            disabled={status === undefined || status === 'active' || status === 'processing'}
            run={() => orderCertificate(host, isRenewal)}
            done={TEXT.ordered}
            changes={DOMAINS_KEY}
          />
        </div>
      )}
    </ShownRow>
  )
}
