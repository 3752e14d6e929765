/** Settings of scanners: of received mail, and of what is sent. */
import { SECOND_MS } from '../../base/time/durations.ts'
import { duration, oneOf, quoted, type Readers, withoutBrackets } from './parsers.ts'

export type ContentCheckConfig = ReturnType<typeof readContentCheck>

export interface Scorer {
  kind: 'rspamd' | 'spamd'
  host: string
  port: number
}

export function readContentCheck({ setting, optional, faults }: Readers) {
  const config = {
    /** Scores received mail; null: the service's own checks do. */
    spamScorer: optional('SPAM_SCORER', scorer),
    /** Scores mail before it is sent; null: none does. */
    outboundScorer: optional('OUTBOUND_CHECK', scorer),
    /** Points from which mail is sent with a field that says so, waits for a person, or is refused; null: never. */
    outboundTagScore: setting('OUTBOUND_TAG_SCORE', pointsOrOff, () => 6),
    outboundHoldScore: setting('OUTBOUND_HOLD_SCORE', pointsOrOff, () => 15),
    outboundRefuseScore: setting<number | null>('OUTBOUND_REFUSE_SCORE', pointsOrOff, () => null),
    /** Searches the files of received mail and of what is sent for viruses; null: nothing does. */
    clamav: optional('CLAMAV', clamd),
    /** What is done to mail before it is sent in which a virus is found. */
    virusAction: setting<'hold' | 'refuse'>('CLAMAV_ACTION', oneOf(['hold', 'refuse']), () => 'refuse'),
    /** A scanner that takes longer has not answered. */
    outboundCheckTimeoutMs: setting('OUTBOUND_CHECK_TIMEOUT', duration, () => 10 * SECOND_MS),
    /** What becomes of mail about which a scanner does not answer. */
    outboundCheckFailure: setting<'send' | 'wait'>(
      'OUTBOUND_CHECK_FAILURE',
      oneOf(['send', 'wait']),
      () => 'send',
    ),
  }
  const steps = [config.outboundTagScore, config.outboundHoldScore, config.outboundRefuseScore]
  const given = steps.filter((points) => points !== null)
  if (given.some((points, at) => points < (given[at - 1] ?? 0)))
    faults.push(
      'SENDWRIGHT_OUTBOUND_TAG_SCORE, SENDWRIGHT_OUTBOUND_HOLD_SCORE and SENDWRIGHT_OUTBOUND_REFUSE_SCORE must not fall in this order',
    )
  return config
}

const SCORER_PORTS = { 'rspamd:': 11_333, 'spamd:': 783 } as const

function scorer(text: string): Scorer {
  const url = URL.parse(text)
  const isKnown = url?.protocol === 'rspamd:' || url?.protocol === 'spamd:'
  if (!url || !isKnown || !url.hostname || url.username || !['', '/'].includes(url.pathname))
    throw new Error(`${quoted(text)} is not rspamd://host:port or spamd://host:port`)
  const protocol = url.protocol as keyof typeof SCORER_PORTS
  return {
    kind: protocol === 'rspamd:' ? 'rspamd' : 'spamd',
    host: withoutBrackets(url.hostname),
    port: Number(url.port || SCORER_PORTS[protocol]),
  }
}

const CLAMD_PORT = 3_310

function clamd(text: string): { path: string } | { host: string; port: number } {
  const [, path] = /^unix:(\/[\x21-\x7e]+)$/.exec(text) ?? []
  if (path !== undefined) return { path }
  const url = URL.parse(text)
  if (url?.protocol !== 'clamd:' || !url.hostname || url.username || !['', '/'].includes(url.pathname))
    throw new Error(`${quoted(text)} is not clamd://host:port or unix:/path/of/the/socket`)
  return { host: withoutBrackets(url.hostname), port: Number(url.port || CLAMD_PORT) }
}

const POINTS_MAX = 1_000

/** @throws Error unless it is above 0 and at most POINTS_MAX */
export function spamPoints(text: string): number {
  const points = Number(text)
  if (!/^\d+(?:\.\d+)?$/.test(text) || points <= 0 || points > POINTS_MAX)
    throw new Error(`${quoted(text)} is not a number of points up to ${POINTS_MAX}`)
  return points
}

const pointsOrOff = (text: string): number | null => (text === 'off' ? null : spamPoints(text))
