import { MINUTE_MS } from '../../base/time/durations.ts'

/** Longest wait for each step, in milliseconds. */
export interface SmtpTimeouts {
  connect: number
  /** TLS handshake. */
  tls: number
  greeting: number
  ehlo: number
  auth: number
  mail: number
  rcpt: number
  /** Reply to DATA. */
  data: number
  /** Until the server takes the next block of content. */
  block: number
  /** All of the content: without it a server could take a block at a time for days. */
  content: number
  dot: number
  quit: number
}

/** From RFC 5321 §4.5.3.2 where it names a time. */
export const DEFAULT_TIMEOUTS: SmtpTimeouts = {
  connect: 30_000,
  tls: 60_000,
  greeting: 5 * MINUTE_MS,
  ehlo: 5 * MINUTE_MS,
  auth: 5 * MINUTE_MS,
  mail: 5 * MINUTE_MS,
  rcpt: 5 * MINUTE_MS,
  data: 2 * MINUTE_MS,
  block: 3 * MINUTE_MS,
  content: 60 * MINUTE_MS,
  dot: 10 * MINUTE_MS,
  quit: 5_000,
}
