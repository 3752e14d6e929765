/**
 * What Gmail says of a domain, and Microsoft of the account's addresses, by their newest days. Calls
 * /v1/reputationanalytics/gpt/domains/:domain and /v1/reputationanalytics/snds.
 */
import { Badge } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { valueOrThrow } from '../../queries.ts'
import { type Column, DataTable } from '../../shared/page/data-table.tsx'
import { Panel } from '../../shared/page/page.tsx'
import { EmptyState } from '../../shared/page/states.tsx'
import { Time } from '../../shared/time.tsx'
import { DOMAINS_KEY } from '../domain-queries.ts'
import { type GmailDay, readGmailDays, readSndsAddresses, type SndsAddress } from './receivers-api.ts'
import { TEXT } from './receivers-text.ts'

export function GmailFigures({ name }: { name: string }) {
  const days = useQuery({
    queryKey: [DOMAINS_KEY, 'gmail', name],
    queryFn: async ({ signal }) => valueOrThrow(await readGmailDays(name, signal)),
  })
  const { data, compliance = [], configured } = days.data ?? {}
  return (
    <Panel title={TEXT.gmail} flush>
      {compliance.length > 0 && (
        <ul className="rule-rows">
          {compliance.map(({ requirement, status }) => (
            <li key={requirement} className="rule-row">
              <div className="rule-head">
                <strong>{TEXT.requirementOf(requirement)}</strong>
                <Badge variant="light" tt="none" fw={550} color={status === 'COMPLIANT' ? 'teal' : 'red'}>
                  {status === 'COMPLIANT' ? TEXT.compliant : TEXT.needsWork}
                </Badge>
              </div>
            </li>
          ))}
        </ul>
      )}
      <DataTable
        label={TEXT.gmail}
        columns={GMAIL_COLUMNS}
        rows={data}
        rowKey={({ date }) => date}
        error={days.error}
        retry={days.refetch}
        expectedRows={3}
        empty={<Nothing configured={configured} why={TEXT.gmailNoneWhy} />}
      />
    </Panel>
  )
}

export function SndsFigures() {
  const addresses = useQuery({
    queryKey: [DOMAINS_KEY, 'snds'],
    queryFn: async ({ signal }) => valueOrThrow(await readSndsAddresses(signal)),
  })
  return (
    <Panel title={TEXT.snds} flush>
      <DataTable
        label={TEXT.snds}
        columns={SNDS_COLUMNS}
        rows={addresses.data?.summary}
        rowKey={({ ip_address }) => ip_address}
        error={addresses.error}
        retry={addresses.refetch}
        expectedRows={3}
        empty={<Nothing configured={addresses.data?.configured} why={TEXT.sndsNoneWhy} />}
      />
    </Panel>
  )
}

function Nothing({ configured, why }: { configured: boolean | undefined; why: string }) {
  return (
    <EmptyState icon="mail" title={TEXT.noFigures}>
      {configured ? why : TEXT.notConfigured}
    </EmptyState>
  )
}

const percent = (ratio: number) => `${(ratio * 100).toFixed(ratio < 0.01 ? 2 : 0)} %`
const number = (value: number) => value.toLocaleString('en')

const GMAIL_COLUMNS: readonly Column<GmailDay>[] = [
  { header: TEXT.period, cell: ({ date }) => <Time at={date} as="date" /> },
  { header: TEXT.spam, align: 'end', cell: (day) => percent(day.user_reported_spam_ratio) },
  { header: TEXT.refused, align: 'end', cell: (day) => percent(day.delivery_error_ratio) },
  { header: 'SPF', align: 'end', wideOnly: true, cell: (day) => percent(day.spf_success_ratio) },
  { header: 'DKIM', align: 'end', wideOnly: true, cell: (day) => percent(day.dkim_success_ratio) },
  { header: 'DMARC', align: 'end', wideOnly: true, cell: (day) => percent(day.dmarc_success_ratio) },
  { header: 'TLS', align: 'end', wideOnly: true, cell: (day) => percent(day.inbound_encryption_ratio) },
]

const FILTER_COLORS: Readonly<Record<string, string>> = { GREEN: 'teal', YELLOW: 'yellow', RED: 'red' }

const SNDS_COLUMNS: readonly Column<SndsAddress>[] = [
  {
    header: TEXT.address,
    cell: ({ ip_address, is_blocked, block_text }) => (
      <span className="breakable">
        {ip_address} {is_blocked && <span className="dimmed">({block_text})</span>}
      </span>
    ),
  },
  { header: TEXT.period, cell: ({ date }) => <Time at={date} as="date" /> },
  {
    header: TEXT.filterResult,
    cell: ({ filter_result: result }) => (
      <Badge variant="light" fw={550} color={FILTER_COLORS[result] ?? 'gray'}>
        {result}
      </Badge>
    ),
  },
  { header: TEXT.complaints, align: 'end', cell: ({ complaint_rate }) => complaint_rate },
  { header: TEXT.traps, align: 'end', cell: ({ trap_hits }) => number(trap_hits) },
  { header: TEXT.recipients, align: 'end', wideOnly: true, cell: ({ recipients }) => number(recipients) },
]
