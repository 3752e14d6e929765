/** Blocklists that addresses and domains are looked up in. Calls GET /sendwright/v1/blocklists. */
import { Badge } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useMay } from '../../session.ts'
import { Count } from '../../shared/copyable.tsx'
import { type Column, DataTable } from '../../shared/page/data-table.tsx'
import { Panel } from '../../shared/page/page.tsx'
import { type WatchedList, watchedListsQuery } from './ips-api.ts'
import { TEXT } from './text.ts'

const LOOK = { variant: 'light', tt: 'none', fw: 550 } as const

const COLUMNS: readonly Column<WatchedList>[] = [
  {
    header: TEXT.list,
    cell: ({ name, list, page }) => (
      <div className="breakable">
        {page === '' ? (
          name
        ) : (
          <a href={page} target="_blank" rel="noreferrer">
            {name}
          </a>
        )}
        <div className="dimmed queue-small">{list}</div>
      </div>
    ),
  },
  { header: TEXT.state, cell: (list) => <ListState list={list} /> },
  {
    header: TEXT.usedBy,
    wideOnly: true,
    cell: ({ used_by }) => (
      <span className="breakable">{used_by.map(({ site }) => site).join(', ') || TEXT.usedByNone}</span>
    ),
  },
  { header: TEXT.lookedUp, align: 'end', cell: ({ looked_up }) => <Count value={looked_up} /> },
]

function ListState({ list: { tests, listed } }: { list: WatchedList }) {
  const faults = tests.filter(({ usable }) => !usable).map(({ fault }) => fault)
  const [label, color] =
    listed.length > 0
      ? [TEXT.hasEntries(listed.length), 'red']
      : faults.length > 0
        ? [TEXT.unusable, 'gray']
        : tests.length > 0
          ? [TEXT.nothingListed, 'teal']
          : [TEXT.notAsked, 'gray']
  const words = [...listed.map(({ subject }) => subject), ...faults]
  return (
    <div>
      <Badge {...LOOK} color={color}>
        {label}
      </Badge>
      {words.length > 0 && <div className="dimmed queue-small breakable">{words.join('; ')}</div>}
    </div>
  )
}

/** For the operator, where any are watched. */
export function WatchedListsPanel() {
  const mayRead = useMay({ area: 'account', only: 'first' })
  const { data } = useQuery({ ...watchedListsQuery, enabled: mayRead })
  if (!mayRead || data === undefined || data.length === 0) return null
  return (
    <Panel title={TEXT.lists} flush>
      <DataTable label={TEXT.lists} columns={COLUMNS} rows={data} rowKey={({ list }) => list} empty={null} />
    </Panel>
  )
}
