/**
 * Guessing of keys and passwords, counted over HTTP and SMTP together (decision 50).
 *
 * Each wrong one counts for its address, for the two networks around it, and for the login it named. An address has 10
 * a minute and 50 a day, its networks 3 and 9 times as many.
 *
 * - API keys are too long to be guessed: a right one is always taken, at once. After ten wrong ones in a minute further
 *   refusals to that address take a second each, one after the other, for five minutes. Beyond the day's budget wrong
 *   ones get 429.
 * - Passwords are chosen by people: beyond either budget they are not looked at (inbound/login-guard.ts). A login that
 *   was right from the same network before has a budget of its own there, so that nobody else can shut it out.
 *
 * Loopback addresses are exempt. No account and no login is ever locked. All this is in memory: a restart forgets it.
 */
import { isIPv6 } from 'node:net'
import type { Clock } from '../base/clock.ts'
import { TooManyRequests } from '../base/errors.ts'

const PER_MINUTE = 10
const PER_DAY = 50
/** The next two networks around an address, as multiples of its budget. */
const NETWORK_FACTOR = 3
const WIDE_FACTOR = 9
/** Of one login, tried from everywhere. Beyond it nothing is refused unseen, which would lock out its owner. */
const LOGIN_FACTOR = 9
/**
 * Of one login from a network where it was right before. Its owner shares that network with whoever guesses: a small
 * budget would let one shut out the other, none at all would let passwords be found.
 */
const KNOWN_PLACE_FACTOR = 20

const MINUTE_MS = 60_000
const DAY_MS = 24 * 3_600_000
const DELAY_MS = 1_000
/** For a login that is tried from everywhere. */
const LOGIN_DELAY_MS = 5_000
const DELAYED_FOR_MS = 5 * MINUTE_MS
/** Refusals to one address that wait their turn; what comes beyond is told to come later. */
const IN_TURN_MS_MAX = 10_000
/** Refusals held back at once. Beyond it they go out at once: a flood must not hold memory for its delay. */
const WAITING_MAX = 1_000

/**
 * Addresses, networks and logins remembered at once, of each kind; over it the one seen longest ago is forgotten. Some
 * 5 MB; 60 MB if each of them has used up its budget, which takes millions of wrong tries a day.
 */
const ENTRIES_MAX = 5_000
/** Logins are the clients' words. */
const LOGIN_LENGTH_MAX = 320

export interface FailedAttempts {
  isExempt(address: string): boolean
  /** Notes wrong credentials from this address, and the login that they were for. */
  failed(address: string, login?: string): void
  /** Notes a wrong API key. @throws TooManyRequests, without noting it, when the refusal is not worth waiting for */
  wrongKey(address: string): void
  /** Resolves when a refusal may go out to this address. */
  delay(address: string, login?: string): Promise<void>
  /** Milliseconds until a password from this address may be looked at; 0: now. */
  blockedMs(address: string): number
  /** The same for a login that was right from the address's network before. */
  blockedAtKnownPlaceMs(address: string, login: string): number
}

interface Turn {
  /** Refusals are delayed until then. */
  delayedUntilMs: number
  /** When the last of the waiting refusals goes out. */
  lastAtMs: number
}

export function createFailedAttempts(
  clock: Clock,
  isExempt: (address: string) => boolean = isLoopback,
): FailedAttempts {
  const levels = [new Failures(1), new Failures(NETWORK_FACTOR), new Failures(WIDE_FACTOR)] as const
  const logins = new Failures(LOGIN_FACTOR)
  const knownPlaces = new Failures(KNOWN_PLACE_FACTOR)
  const turns = new Map<string, Turn>()
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
  const turnOf = (address: string) => turns.get(networkOf(address))

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
    const turn = { delayedUntilMs: nowMs + DELAYED_FOR_MS, lastAtMs: turns.get(network)?.lastAtMs ?? 0 }
    putNewest(turns, network, turn)
  }

  /** How long a refusal to this address takes; 0: none. */
  function delayMsOf(address: string, login: string | undefined, nowMs: number): number {
    if (login !== undefined && logins.fullMs(loginKey(login), nowMs) > 0) return LOGIN_DELAY_MS
    const isDelayed = (turnOf(address)?.delayedUntilMs ?? 0) > nowMs || blocked(address, false) > 0
    return isDelayed ? DELAY_MS : 0
  }

  return {
    isExempt,
    failed,
    wrongKey(address) {
      const dayMs = blocked(address, true)
      if (dayMs > 0) throw new TooManyRequests(dayMs / 1000)
      const inTurnMs = (turnOf(address)?.lastAtMs ?? 0) - clock.monotonic()
      if (inTurnMs + DELAY_MS > IN_TURN_MS_MAX) throw new TooManyRequests(inTurnMs / 1000)
      failed(address)
    },
    async delay(address, login) {
      if (isExempt(address) || waiting >= WAITING_MAX) return
      const nowMs = clock.monotonic()
      const delayMs = delayMsOf(address, login, nowMs)
      const turn = turnOf(address)
      // Of passwords only few are looked at; their refusals need no turns.
      const atMs = (login === undefined ? Math.max(nowMs, turn?.lastAtMs ?? 0) : nowMs) + delayMs
      if (delayMs === 0 || atMs - nowMs > IN_TURN_MS_MAX) return
      if (login === undefined) {
        putNewest(turns, networkOf(address), { delayedUntilMs: turn?.delayedUntilMs ?? 0, lastAtMs: atMs })
      }
      waiting += 1
      await new Promise<void>((resolve) => clock.setTimer(atMs - nowMs, resolve))
      waiting -= 1
    },
    blockedMs: (address) => blocked(address, false),
    blockedAtKnownPlaceMs: (address, login) =>
      isExempt(address) ? 0 : knownPlaces.fullMs(placeKey(address, login), clock.monotonic()),
  }
}

const loginKey = (login: string) => login.slice(0, LOGIN_LENGTH_MAX).toLowerCase()
const placeKey = (address: string, login: string) => `${networkOf(address)} ${loginKey(login)}`

/** When credentials were wrong, by what they have in common. */
class Failures {
  readonly #perMinute: number
  readonly #perDay: number
  /** Monotonic times, oldest first, at most as many as a day may have. */
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

/** An IPv6 caller owns a /64 at least (RFC 6177), so the network counts, not the address. */
export function networkOf(address: string): string {
  return isIPv6(address) ? `${groupsOf(address).slice(0, 4).join(':')}::/64` : address
}

/**
 * What an address counts for: itself and the networks around it, the widest last. IPv4: /32, /24, /20, the last being
 * what a small provider has; IPv6: /64, /56, /48, which are what one customer may have (RFC 6177).
 */
export function networksOf(address: string): [string, string, string] {
  if (isIPv6(address)) {
    const [one, two, three, four = ''] = groupsOf(address)
    const upper = four.padStart(4, '0').slice(0, 2)
    return [networkOf(address), `${one}:${two}:${three}:${upper}00::/56`, `${one}:${two}:${three}::/48`]
  }
  const [one, two, three] = address.split('.')
  return [address, `${one}.${two}.${three}.0/24`, `${one}.${two}.${Number(three) & 0xf0}.0/20`]
}

/** The eight groups, each as short as it can be. */
function groupsOf(address: string): string[] {
  const [head = '', tail = ''] = address.split('::') as [string, string?]
  const left = head === '' ? [] : head.split(':')
  const right = tail === '' ? [] : tail.split(':')
  const zeros = address.includes('::') ? Array(Math.max(0, 8 - left.length - right.length)).fill('0') : []
  return [...left, ...zeros, ...right].map((group) => group.toLowerCase().replace(/^0+(?=.)/, ''))
}
