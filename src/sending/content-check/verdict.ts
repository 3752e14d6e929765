/** What is done to mail by what its scanners say. Pure. */
import type { ContentCheckConfig } from '../../platform/config/content-check.ts'
import type { SpamScore } from '../../protocols/scanners/spam-score.ts'

/** From the mildest to the strictest. `pass`: it is sent as it is. */
const LEVELS = ['pass', 'tag', 'hold', 'refuse'] as const
export type Level = (typeof LEVELS)[number]

export interface Verdict {
  level: Level
  /** For a person, such as `score 15.3`; empty where no scorer was asked. */
  reason: string
  /** Null: no scorer has given one. */
  score: number | null
  /** False: a scanner did not answer, and the others have found nothing. */
  isChecked: boolean
}

/** `score`, `virus`: null where the scanner did not answer; undefined where it was not asked. */
export interface Findings {
  score: SpamScore | null | undefined
  virus: { name: string | null } | null | undefined
}

type Thresholds = Pick<
  ContentCheckConfig,
  'outboundTagScore' | 'outboundHoldScore' | 'outboundRefuseScore' | 'virusAction'
>

/**
 * By the points of the score. What the scorer itself calls spam is tagged at least, and what it would not take is held at
 * least, where these steps are not off: its rules know cases without points, such as a test text.
 */
export function verdictOf({ score, virus }: Findings, thresholds: Thresholds): Verdict {
  const points = score?.score ?? null
  if (virus?.name) return { ...about(points, `virus ${virus.name}`), level: thresholds.virusAction }
  const level = score ? levelOf(score, thresholds) : 'pass'
  const reason = points === null ? '' : `score ${Math.round(points * 10) / 10}`
  return {
    ...about(points, reason),
    level,
    isChecked: level !== 'pass' || (score !== null && virus !== null),
  }
}

const about = (score: number | null, reason: string) => ({ score, reason, isChecked: true })

function levelOf({ score, isSpam, rejects = false }: SpamScore, thresholds: Thresholds): Level {
  const { outboundTagScore, outboundHoldScore, outboundRefuseScore } = thresholds
  const reached = (points: number | null, isSo: boolean) => points !== null && (isSo || score >= points)
  if (reached(outboundRefuseScore, false)) return 'refuse'
  if (reached(outboundHoldScore, rejects)) return 'hold'
  return reached(outboundTagScore, isSpam || rejects) ? 'tag' : 'pass'
}
