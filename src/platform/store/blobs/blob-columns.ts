/** Columns that name blobs. A new one that is missing here fails a test (carry/migrate/every-table.test.ts). */
interface BlobColumn {
  table: string
  column: string
  /** A JSON list of names; else one name, or null. */
  isList: boolean
}

export const BLOB_COLUMNS: readonly BlobColumn[] = [
  { table: 'messages', column: 'blobs_json', isList: true },
  { table: 'inbox', column: 'raw_blob', isList: false },
  { table: 'suppression_imports', column: 'blob', isList: false },
  { table: 'validation_jobs', column: 'blob', isList: false },
]

/** Names that a value of such a column holds. */
export const blobsIn = ({ isList }: BlobColumn, value: string): string[] =>
  isList ? (JSON.parse(value) as string[]) : [value]

/** Condition for rows that name any. */
export const namesBlobs = ({ column, isList }: BlobColumn): string =>
  `${column} IS NOT NULL${isList ? ` AND ${column} <> '[]'` : ''}`
