/** How mailbox providers took the mail of the last 7 days; the worst one, and why. */
import { Skeleton } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { percent } from '../shared/charts/spans.ts'
import { failedShare, type ProviderFigures, worstProvider } from '../shared/mail/reasons-api.ts'
import { type Column, DataTable } from '../shared/page/data-table.tsx'
import { Panel } from '../shared/page/page.tsx'
import { Failure } from '../shared/page/states.tsx'
import { reasonsQuery } from './overview-queries.ts'
import { TEXT } from './text.ts'

const PROVIDERS_SHOWN = 6

export function Providers() {
  const reasons = useQuery(reasonsQuery)
  if (reasons.data === undefined)
    return reasons.error === null ? (
      <Skeleton height={260} radius="lg" role="status" aria-label="Loading" />
    ) : (
      <Failure title={TEXT.worst} error={reasons.error} retry={() => reasons.refetch()} />
    )
  const { providers } = reasons.data
  const worst = worstProvider(providers)
  return (
    <Panel title={TEXT.worst} flush>
      {worst && <Worst worst={worst} />}
      {!worst && (
        <p className="providers-note">{providers.length === 0 ? TEXT.nothingSent : TEXT.noneWorse}</p>
      )}
      {providers.length > 0 && (
        <DataTable
          label={TEXT.worst}
          columns={COLUMNS}
          rows={providers.slice(0, PROVIDERS_SHOWN)}
          rowKey={({ provider }) => provider}
          empty={null}
        />
      )}
    </Panel>
  )
}

function Worst({ worst }: { worst: ProviderFigures }) {
  const { provider, failures } = worst
  const main = failures.find(({ permanent }) => permanent > 0) ?? failures[0]
  return (
    <div className="provider-worst">
      <p className="provider-title">
        {TEXT.worstOf(provider, percent(worst.permanent_failed, worst.delivered + worst.permanent_failed))}
      </p>
      {main && (
        <>
          <p>
            <span className="dimmed">{TEXT.mostly}:</span>{' '}
            <code className="provider-reply">{main.reply.text}</code>
          </p>
          <p>
            <span className="dimmed">{TEXT.meaning}:</span> {main.explanation}
          </p>
        </>
      )}
      <p className="provider-links">
        <Link to="/activity" search={{ provider, event: 'bounced', span: '7d' }}>
          {TEXT.seeFailures}
        </Link>
        {main?.sample.message_id && (
          <Link
            to="/activity/$id"
            params={{ id: main.sample.message_id }}
            search={main.sample.recipient ? { recipient: main.sample.recipient } : {}}
          >
            {TEXT.seeSample}
          </Link>
        )}
      </p>
    </div>
  )
}

const COLUMNS: readonly Column<ProviderFigures>[] = [
  {
    header: TEXT.provider,
    cell: ({ provider }) => (
      <Link className="row-link" to="/activity" search={{ provider, span: '7d' }}>
        {provider}
      </Link>
    ),
  },
  { header: TEXT.delivered, align: 'end', cell: ({ delivered }) => delivered.toLocaleString('en') },
  {
    header: TEXT.deferred,
    means: TEXT.deferredMeans,
    align: 'end',
    wideOnly: true,
    cell: ({ temporary_failed }) => temporary_failed.toLocaleString('en'),
  },
  {
    header: TEXT.failedColumn,
    means: TEXT.failedMeans,
    align: 'end',
    width: '260px',
    cell: (one) => (
      <span className="share">
        <span className="share-bar" aria-hidden="true">
          <span style={{ width: `${Math.max(failedShare(one) * 100, one.permanent_failed > 0 ? 2 : 0)}%` }} />
        </span>
        {percent(one.permanent_failed, one.delivered + one.permanent_failed)}
      </span>
    ),
  },
]
