/** Statistics as CSV: one line per entry, one column per count. */
import type { CsvValue } from '../../../base/csv.ts'
import { isPlainObject } from '../../../base/values.ts'
import { csvReply, type Reply } from '../../../platform/http/answer/reply.ts'
import type { Stats } from './stats.ts'

export function statsCsv({ stats }: Stats): Reply {
  const lines = stats.map((entry) => new Map(cellsIn(entry, '')))
  const head = [...(lines[0]?.keys() ?? ['time'])]
  return csvReply(
    'stats.csv',
    head,
    lines.map((line) => head.map((name) => line.get(name) ?? null)),
  )
}

/** Members by path, such as `failed.permanent.bounce`. */
function cellsIn(members: Record<string, unknown>, path: string): [string, CsvValue][] {
  return Object.entries(members).flatMap(([name, value]): [string, CsvValue][] =>
    isPlainObject(value) ? cellsIn(value, `${path}${name}.`) : [[path + name, value as CsvValue]],
  )
}
