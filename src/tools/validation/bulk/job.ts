/** Lists of addresses that are validated in the background, and how the API shows them (validation.md sections 1 and 3). */
import type { Of } from '../../../base/shape.ts'
import type { ValidationJobRow } from '../../../platform/store/schema.ts'
import {
  type Counts,
  type PREVIEW,
  RESULTS,
  RISKS,
  type ValidationJob,
  type ValidationResult,
} from '../shapes.ts'

const zeros = <K extends string>(names: readonly K[]) =>
  Object.fromEntries(names.map((name) => [name, 0])) as Record<K, number>

export const noCounts = (): Counts => ({ result: zeros(RESULTS), risk: zeros(RISKS) })

/** The counts with those of further results. */
export function countsWith(before: Counts, results: readonly ValidationResult[]): Counts {
  const counts = { result: { ...before.result }, risk: { ...before.risk } }
  for (const { result, risk } of results) {
    counts.result[result]++
    counts.risk[risk]++
  }
  return counts
}

/** Where the files of a job are. */
export type DownloadUrls = (job: ValidationJobRow) => { csv: string; json: string }

export function jobView(row: ValidationJobRow, urls: DownloadUrls): ValidationJob {
  return {
    id: row.list_id,
    created_at: seconds(row.created_at),
    quantity: row.quantity,
    records_processed: row.status === 'created' ? null : row.done,
    status: row.status as ValidationJob['status'],
    ...(row.status === 'uploaded' && {
      download_url: urls(row),
      summary: JSON.parse(row.counts_json) as Counts,
    }),
  }
}

/** Percentages with one decimal (rule 10). */
export function previewView(row: ValidationJobRow): Of<typeof PREVIEW> {
  const isOver = row.ended_at !== null
  return {
    id: row.list_id,
    valid: row.status === 'uploaded',
    status: isOver ? 'preview_complete' : 'preview_processing',
    quantity: row.quantity,
    created_at: seconds(row.created_at),
    summary: percentages(JSON.parse(row.counts_json) as Counts, row.done),
  }
}

function percentages({ result, risk }: Counts, done: number): Counts {
  const share = <K extends string>(counts: Record<K, number>) =>
    Object.fromEntries(
      Object.entries<number>(counts).map(([name, count]) => [
        name,
        done === 0 ? 0 : Math.round((count * 1000) / done) / 10,
      ]),
    ) as Record<K, number>
  return { result: share(result), risk: share(risk) }
}

const seconds = (ms: number) => Math.floor(Number(ms) / 1000)
