/** Frame of a page with a filter, a table and its states. */
import type { ReactNode } from 'react'
import { type Column, DataTable } from './data-table.tsx'
import { Page, PageHeader, type PageHeaderProps, Panel } from './page.tsx'
import type { PageLinks } from './paging.ts'

interface ListPageProps<Row> extends PageHeaderProps {
  /** The query of the list. */
  list: { error: Error | null; refetch: () => unknown; isPlaceholderData?: boolean }
  /** Undefined while they are loaded. */
  rows: readonly Row[] | undefined
  rowKey: (row: Row) => string
  columns: readonly Column<Row>[]
  /** Shown instead of rows; says what to do. */
  empty: ReactNode
  links?: PageLinks | undefined
  onPage?: (link: string) => void
  /** Rows to keep space for while loading. */
  expectedRows?: number
  /** Between the header and the table, such as a `FilterBar`. */
  above?: ReactNode
  /** After the table: further panels, and windows. */
  children?: ReactNode
}

/** A page with one table of rows: header, filters, table with paging, and the windows that its buttons open. */
export function ListPage<Row>(props: ListPageProps<Row>) {
  const { title, beside, lead, actions, back, list, above, children, onPage, expectedRows, ...table } = props
  return (
    <Page wide>
      <PageHeader
        title={title}
        beside={beside}
        lead={lead}
        actions={actions}
        {...(back !== undefined && { back })}
      />
      {above}
      <Panel flush>
        <DataTable
          {...table}
          label={title}
          error={list.error}
          retry={list.refetch}
          isStale={list.isPlaceholderData === true}
          {...(onPage && { onPage })}
          {...(expectedRows !== undefined && { expectedRows })}
        />
      </Panel>
      {children}
    </Page>
  )
}
