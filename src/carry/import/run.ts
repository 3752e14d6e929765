/** Takes a source page by page into a target, and keeps in the journal what has been taken. */
import type { Kind, Source } from './entry.ts'
import type { Counts, Journal, Remark, Totals } from './journal.ts'
import type { Target } from './target/target.ts'

interface RunParts {
  source: Source
  target: Target
  /** Null in a dry run. */
  journal: Journal | null
  onPage?(progress: { fraction: number; totals: Totals }): void
  onRemark?(remark: Remark): void
}

/** @throws ApiUnavailable; a journal then says where to continue */
export async function runImport({ source, target, journal, onPage, onRemark }: RunParts): Promise<Totals> {
  const totals = journal?.totals ?? {}
  let done = 0
  for await (const section of source.sections()) {
    if (!journal?.isDone(section.id)) {
      for await (const { items, cursor } of section.pages(journal?.cursorOf(section.id) ?? null)) {
        const { counts, remarks, zones } = await target.take(items)
        for (const [kind, outcome] of counts) countsOf(totals, kind)[outcome]++
        journal?.taken(section.id, cursor, remarks, zones)
        for (const remark of remarks) onRemark?.(remark)
        onPage?.({ fraction: source.progress(done), totals })
      }
      journal?.sectionDone(section.id)
    }
    done++
    onPage?.({ fraction: source.progress(done), totals })
  }
  journal?.finish()
  return totals
}

function countsOf(totals: Totals, kind: Kind): Counts {
  const counts = totals[kind] ?? { made: 0, existing: 0, changed: 0, refused: 0 }
  totals[kind] = counts
  return counts
}

/** Entries that were not taken as they are. */
export function remarkCount(totals: Totals): number {
  return Object.values(totals).reduce((sum, { changed, refused }) => sum + changed + refused, 0)
}
