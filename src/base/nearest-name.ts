/** The name that is the fewest edits away; null: none is near. Letter case and a missing prefix such as `o:` cost nothing. */
export function nearestName(name: string, known: Iterable<string>): string | null {
  const given = name.toLowerCase()
  let best: string | null = null
  let limit = given.length <= 3 ? 1 : given.length <= 6 ? 2 : 3
  for (const candidate of known) {
    const lower = candidate.toLowerCase()
    const forms = /^\w:/.test(lower) ? [lower, lower.slice(2)] : [lower]
    const edits = Math.min(...forms.map((form) => editsBetween(given, form, limit)))
    if (edits > limit) continue
    best = candidate
    limit = edits - 1
  }
  return best
}

/** Letters added, removed, replaced, or swapped with the next one; `limit + 1` for lengths that differ by more than `limit`. */
function editsBetween(one: string, other: string, limit: number): number {
  if (Math.abs(one.length - other.length) > limit) return limit + 1
  let earlier: number[] = []
  let previous = Array.from({ length: other.length + 1 }, (_, at) => at)
  for (let row = 1; row <= one.length; row++) {
    const current = [row]
    for (let at = 1; at <= other.length; at++) {
      const replaced = cell(previous, at - 1) + (one[row - 1] === other[at - 1] ? 0 : 1)
      const isSwapped = row > 1 && one[row - 1] === other[at - 2] && one[row - 2] === other[at - 1]
      const swapped = isSwapped ? cell(earlier, at - 2) + 1 : replaced
      current.push(Math.min(cell(previous, at) + 1, cell(current, at - 1) + 1, replaced, swapped))
    }
    earlier = previous
    previous = current
  }
  return cell(previous, other.length)
}

const cell = (row: readonly number[], at: number) => row[at] as number
