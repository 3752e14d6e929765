import { MINUTE_MS } from '../../base/time/durations.ts'

/** Longest wait for each step, in milliseconds; from RFC 5321 §4.5.3.2 where it names a time. */
export const DEFAULT_TIMEOUTS = {
  connect: 30_000,
  /** TLS handshake. */
  tls: MINUTE_MS,
  greeting: 5 * MINUTE_MS,
  ehlo: 5 * MINUTE_MS,
  auth: 5 * MINUTE_MS,
  mail: 5 * MINUTE_MS,
  rcpt: 5 * MINUTE_MS,
  /** Reply to DATA. */
  data: 2 * MINUTE_MS,
  /** Until the server takes the next block of content. */
  block: 3 * MINUTE_MS,
  /** All of the content: without it a server could take a block at a time for days. */
  content: 60 * MINUTE_MS,
  dot: 10 * MINUTE_MS,
  quit: 5_000,
}

export type SmtpTimeouts = typeof DEFAULT_TIMEOUTS
