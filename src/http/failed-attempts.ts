/**
 * Slows down guessing of keys: ten failed authentications from one address within a minute delay its
 * further refusals by a second each, for five minutes. Valid credentials are never delayed, nor is a
 * loopback address, and no account is ever locked.
 */
import { isIPv6 } from 'node:net'
import type { Clock } from '../base/clock.ts'

const FAILURES_MAX = 10
const WINDOW_MS = 60_000
const DELAY_MS = 1_000
const DELAYED_FOR_MS = 5 * 60_000
/** Addresses remembered at once, some 3 MB; over it the one seen longest ago is forgotten. */
const ADDRESSES_MAX = 10_000
/** Refusals held back at once. Beyond it they go out at once: a flood must not hold memory for its delay. */
const WAITING_MAX = 1_000

interface Attempts {
  /** Monotonic times of the last failures, oldest first, at most FAILURES_MAX. */
  failuresMs: number[]
  delayedUntilMs: number
}

export interface FailedAttempts {
  /** Notes wrong credentials from this address. */
  failed(address: string): void
  /** Resolves when a refusal may go out to this address. */
  delay(address: string): Promise<void>
}

export function createFailedAttempts(clock: Clock): FailedAttempts {
  const byNetwork = new Map<string, Attempts>()
  let waiting = 0

  return {
    failed(address) {
      if (isLoopback(address)) return
      const network = networkOf(address)
      const attempts = byNetwork.get(network) ?? { failuresMs: [], delayedUntilMs: 0 }
      byNetwork.delete(network)
      if (byNetwork.size >= ADDRESSES_MAX) byNetwork.delete(byNetwork.keys().next().value as string)
      byNetwork.set(network, attempts)
      const nowMs = clock.monotonic()
      attempts.failuresMs = attempts.failuresMs.filter((atMs) => nowMs - atMs < WINDOW_MS)
      attempts.failuresMs.push(nowMs)
      if (attempts.failuresMs.length < FAILURES_MAX) return
      attempts.failuresMs.shift()
      attempts.delayedUntilMs = nowMs + DELAYED_FOR_MS
    },

    async delay(address) {
      if (isLoopback(address) || waiting >= WAITING_MAX) return
      const attempts = byNetwork.get(networkOf(address))
      if (attempts === undefined || clock.monotonic() >= attempts.delayedUntilMs) return
      waiting += 1
      await new Promise<void>((resolve) => clock.setTimer(DELAY_MS, resolve))
      waiting -= 1
    },
  }
}

function isLoopback(address: string): boolean {
  return address.startsWith('127.') || address === '::1'
}

/** An IPv6 caller owns a /64 at least (RFC 6177), so the network counts, not the address. */
export function networkOf(address: string): string {
  if (!isIPv6(address)) return address
  const [head = '', tail = ''] = address.split('::') as [string, string?]
  const left = head === '' ? [] : head.split(':')
  const right = tail === '' ? [] : tail.split(':')
  const zeros = address.includes('::') ? Array(Math.max(0, 8 - left.length - right.length)).fill('0') : []
  return `${[...left, ...zeros, ...right].slice(0, 4).join(':')}::/64`
}
