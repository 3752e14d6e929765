/** Scales of charts. Pure. */

/** Pixels beside the curves: the labels of the scale on the left. */
export const LEFT = 44
export const RIGHT = 8
const LABEL_WIDTH = 74

/** The smallest of 1, 2 and 5 times a power of ten that is not below `max`, and at least 2, so that half of it is whole. */
export function niceTop(max: number): number {
  if (max <= 2) return max > 0 && max <= 1 ? 1 : 2
  const power = 10 ** Math.floor(Math.log10(max))
  return ([1, 2, 5, 10].find((step) => step * power >= max) ?? 10) * power
}

/** Indexes of the points that have a label: evenly apart, as many as fit, the last among them. */
export function ticks(count: number, width: number): number[] {
  const fits = Math.max(1, Math.floor((width - LEFT - RIGHT) / LABEL_WIDTH))
  const step = Math.max(1, Math.ceil((count - 1) / fits))
  return Array.from({ length: count }, (_, index) => index).filter(
    (index) => (count - 1 - index) % step === 0,
  )
}
