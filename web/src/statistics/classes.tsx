/** Why mail failed: classes of replies by provider (own-operations.md section 11). */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { FailureClass } from '../shared/mail/reasons-api.ts'
import { type Column, DataTable } from '../shared/page/data-table.tsx'
import { Panel } from '../shared/page/page.tsx'
import { EmptyState } from '../shared/page/states.tsx'
import { classesQuery } from './statistics-queries.ts'
import type { Span, StatisticsSearch } from './statistics-search.ts'
import { TEXT } from './text.ts'

interface Row extends FailureClass {
  provider: string
}

export function Classes({ span, search }: { span: Span; search: StatisticsSearch }) {
  const reasons = useQuery(classesQuery(span, search.domain))
  const rows = reasons.data?.providers
    .filter(({ provider }) => search.provider === undefined || provider === search.provider)
    .flatMap(({ provider, failures }): Row[] => failures.map((failure) => ({ provider, ...failure })))
    .sort((a, b) => b.permanent + b.temporary - a.permanent - a.temporary)
  return (
    <Panel
      title={TEXT.classes}
      flush
      beside={<span className="dimmed">{reasons.data?.partial ? TEXT.partial : TEXT.classesLead}</span>}
    >
      <DataTable
        label={TEXT.classes}
        columns={COLUMNS}
        rows={rows}
        rowKey={(row) => `${row.provider} ${row.class}`}
        error={reasons.error}
        retry={reasons.refetch}
        isStale={reasons.isPlaceholderData}
        expectedRows={4}
        empty={<EmptyState icon="check" title={TEXT.noFailures} />}
      />
    </Panel>
  )
}

const COLUMNS: readonly Column<Row>[] = [
  {
    header: TEXT.columns.provider,
    cell: ({ provider }) => <span className="statistics-value">{provider}</span>,
  },
  { header: TEXT.columns.class, cell: (row) => classWords(row.class) },
  { header: TEXT.columns.permanent, align: 'end', cell: ({ permanent }) => permanent.toLocaleString('en') },
  { header: TEXT.columns.temporary, align: 'end', cell: ({ temporary }) => temporary.toLocaleString('en') },
  {
    header: TEXT.columns.reply,
    cell: ({ reply, explanation }) => (
      <span className="class-reply">
        <code>{reply.text}</code>
        <span className="dimmed">{explanation}</span>
      </span>
    ),
  },
  {
    header: TEXT.columns.example,
    align: 'end',
    cell: ({ sample, provider, ...row }) =>
      sample.message_id && (
        <Link
          className="class-example"
          to="/activity/$id"
          params={{ id: sample.message_id }}
          search={sample.recipient ? { recipient: sample.recipient } : {}}
          aria-label={TEXT.exampleOf(`${provider}, ${classWords(row.class)}`)}
        >
          {TEXT.example}
        </Link>
      ),
  },
]

/** "BLACKLISTED" as "Blacklisted". */
function classWords(name: string): string {
  const words = name.toLowerCase().replaceAll('_', ' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}
