/** Statistics over measurements. */

/** The middle value, or the mean of the two in the middle. NaN for none. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  if (sorted.length === 0) return Number.NaN
  if (sorted.length % 2 === 1) return sorted[middle] as number
  return ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2
}

/** The smallest value that at least `share` (0 to 1) of the values do not exceed (nearest rank). NaN for none. */
export function percentile(values: ArrayLike<number>, share: number): number {
  const sorted = Float64Array.from(values).sort()
  const rank = Math.max(1, Math.ceil(share * sorted.length))
  return sorted[rank - 1] ?? Number.NaN
}

/** Milliseconds on a clock shared by all processes of the machine that is never set: CLOCK_MONOTONIC. */
export const monotonicMs = (): number => Number(process.hrtime.bigint()) / 1e6

/** With at most `digits` decimals and thousands separators. */
export const formatNumber = (value: number, digits = 1): string =>
  value.toLocaleString('en', { maximumFractionDigits: digits })
