/** Statistics as CSV: one line per entry, one column per count. */
import { isPlainObject } from '../base/values.ts'
import type { Reply } from '../http/reply.ts'
import { type Cell, csvReply } from './csv.ts'
import type { Stats } from './stats.ts'

export function statsCsv({ stats }: Stats): Reply {
  const lines = stats.map((entry) => new Map(cellsIn(entry, '')))
  const head = [...(lines[0]?.keys() ?? ['time'])]
  return csvReply(
    head,
    lines.map((line) => head.map((name) => line.get(name) ?? null)),
    'stats',
  )
}

/** Members by path, such as `failed.permanent.bounce`. */
function cellsIn(members: Record<string, unknown>, path: string): [string, Cell][] {
  return Object.entries(members).flatMap(([name, value]): [string, Cell][] =>
    isPlainObject(value) ? cellsIn(value, `${path}${name}.`) : [[path + name, value as Cell]],
  )
}
