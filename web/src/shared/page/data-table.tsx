/** A table with columns, links in rows, and buttons for pages. */
import { Button, Group, Skeleton } from '@mantine/core'
import type { ReactNode } from 'react'
import { Icon } from '../../look/icons.tsx'
import { Term } from '../term.tsx'
import { TEXT } from '../text.ts'
import type { PageLinks } from './paging.ts'
import { Failure } from './states.tsx'

export interface Column<Row> {
  /** Heading of the column, and its label on a phone. */
  header: string
  /** What the heading means; shown on hover and focus. */
  means?: string
  cell: (row: Row) => ReactNode
  /** Default `start`; numbers: `end`. */
  align?: 'start' | 'end'
  /** CSS width; default: as its content needs. */
  width?: string
  /** Left out on a phone. */
  wideOnly?: boolean
  /** What can be done with the row: its heading is for screen readers only. */
  isButtons?: boolean
  /** Sorts by this column; undefined: it cannot be sorted by. */
  onSort?: () => void
  sorted?: 'ascending' | 'descending'
}

/** The column of a row's buttons. */
export const BUTTONS = { header: TEXT.change, align: 'end', isButtons: true } as const

interface DataTableProps<Row> {
  /** What the rows are; read by screen readers. */
  label: string
  columns: readonly Column<Row>[]
  /** Undefined while they are loaded. */
  rows: readonly Row[] | undefined
  rowKey: (row: Row) => string
  /** Heading of the rows that follow, of one key each; undefined: the row is in no group. Rows of a group follow each other. */
  groupOf?: (row: Row) => { key: string; heading: ReactNode } | undefined
  error?: Error | null
  retry?: () => unknown
  /** The rows shown are those of the page before; the new ones are on their way. */
  isStale?: boolean
  /** Shown instead of rows; says what to do. */
  empty: ReactNode
  links?: PageLinks | undefined
  /** A link of `links` was chosen. */
  onPage?: (link: string) => void
  /** Class of the table, for a layout of its own on a phone. */
  className?: string
  /** Rows to keep space for while loading. */
  expectedRows?: number
}

const EXPECTED_ROWS = 8

/**
 * Rows of a list. While the first page is loaded, grey rows take its space; while another is loaded, the old rows stay. A
 * row's main link has the class `row-link`: it takes the focus of j and k, and a click anywhere in the row opens it. On a
 * phone each row is a card.
 */
export function DataTable<Row>(props: DataTableProps<Row>) {
  const { label, columns, rows, rowKey, groupOf, error = null, retry, isStale, empty, links, onPage } = props
  if (rows === undefined && error !== null)
    return <Failure title={`${label}: cannot be read`} error={error} {...(retry && { retry })} />
  if (rows?.length === 0 && !links?.previous && !links?.next)
    return <div className="table-empty">{empty}</div>
  return (
    <>
      {error !== null && (
        <Failure title={`${label}: cannot be read`} error={error} {...(retry && { retry })} />
      )}
      <div className="table-scroll" data-stale={isStale || undefined}>
        <table
          className={`data-table ${props.className ?? ''}`}
          aria-label={label}
          data-pairs={columns.length === 2 || undefined}
          aria-busy={rows === undefined || isStale === true}
        >
          <thead>
            <tr>
              {columns.map((column) => (
                <HeaderCell key={column.header} column={column} />
              ))}
            </tr>
          </thead>
          <tbody>
            {rows === undefined ? (
              <LoadingRows count={props.expectedRows ?? EXPECTED_ROWS} columns={columns.length} />
            ) : (
              rows.flatMap((row, index) => [
                ...headingBefore(rows, index, columns.length, groupOf),
                <tr key={rowKey(row)}>
                  {columns.map(({ header, cell, align, wideOnly, isButtons }) => (
                    <td
                      key={header}
                      data-label={isButtons ? undefined : header}
                      data-buttons={isButtons}
                      data-align={align}
                      data-wide-only={wideOnly || undefined}
                    >
                      {cell(row)}
                    </td>
                  ))}
                </tr>,
              ])
            )}
          </tbody>
        </table>
      </div>
      {onPage && rows !== undefined && (
        <PageButtons links={links} onPage={onPage} isBusy={isStale === true} />
      )}
    </>
  )
}

/** The heading of the group that begins with this row. */
function headingBefore<Row>(
  rows: readonly Row[],
  index: number,
  columns: number,
  groupOf: DataTableProps<Row>['groupOf'],
) {
  const group = groupOf?.(rows[index] as Row)
  const before = index > 0 ? groupOf?.(rows[index - 1] as Row) : undefined
  if (group === undefined || group.key === before?.key) return []
  return [
    <tr key={`group ${group.key}`} className="group-row">
      <th scope="colgroup" colSpan={columns}>
        {group.heading}
      </th>
    </tr>,
  ]
}

function HeaderCell<Row>({ column }: { column: Column<Row> }) {
  const { header, means, align, width, wideOnly, isButtons, onSort, sorted } = column
  return (
    <th
      scope="col"
      data-align={align}
      data-wide-only={wideOnly || undefined}
      {...(width !== undefined && { style: { width } })}
      {...(sorted && { 'aria-sort': sorted })}
    >
      {onSort ? (
        <button type="button" className="sort-button" onClick={onSort}>
          {header}
          {sorted && <span aria-hidden="true">{sorted === 'ascending' ? ' ↑' : ' ↓'}</span>}
        </button>
      ) : isButtons ? (
        <span className="visually-hidden">{header}</span>
      ) : means !== undefined ? (
        <Term word={header} means={means} />
      ) : (
        header
      )}
    </th>
  )
}

function LoadingRows({ count, columns }: { count: number; columns: number }) {
  return Array.from({ length: count }, (_, row) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: grey rows without content
    <tr key={row}>
      {Array.from({ length: columns }, (_, column) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: grey rows without content
        <td key={column}>
          <Skeleton height={14} width={`${45 + ((row * 7 + column * 13) % 40)}%`} />
        </td>
      ))}
    </tr>
  ))
}

/** Previous and next page; nothing if the list has one page. */
export function PageButtons(props: {
  links: PageLinks | undefined
  onPage: (link: string) => void
  isBusy: boolean
}) {
  const { links, onPage, isBusy } = props
  const { previous, next } = links ?? {}
  if (!previous && !next) return null
  return (
    <nav aria-label={TEXT.pages}>
      <Group justify="center" gap="xs" className="page-buttons">
        <Button
          variant="default"
          size="sm"
          disabled={!previous}
          leftSection={<Icon name="back" size={16} />}
          onClick={() => previous && onPage(previous)}
        >
          {TEXT.previous}
        </Button>
        <Button
          variant="default"
          size="sm"
          disabled={!next}
          loading={isBusy}
          rightSection={<Icon name="forward" size={16} />}
          onClick={() => next && onPage(next)}
        >
          {TEXT.next}
        </Button>
      </Group>
    </nav>
  )
}
