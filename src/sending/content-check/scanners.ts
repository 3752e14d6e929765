/**
 * The scanners that the operator has configured: a scorer of received mail, one of mail before it is sent, and clamd for
 * both. They are asked here only, each within its time limit; how often one does not answer is counted.
 *
 * A scanner that leaves a mail without an answer, and has answered no other since that one was asked, is asked about a text
 * of the service itself. If it does not answer that either it is down: until it answers such a text again, nothing waits
 * for it. No mail can have that effect on a scanner that works (decision 204).
 */
import type { Logger } from 'pino'
import type { Clock } from '../../base/time/clock.ts'
import { MINUTE_MS, SECOND_MS } from '../../base/time/durations.ts'
import type { ContentCheckConfig, Scorer } from '../../platform/config/content-check.ts'
import { pingClamd, scanForVirus } from '../../protocols/scanners/clamd.ts'
import type { ScannerServer } from '../../protocols/scanners/exchange.ts'
import { askRspamd, pingRspamd } from '../../protocols/scanners/rspamd.ts'
import type { AskScorer, ScoredMail, SpamScore } from '../../protocols/scanners/spam-score.ts'
import { askSpamd, pingSpamd } from '../../protocols/scanners/spamd.ts'
import { outgoingMail } from './outgoing-mail.ts'

export type ScannerName = 'rspamd' | 'spamd' | 'clamd'
type Direction = 'inbound' | 'outbound'

const SCORERS: Record<Scorer['kind'], { ask: AskScorer; ping: typeof pingSpamd }> = {
  rspamd: { ask: askRspamd, ping: pingRspamd },
  spamd: { ask: askSpamd, ping: pingSpamd },
}

/** Resolves to null when the scorer does not answer. Never rejects. */
export type AskScore = (mail: ScoredMail, bytes: Buffer) => Promise<SpamScore | null>

/** Resolves to null when clamd does not answer, or takes no stream of this size. Never rejects. */
export type AskVirus = (
  pieces: AsyncIterable<Uint8Array>,
  direction: Direction,
) => Promise<{ name: string | null } | null>

export interface ScannerState {
  scanner: ScannerName
  directions: readonly Direction[]
  answered: number
  failed: number
  /** Unix milliseconds; null: not yet. */
  answeredAt: number | null
  failedAt: number | null
  /** The text of the last failure. */
  error: string | null
}

export type Scanners = ReturnType<typeof createScanners>

/** A scanner that is down is asked whether it works this long after it was asked last. */
const PROBE_EVERY_MS = 2 * SECOND_MS
const PROBE = Buffer.from(
  'From: <probe@localhost>\r\nTo: <probe@localhost>\r\nSubject: probe\r\n\r\nprobe\r\n',
)

/** Spam is short: a scorer gets no more of a mail, as with `spamc`. */
export const SCORED_BYTES_MAX = 1024 * 1024
/** The client of the mail waits for its reply meanwhile. */
const INBOUND_MS_MAX = 10_000
const LOG_EVERY_MS = MINUTE_MS

export function createScanners({
  config,
  clock,
  log,
}: {
  config: ContentCheckConfig
  clock: Clock
  log: Logger
}) {
  const { spamScorer, outboundScorer, clamav, outboundCheckTimeoutMs } = config
  const timeMax: Record<Direction, number> = { inbound: INBOUND_MS_MAX, outbound: outboundCheckTimeoutMs }
  const states: ScannerState[] = []

  /** Counts what `ask` does, and bounds its time. `probe` asks about a text that the scanner always knows what to say of. */
  function bounded(
    scanner: ScannerName,
    directions: readonly [Direction, ...Direction[]],
    probe: (signal: AbortSignal) => Promise<unknown>,
  ) {
    const counts = { answered: 0, failed: 0, answeredAt: null, failedAt: null, error: null }
    const state: ScannerState = { scanner, directions, ...counts }
    states.push(state)
    let loggedAt = Number.NEGATIVE_INFINITY
    let isDown = false
    let isProbed = false
    let probedAt = Number.NEGATIVE_INFINITY

    async function findOut(): Promise<void> {
      if (isProbed || (isDown && clock.monotonic() - probedAt < PROBE_EVERY_MS)) return
      isProbed = true
      isDown = await withinTime(clock, timeMax[directions[0]], probe).then(
        () => false,
        () => true,
      )
      probedAt = clock.monotonic()
      isProbed = false
    }

    return async <T>(direction: Direction, ask: (signal: AbortSignal) => Promise<T>): Promise<T | null> => {
      if (isDown) {
        void findOut()
        state.failed++
        return null
      }
      const answeredBefore = state.answered
      try {
        const answer = await withinTime(clock, timeMax[direction], ask)
        state.answered++
        state.answeredAt = clock.now()
        return answer
      } catch (error) {
        if (state.answered === answeredBefore) void findOut()
        state.failed++
        state.failedAt = clock.now()
        state.error = (error as Error).message.slice(0, 300)
        if (clock.monotonic() - loggedAt >= LOG_EVERY_MS) {
          loggedAt = clock.monotonic()
          log.warn({ err: error, scanner, failed: state.failed }, 'a scanner does not answer')
        }
        return null
      }
    }
  }

  function scorer(given: Scorer | null, direction: Direction): AskScore | null {
    if (given === null) return null
    const score = (mail: ScoredMail, bytes: Buffer, signal: AbortSignal) =>
      SCORERS[given.kind].ask(given, mail, bytes, signal)
    const ask = bounded(given.kind, [direction], (signal) => score(PROBE_MAIL, PROBE, signal))
    return (mail, bytes) => ask(direction, (signal) => score(mail, bytes, signal))
  }

  function virusScanner(server: ScannerServer | null): AskVirus | null {
    if (server === null) return null
    const ask = bounded('clamd', ['outbound', 'inbound'], (signal) =>
      scanForVirus(server, probePieces(), signal),
    )
    return (pieces, direction) =>
      ask(direction, async (signal) => ({ name: await scanForVirus(server, pieces, signal) }))
  }

  return {
    /** Each is null where none is configured. */
    inboundScore: scorer(spamScorer, 'inbound'),
    outboundScore: scorer(outboundScorer, 'outbound'),
    virus: virusScanner(clamav),
    states: (): ScannerState[] => states.map((state) => ({ ...state })),
  }
}

const PROBE_MAIL = outgoingMail({
  helo: 'localhost',
  sender: 'probe@localhost',
  recipient: 'probe@localhost',
})

async function* probePieces(): AsyncGenerator<Uint8Array> {
  yield PROBE
}

/** @throws the reason once the time is over */
async function withinTime<T>(clock: Clock, timeMs: number, ask: (signal: AbortSignal) => Promise<T>) {
  const limit = new AbortController()
  const late = new Error(`no answer within ${timeMs / SECOND_MS} seconds`)
  const timer = clock.setTimer(timeMs, () => limit.abort(late))
  try {
    return await ask(limit.signal)
  } catch (error) {
    throw limit.signal.aborted ? late : error
  } finally {
    timer.cancel()
  }
}

/** How each configured scanner can be asked whether it is there, by the name of its setting. */
export function scannerPings({
  spamScorer,
  outboundScorer,
  clamav,
}: Pick<ContentCheckConfig, 'spamScorer' | 'outboundScorer' | 'clamav'>): {
  setting: string
  ping(signal: AbortSignal): Promise<void>
}[] {
  const scorer = (setting: string, given: Scorer | null) =>
    given === null
      ? []
      : [{ setting, ping: (signal: AbortSignal) => SCORERS[given.kind].ping(given, signal) }]
  return [
    ...scorer('SENDWRIGHT_OUTBOUND_CHECK', outboundScorer),
    ...scorer('SENDWRIGHT_SPAM_SCORER', spamScorer),
    ...(clamav === null
      ? []
      : [{ setting: 'SENDWRIGHT_CLAMAV', ping: (signal: AbortSignal) => pingClamd(clamav, signal) }]),
  ]
}
