/** A comparison of two texts line by line, for showing them side by side. */

export interface DiffRow {
  /** `changed`: both sides have a line here, and they differ. */
  kind: 'same' | 'changed' | 'removed' | 'added'
  /** Line and its number from 1; undefined: this side has none here. */
  left?: { number: number; text: string }
  right?: { number: number; text: string }
}

/**
 * Cells of the table of common lines: 2,000 lines against 2,000. Beyond that the differing middle is shown as one
 * change, so that two long texts cannot freeze the page.
 */
const CELLS_MAX = 4_000_000

/** Rows of both texts in order. Removed and added lines of one change stand side by side. */
export function diffLines(leftText: string, rightText: string): DiffRow[] {
  const [left, right] = [splitLines(leftText), splitLines(rightText)]
  let head = 0
  while (head < left.length && head < right.length && left[head] === right[head]) head += 1
  let tail = 0
  const shorter = Math.min(left.length, right.length) - head
  while (tail < shorter && left.at(-1 - tail) === right.at(-1 - tail)) tail += 1
  const pairs: [number, number][] = Array.from({ length: head }, (_, at) => [at, at])
  const [leftEnd, rightEnd] = [left.length - tail, right.length - tail]
  for (const [a, b] of commonLines(left.slice(head, leftEnd), right.slice(head, rightEnd)))
    pairs.push([head + a, head + b])
  for (let at = 0; at < tail; at += 1) pairs.push([leftEnd + at, rightEnd + at])
  return rowsOf(left, right, pairs)
}

/** Lines that differ, of either side. */
export const changedRows = (rows: readonly DiffRow[]) => rows.filter(({ kind }) => kind !== 'same').length

const splitLines = (text: string) => (text === '' ? [] : text.replace(/\r?\n$/, '').split(/\r?\n/))

/** Places of a longest common subsequence, by the table of lengths. */
function commonLines(left: readonly string[], right: readonly string[]): [number, number][] {
  const width = right.length + 1
  if ((left.length + 1) * width > CELLS_MAX) return []
  const lengths = new Uint32Array((left.length + 1) * width)
  const at = (a: number, b: number) => lengths[a * width + b] ?? 0
  for (let a = left.length - 1; a >= 0; a -= 1)
    for (let b = right.length - 1; b >= 0; b -= 1)
      lengths[a * width + b] =
        left[a] === right[b] ? at(a + 1, b + 1) + 1 : Math.max(at(a + 1, b), at(a, b + 1))
  const pairs: [number, number][] = []
  for (let a = 0, b = 0; a < left.length && b < right.length; ) {
    if (left[a] === right[b]) pairs.push([a++, b++])
    else if (at(a + 1, b) >= at(a, b + 1)) a += 1
    else b += 1
  }
  return pairs
}

function rowsOf(
  left: readonly string[],
  right: readonly string[],
  pairs: readonly (readonly [number, number])[],
): DiffRow[] {
  const rows: DiffRow[] = []
  const line = (lines: readonly string[], at: number) => ({ number: at + 1, text: lines[at] ?? '' })
  let [a, b] = [0, 0]
  for (const [nextA, nextB] of [...pairs, [left.length, right.length] as const]) {
    while (a < nextA || b < nextB) {
      const [hasLeft, hasRight] = [a < nextA, b < nextB]
      rows.push({
        kind: hasLeft && hasRight ? 'changed' : hasLeft ? 'removed' : 'added',
        ...(hasLeft && { left: line(left, a++) }),
        ...(hasRight && { right: line(right, b++) }),
      })
    }
    if (nextA < left.length && nextB < right.length)
      rows.push({ kind: 'same', left: line(left, a++), right: line(right, b++) })
  }
  return rows
}
