/** Lists as CSV files, for clients that prefer them to JSON. */
import { type CsvValue, csvBytes } from '../../../base/csv.ts'
import { Reply } from './reply.ts'

/** RFC 7111 §4. */
const CSV_TYPE = 'text/csv; charset=utf-8; header=present'

/**
 * A CSV file that is written while the client takes it.
 * @param filename printable ASCII without quotes
 * @param records closed when the client leaves
 */
export const csvReply = (
  filename: string,
  header: readonly string[],
  records: AsyncIterable<readonly CsvValue[]> | Iterable<readonly CsvValue[]>,
) =>
  new Reply(
    { kind: 'stream', source: csvBytes(header, records), contentType: CSV_TYPE },
    { headers: { 'content-disposition': `attachment; filename="${filename}"` } },
  )

/**
 * Whether an Accept field names CSV, with at least the weight of JSON (RFC 9110 §12.5.1). Ranges such as `*` alone mean
 * JSON.
 */
export function prefersCsv(accept: string | undefined): boolean {
  const csv = weightOf('text/csv', accept ?? '')
  return csv > 0 && csv >= weightOf('application/json', accept ?? '')
}

/** 0: not named. */
function weightOf(type: string, accept: string): number {
  for (const range of accept.toLowerCase().split(',')) {
    const [name, ...params] = range.split(';').map((part) => part.trim())
    if (name !== type) continue
    const weight = params.find((param) => param.startsWith('q='))
    return weight === undefined ? 1 : Number(weight.slice(2)) || 0
  }
  return 0
}
