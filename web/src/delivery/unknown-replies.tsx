import { useQuery } from '@tanstack/react-query'
import { useMay } from '../session.ts'
import { Count } from '../shared/copyable.tsx'
import { type Column, DataTable } from '../shared/page/data-table.tsx'
import { Panel } from '../shared/page/page.tsx'
import { Time } from '../shared/time.tsx'
import { type UnknownReplies, unknownRepliesQuery } from './delivery-api.ts'
import { TEXT } from './text.ts'

type Reply = UnknownReplies['items'][number]

const COLUMNS: Column<Reply>[] = [
  {
    header: TEXT.reply,
    width: '70%',
    cell: ({ text, sample }) => (
      <span className="breakable" title={sample}>
        {text}
      </span>
    ),
  },
  { header: TEXT.failures, align: 'end', cell: ({ count }) => <Count value={count} /> },
  { header: TEXT.newest, wideOnly: true, cell: ({ last_at }) => <Time at={last_at} as="age" /> },
]

/** For the operator, and only when there are any: replies that a rule could be written for. */
export function UnknownRepliesPanel() {
  const mayRead = useMay({ area: 'account', only: 'first' })
  const { data } = useQuery({ ...unknownRepliesQuery, enabled: mayRead })
  if (!mayRead || data === undefined || data.items.length === 0) return null
  return (
    <Panel title={TEXT.unknownReplies} flush>
      <p className="queue-more dimmed">{TEXT.unknownRepliesLead(data.days)}</p>
      <DataTable
        label={TEXT.unknownReplies}
        columns={COLUMNS}
        rows={data.items}
        rowKey={({ text }) => text}
        empty={null}
      />
    </Panel>
  )
}
