/** The straight line through samples over time, by least squares. */

export interface Sample {
  /** Unix milliseconds. */
  at: number
  value: number
}

/** Change per millisecond. Null: all samples are of one time. */
export function trendPerMs(samples: readonly Sample[]): number | null {
  const meanAt = mean(samples, ({ at }) => at)
  const meanValue = mean(samples, ({ value }) => value)
  const spread = mean(samples, ({ at }) => (at - meanAt) ** 2)
  return spread > 0 ? mean(samples, ({ at, value }) => (at - meanAt) * (value - meanValue)) / spread : null
}

const mean = (samples: readonly Sample[], of: (sample: Sample) => number) =>
  samples.reduce((sum, sample) => sum + of(sample), 0) / samples.length
