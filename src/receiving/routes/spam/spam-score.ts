/** What is scored, and the score. */
import type { Chunk } from '../../../protocols/message/mime-message.ts'
import type { RawHeader } from '../../../protocols/mime/split.ts'

export interface ScoredMail {
  raw: Chunk
  headers: readonly RawHeader[]
  /** The field of this reception, which is not in `raw`; without a line end. */
  received: string
  /** Envelope. */
  sender: string
  recipients: readonly string[]
  remoteAddress: string
  helo: string
}

export interface SpamScore {
  score: number
  isSpam: boolean
  /** From where on the scorer calls mail spam, if it says so. */
  required?: number
}

/** What a scorer over the network is asked; rejects when it does not answer as its protocol says. */
export type AskScorer = (
  server: { host: string; port: number },
  mail: ScoredMail,
  bytes: Buffer,
  signal: AbortSignal,
) => Promise<SpamScore>
