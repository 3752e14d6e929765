/** What is scored, and the score. */
import type { ScannerServer } from './exchange.ts'

export interface ScoredMail {
  /** The field of this reception, which is not in its bytes; without a line end. */
  received: string
  /** Envelope. */
  sender: string
  recipients: readonly string[]
  remoteAddress: string
  helo: string
  /** Who has logged in; absent: nobody, it is mail from outside. */
  user?: string
}

export interface SpamScore {
  score: number
  isSpam: boolean
  /** From where on the scorer calls mail spam, if it says so. */
  required?: number
  /** It says that the mail must not be taken at all. Absent: it does not. */
  rejects?: boolean
}

/** What a scorer over the network is asked; rejects when it does not answer as its protocol says. */
export type AskScorer = (
  server: ScannerServer,
  mail: ScoredMail,
  bytes: Buffer,
  signal: AbortSignal,
) => Promise<SpamScore>

/** Beyond any score of a scorer. */
const POINTS_MAX = 1_000_000

/** @throws Error if it is no number that a score can be */
export function pointsOf(value: unknown): number {
  const points = Number(value)
  if (!Number.isFinite(points) || Math.abs(points) > POINTS_MAX) throw new Error('the score is no number')
  return points
}
