/**
 * The band that a domain's figures put it in (dynamic-pools.md sections 3 and 4). Pure: figures, limits and times are given.
 */
import { spread } from '../../base/flow/spread.ts'

export const BANDS = ['dynamic_good', 'dynamic_poor', 'dynamic_new'] as const
export type Band = (typeof BANDS)[number]

export const isBand = (text: string): text is Band => (BANDS as readonly string[]).includes(text)

/** Counts of mail of one domain over the window. */
export interface DomainFigures {
  processed: number
  bounced: number
  delivered: number
  complained: number
}

/** Rates are millionths: as whole numbers they compare exactly. */
export interface BandLimits {
  bouncePpm: number
  complaintPpm: number
  /** Fewer processed messages than this are new; from `poorVolume` on a rate may be poor all the same. */
  goodVolume: number
  poorVolume: number
  /** Checks in a row without a poor result after which a domain leaves the poor band. */
  recoverChecks: number
}

export interface Verdict {
  band: Band
  reason: string
  /** Band of each figure alone. */
  bands: { bounceRate: Band; complaintRate: Band; processed: Band }
}

const PPM = 1_000_000

/** Limits are inclusive. Without mail to divide by, a rate is not poor. */
const isOver = (count: number, of: number, limitPpm: number): boolean => of > 0 && count * PPM > limitPpm * of

/** The result of one check: the first line of section 3 that applies. */
export function judge(figures: DomainFigures, limits: BandLimits): Verdict {
  const { processed, bounced, delivered, complained } = figures
  const bounces = isOver(bounced, processed, limits.bouncePpm)
  const complaints = isOver(complained, delivered, limits.complaintPpm)
  const isNew = processed < limits.goodVolume
  const poorIf = (isPoor: boolean): Band => (isPoor ? 'dynamic_poor' : 'dynamic_good')
  return {
    ...outcome(processed < limits.poorVolume, bounces, complaints, isNew),
    bands: {
      bounceRate: poorIf(bounces),
      complaintRate: poorIf(complaints),
      processed: isNew ? 'dynamic_new' : 'dynamic_good',
    },
  }
}

function outcome(
  isTooFew: boolean,
  bounces: boolean,
  complaints: boolean,
  isNew: boolean,
): Pick<Verdict, 'band' | 'reason'> {
  if (isTooFew) return { band: 'dynamic_new', reason: 'processed_count in new threshold' }
  if (bounces && complaints) return { band: 'dynamic_poor', reason: 'Multiple metrics in poor threshold' }
  if (bounces) return { band: 'dynamic_poor', reason: 'bounce_rate in poor threshold' }
  if (complaints) return { band: 'dynamic_poor', reason: 'complaint_rate in poor threshold' }
  if (isNew) return { band: 'dynamic_new', reason: 'processed_count in new threshold' }
  return { band: 'dynamic_good', reason: 'Multiple metrics in good threshold' }
}

/**
 * Where a check leaves an enrolled domain. One poor result moves it into the poor band; `recoverChecks` results in a row
 * that are not poor move it out.
 */
export function moved(
  present: { band: Band; cleanChecks: number },
  result: Band,
  { recoverChecks }: BandLimits,
): { band: Band; cleanChecks: number } {
  const cleanChecks = result === 'dynamic_poor' ? 0 : Math.min(present.cleanChecks + 1, recoverChecks)
  const stays = present.band === 'dynamic_poor' && cleanChecks < recoverChecks
  return { band: stays ? present.band : result, cleanChecks }
}

/** In millionths, rounded; null: nothing to divide by. */
export const ratePpm = (count: number, of: number): number | null =>
  of === 0 ? null : Math.round((count * PPM) / of)

/** As a fraction. */
export const fractionOf = (ppm: number | null): number | null => (ppm === null ? null : Number(ppm) / PPM)

/**
 * The next check after a time: at a point of the interval that follows from the domain's id, so that domains enrolled at
 * once are not checked at once, and never twice for checks that were missed.
 */
export function nextCheckAt(domainId: string, afterMs: number, intervalMs: number): number {
  const offset = spread(domainId) % intervalMs
  return (Math.floor((afterMs - offset) / intervalMs) + 1) * intervalMs + offset
}
