/**
 * The SMTP dialogue of attempts, kept for diagnosis. Small and bounded: the client leaves out secrets, and content is
 * one line with its size.
 */

import { insert, type Statement } from '../../../platform/store/store.ts'
import type { TranscriptEntry } from '../../../protocols/smtp/channel.ts'
import type { ClaimedDelivery } from '../claim/queue.ts'
import type { Outcome } from './outcome.ts'

/** Which attempts keep their dialogue: all, those without a 250, or none. */
export type KeepTranscripts = 'failures' | 'all' | 'off'

export interface Transcript {
  /** Unix milliseconds. */
  startedAt: number
  lines: TranscriptEntry[]
}

/** A dialogue with one recipient has about 15 lines; EHLO replies at most 100. */
const LINES_MAX = 150
const LINE_CHARS_MAX = 500

/** Records the lines of one connection; `restart` begins the dialogue of the next message on it. */
export class TranscriptRecorder {
  private lines: TranscriptEntry[] = []
  private startMs = 0

  readonly add = (entry: TranscriptEntry): void => {
    if (this.lines.length >= LINES_MAX) return
    const line = entry.line.length > LINE_CHARS_MAX ? `${entry.line.slice(0, LINE_CHARS_MAX)}...` : entry.line
    this.lines.push({ ...entry, line, ms: entry.ms - this.startMs })
  }

  /** @param ms age of the connection, from which times are counted. */
  restart(ms: number): void {
    this.lines = []
    this.startMs = ms
  }

  take(): TranscriptEntry[] {
    return this.lines
  }
}

/** The row for the outcome's transaction, or null if nothing is kept. */
export function transcriptStatement(
  keep: KeepTranscripts,
  delivery: ClaimedDelivery,
  { transcript, outcome, mxHost }: { transcript: Transcript | null; outcome: Outcome; mxHost: string | null },
): Statement | null {
  if (keep === 'off' || !transcript || transcript.lines.length === 0) return null
  if (keep === 'failures' && outcome.kind === 'delivered') return null
  return insert('transcripts', {
    delivery_id: delivery.id,
    attempt: delivery.attempts + 1,
    account_id: delivery.account_id,
    started_at: Math.floor(transcript.startedAt),
    mx_host: mxHost ?? '',
    lines_json: JSON.stringify(
      transcript.lines.map(({ ms, direction, line }) => [Math.round(ms), direction, line]),
    ),
  })
}
