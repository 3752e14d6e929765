/**
 * Guessing of keys and passwords, counted over HTTP and SMTP together (decision 50).
 *
 * Each wrong one counts for its address, for the two networks around it, and for the login it named. The budget of an
 * address is 10 a minute and 50 a day, that of its networks 3 and 9 times as many.
 *
 * - API keys are too long to be guessed: a right one is always accepted, at once. After ten wrong ones in a minute further
 *   refusals to that address take a second each, one after the other, for five minutes. Beyond the day's budget wrong
 *   ones get 429.
 * - Passwords are chosen by people: beyond either budget they are not checked (`createGuessingGuard`). A login that
 *   succeeded from the same network before has a budget of its own there, so that others cannot lock it out.
 *
 * Loopback addresses are exempt. No account and no login is ever locked. All this is in memory: a restart forgets it.
 */

import { Turns } from '../../../base/flow/gate.ts'
import { pause } from '../../../base/flow/pause.ts'
import { networkOf, networksOf } from '../../../base/net/ip.ts'
import { TooManyRequests } from '../../../base/process/errors.ts'
import type { Clock } from '../../../base/time/clock.ts'
import { DAY_MS, MINUTE_MS } from '../../../base/time/durations.ts'

const PER_MINUTE = 10
const PER_DAY = 50
/** The next two networks around an address, as multiples of its budget. */
const NETWORK_FACTOR = 3
const WIDE_FACTOR = 9
/** Factor of one login, tried from anywhere. Beyond it passwords are still checked: refusing them would lock out its owner. */
const LOGIN_FACTOR = 9
/**
 * Factor of one login from a network where it succeeded before. Its owner may share that network with an attacker: a small
 * budget would let the attacker lock out the owner, no budget would let passwords be found.
 */
const KNOWN_PLACE_FACTOR = 20

const DELAY_MS = 1_000
/** For a login that is tried from anywhere. */
const LOGIN_DELAY_MS = 5_000
const DELAYED_FOR_MS = 5 * MINUTE_MS
/** How far refusals to one address are queued; beyond it the answer is 429. */
const QUEUED_MS_MAX = 10_000
/** Refusals that are delayed at a time. Further ones are sent at once: a flood must not hold memory. */
const WAITING_MAX = 1_000

/**
 * Addresses, networks and logins that are remembered, of each kind; beyond it the one seen longest ago is forgotten. 5 MB,
 * or 60 MB if each of them has used up its budget, which takes millions of wrong attempts a day.
 */
const ENTRIES_MAX = 5_000
/** Clients choose the text. */
const LOGIN_LENGTH_MAX = 320

export type FailedAttempts = ReturnType<typeof createFailedAttempts>

interface RefusalQueue {
  /** Refusals are delayed until then. */
  delayedUntilMs: number
  /** When the last of the queued refusals is sent. */
  lastAtMs: number
}

export function createFailedAttempts(clock: Clock, isExempt: (address: string) => boolean = isLoopback) {
  const levels = [new Failures(1), new Failures(NETWORK_FACTOR), new Failures(WIDE_FACTOR)] as const
  const logins = new Failures(LOGIN_FACTOR)
  const knownPlaces = new Failures(KNOWN_PLACE_FACTOR)
  const queues = new Map<string, RefusalQueue>()
  let waiting = 0

  const blocked = (address: string, ofDayOnly: boolean) => {
    if (isExempt(address)) return 0
    const nowMs = clock.monotonic()
    const waits = networksOf(address).map((network, level) => {
      const failures = levels[level as 0 | 1 | 2]
      const dayMs = failures.fullDayMs(network, nowMs)
      return ofDayOnly ? dayMs : Math.max(dayMs, failures.fullMinuteMs(network, nowMs))
    })
    return Math.max(...waits)
  }
  const queueOf = (address: string) => queues.get(networkOf(address))

  /** Counts wrong credentials from this address, and the login that they were for. */
  function failed(address: string, login?: string): void {
    if (isExempt(address)) return
    const nowMs = clock.monotonic()
    for (const [level, network] of networksOf(address).entries()) {
      levels[level as 0 | 1 | 2].note(network, nowMs)
    }
    if (login !== undefined) {
      logins.note(loginKey(login), nowMs)
      knownPlaces.note(placeKey(address, login), nowMs)
    }
    const network = networkOf(address)
    if (levels[0].fullMinuteMs(network, nowMs) === 0) return
    const queue = { delayedUntilMs: nowMs + DELAYED_FOR_MS, lastAtMs: queues.get(network)?.lastAtMs ?? 0 }
    putNewest(queues, network, queue)
  }

  /** How long a refusal to this address is delayed. */
  function delayMsOf(address: string, login: string | undefined, nowMs: number): number {
    if (login !== undefined && logins.fullMs(loginKey(login), nowMs) > 0) return LOGIN_DELAY_MS
    const isDelayed = (queueOf(address)?.delayedUntilMs ?? 0) > nowMs || blocked(address, false) > 0
    return isDelayed ? DELAY_MS : 0
  }

  return {
    isExempt,
    failed,
    /** Counts a wrong API key. @throws TooManyRequests, without counting it, over a budget */
    wrongKey(address: string): void {
      const dayMs = blocked(address, true)
      if (dayMs > 0) throw new TooManyRequests(dayMs / 1000)
      const queuedMs = (queueOf(address)?.lastAtMs ?? 0) - clock.monotonic()
      if (queuedMs + DELAY_MS > QUEUED_MS_MAX) throw new TooManyRequests(queuedMs / 1000)
      failed(address)
    },
    /** Resolves when a refusal may be sent to this address. */
    async delay(address: string, login?: string): Promise<void> {
      if (isExempt(address) || waiting >= WAITING_MAX) return
      const nowMs = clock.monotonic()
      const delayMs = delayMsOf(address, login, nowMs)
      const queue = queueOf(address)
      // Only few passwords are checked; their refusals need no queue.
      const atMs = (login === undefined ? Math.max(nowMs, queue?.lastAtMs ?? 0) : nowMs) + delayMs
      if (delayMs === 0 || atMs - nowMs > QUEUED_MS_MAX) return
      if (login === undefined) {
        putNewest(queues, networkOf(address), { delayedUntilMs: queue?.delayedUntilMs ?? 0, lastAtMs: atMs })
      }
      waiting += 1
      await pause(clock, atMs - nowMs)
      waiting -= 1
    },
    /** Milliseconds until a password from this address may be checked; 0: now. */
    blockedMs: (address: string): number => blocked(address, false),
    /** The same for a login that succeeded from the address's network before. */
    blockedAtKnownPlaceMs: (address: string, login: string) =>
      isExempt(address) ? 0 : knownPlaces.fullMs(placeKey(address, login), clock.monotonic()),
  }
}

const loginKey = (login: string) => login.slice(0, LOGIN_LENGTH_MAX).toLowerCase()
const placeKey = (address: string, login: string) => `${networkOf(address)} ${loginKey(login)}`

/** Times of wrong credentials, by address, network or login. */
class Failures {
  readonly #perMinute: number
  readonly #perDay: number
  /** Monotonic times, oldest first, at most the budget of a day. */
  readonly #timesMs = new Map<string, number[]>()

  constructor(factor: number) {
    this.#perMinute = PER_MINUTE * factor
    this.#perDay = PER_DAY * factor
  }

  note(key: string, nowMs: number): void {
    const timesMs = this.#timesMs.get(key) ?? []
    timesMs.push(nowMs)
    if (timesMs.length > this.#perDay) timesMs.shift()
    putNewest(this.#timesMs, key, timesMs)
  }

  fullMinuteMs(key: string, nowMs: number): number {
    return untilOver(this.#timesMs.get(key)?.at(-this.#perMinute), MINUTE_MS, nowMs)
  }

  fullDayMs(key: string, nowMs: number): number {
    return untilOver(this.#timesMs.get(key)?.at(-this.#perDay), DAY_MS, nowMs)
  }

  fullMs(key: string, nowMs: number): number {
    return Math.max(this.fullMinuteMs(key, nowMs), this.fullDayMs(key, nowMs))
  }
}

const untilOver = (firstMs: number | undefined, windowMs: number, nowMs: number) =>
  firstMs === undefined ? 0 : Math.max(0, firstMs + windowMs - nowMs)

function putNewest<V>(map: Map<string, V>, key: string, value: V): void {
  map.delete(key)
  if (map.size >= ENTRIES_MAX) map.delete(map.keys().next().value as string)
  map.set(key, value)
}

function isLoopback(address: string): boolean {
  return address.startsWith('127.') || address === '::1'
}

/** Networks from which each login has succeeded. */
export interface KnownPlaces {
  isKnown(login: string, network: string): Promise<boolean>
  /** Never rejects. */
  note(login: string, network: string): Promise<void>
}

export type GuessingGuard = ReturnType<typeof createGuessingGuard>

/**
 * Protects passwords, which people choose, against guessing over HTTP and SMTP (decision 50). Only a limited number of
 * them is checked:
 *
 * 1. From a network where the login succeeded before, attempts are checked at once, within a budget of their own.
 *    Concurrent ones may exceed it, by one for each connection.
 * 2. Others from one /20 (IPv6: /48) are checked one after the other: concurrent ones would all pass before the first
 *    has failed. One that waited is checked by the first rule if the login succeeded meanwhile.
 * 3. When an address or its networks have used up their budget, the password is not checked.
 * 4. A failure counts, whether the login exists or not.
 *
 * So nobody can lock out an owner from a network where the login succeeded before, nor from a network without failures.
 * Exempt addresses, by default loopback, are always checked at once.
 *
 * `waitingMax`: attempts that wait for each /20; default no limit, where connections limit them.
 */
export function createGuessingGuard(
  attempts: Pick<FailedAttempts, 'isExempt' | 'failed' | 'blockedMs' | 'blockedAtKnownPlaceMs'>,
  places: KnownPlaces,
  waitingMax?: number,
) {
  const turns = new Turns(waitingMax)
  const isKnownPlace = (address: string, login: string) => places.isKnown(login, networkOf(address))

  /** Looks the place up again only if it matters. */
  async function blockedElsewhereMs(address: string, login: string): Promise<number> {
    const blockedMs = attempts.blockedMs(address)
    const isKnown = blockedMs > 0 && (await isKnownPlace(address, login))
    return isKnown ? attempts.blockedAtKnownPlaceMs(address, login) : blockedMs
  }

  async function checked<T>(
    blockedMs: number,
    address: string,
    login: string,
    check: () => Promise<T | null>,
  ) {
    if (blockedMs > 0) throw new TooManyRequests(blockedMs / 1000)
    const found = await check()
    if (found === null) attempts.failed(address, login)
    return found
  }

  return {
    isKnownPlace,
    /** Notes that the login succeeded from there. Never rejects. */
    succeeded: (address: string, login: string) => places.note(login, networkOf(address)),
    /**
     * Runs `check` within the limits; null counts as a failure.
     * @throws TooManyRequests over a budget, TooManyWaiting when too many wait; then it was not run
     */
    async run<T>(address: string, login: string, check: () => Promise<T | null>): Promise<T | null> {
      if (attempts.isExempt(address)) return check()
      if (await isKnownPlace(address, login))
        return checked(attempts.blockedAtKnownPlaceMs(address, login), address, login, check)
      return turns.run(networksOf(address)[2], async () =>
        checked(await blockedElsewhereMs(address, login), address, login, check),
      )
    },
  }
}
