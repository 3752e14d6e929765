/** The order of items, and their pages (metrics-logs.md section 1, rules 12 and 13). */

/** Values of an item, in the order of the dimensions; those of time are Unix milliseconds. */
export interface Item {
  values: readonly (string | null)[]
}
export type Compare<I extends Item> = (a: I, b: I) => number

/** By a dimension or by a number; ties by the values of the dimensions. */
export function comparing<I extends Item>(
  dimensions: readonly string[],
  by: string | ((item: I) => number),
  descending: boolean,
): Compare<I> {
  const each = dimensions.map((name, at) => comparingAt<I>(at, name === 'time' || name === 'timestamp'))
  const first =
    typeof by === 'string' ? (each[dimensions.indexOf(by)] as Compare<I>) : (a: I, b: I) => by(a) - by(b)
  const sign = descending ? -1 : 1
  return (a, b) => {
    let order = sign * first(a, b)
    for (let at = 0; order === 0 && at < each.length; at++) order = (each[at] as Compare<I>)(a, b)
    return order
  }
}

function comparingAt<I extends Item>(at: number, isTime: boolean): Compare<I> {
  if (isTime) return (a, b) => Number(a.values[at]) - Number(b.values[at])
  return (a, b) => compareTexts(a.values[at] ?? '', b.values[at] ?? '')
}

/** By code points, as the databases compare. JavaScript's own order is another for characters outside the BMP. */
function compareTexts(a: string, b: string): number {
  if (a === b) return 0
  const [length, other] = [a.length, b.length]
  for (let at = 0; at < length && at < other; at++) {
    const [one, two] = [a.charCodeAt(at), b.charCodeAt(at)]
    if (one === two) continue
    const [isSurrogate, isOther] = [isHalf(one), isHalf(two)]
    return isSurrogate === isOther ? one - two : isSurrogate ? 1 : -1
  }
  return length - other
}

const isHalf = (code: number) => code >= 0xd800 && code <= 0xdfff

/** A page of all items, which are sorted in place. */
export function pageOf<I extends Item>(
  items: I[],
  compare: Compare<I>,
  { skip, limit }: { skip: number; limit: number },
): { rows: I[]; total: number } {
  return { rows: items.sort(compare).slice(skip, skip + limit), total: items.length }
}
