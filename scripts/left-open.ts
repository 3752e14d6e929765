/** Names what keeps a process that should have ended: its sockets and processes, and the timers with the lines that set them. */
import { inspect } from 'node:util'

const SET = Symbol('set')

/** A timer that says how it was set. */
interface Followed extends NodeJS.Timeout {
  [SET]: { delayMs: number; at: Error }
}

/** Half a minute after its last test nothing but a fault keeps the process. */
const LEFT_OPEN_MS = 30_000
/** Shorter ones end, or are set again by what is found. */
const DELAY_MIN_MS = 250
/** How many are kept until most have ended: a weak reference to each takes longer than all else here. */
const RECENT_MAX = 250
/** From which on timers that have ended are forgotten. */
const FOLLOWED_MAX = 5_000
/** Lines of the stack that are shown, below the one of this file. */
const STACK_LINES = 6
const SHOWN_CHARS = 1_500

/** Not kept: what a timer calls may hold a whole service. */
const timers = new Set<WeakRef<Followed>>()
let recent: Followed[] = []
let forgetAt = FOLLOWED_MAX
/** Until the runner disconnects, after the last test, most timers are over before anything is printed: noting their lines takes long. */
let timeoutMinMs = LEFT_OPEN_MS

/** From now on remembers where timers are set; what keeps the process for too long is in the output that the runner shows. */
export function followOpen(): void {
  globalThis.setTimeout = following(globalThis.setTimeout, () => timeoutMinMs)
  globalThis.setInterval = following(globalThis.setInterval, () => DELAY_MIN_MS)
  process.once('disconnect', () => {
    timeoutMinMs = DELAY_MIN_MS
    // The timer itself does not keep it.
    setTimeout(printOpen, LEFT_OPEN_MS).unref()
  })
}

type Setter = typeof setTimeout | typeof setInterval

function following<T extends Setter>(set: T, delayMinMs: () => number): T {
  const wrapped = (run: () => void, delayMs?: number, ...values: []) => {
    const timer = set(run, delayMs, ...values)
    if (delayMs !== undefined && delayMs >= delayMinMs()) follow(timer, delayMs)
    return timer
  }
  // `promisify` finds its form in a property.
  return Object.defineProperties(wrapped, Object.getOwnPropertyDescriptors(set)) as T
}

function follow(timer: NodeJS.Timeout, delayMs: number): void {
  recent.push(Object.assign(timer, { [SET]: { delayMs, at: new Error('set') } }))
  if (recent.length >= RECENT_MAX) keepWeakly()
}

function keepWeakly(): void {
  for (const timer of recent) if (isOpen(timer)) timers.add(new WeakRef(timer))
  recent = []
  if (timers.size < forgetAt) return
  for (const one of timers) if (!isOpen(one.deref())) timers.delete(one)
  forgetAt = timers.size + FOLLOWED_MAX
}

/** Node shows this nowhere else. */
const isOpen = (timer: Followed | undefined): timer is Followed =>
  timer !== undefined && !(timer as unknown as { _destroyed: boolean })._destroyed

function printOpen(): void {
  const handles = (process as unknown as { _getActiveHandles(): object[] })._getActiveHandles()
  console.error('Left open:', process.getActiveResourcesInfo().join(' '))
  for (const handle of handles)
    console.error(inspect(handle, { depth: 1, breakLength: 120 }).slice(0, SHOWN_CHARS))
  keepWeakly()
  for (const one of timers) {
    const timer = one.deref()
    if (!isOpen(timer) || !timer.hasRef()) continue
    const { delayMs, at } = timer[SET]
    const lines = at.stack?.split('\n').slice(3, 3 + STACK_LINES) ?? []
    console.error(`A timer of ${delayMs} ms, set\n${lines.join('\n')}`)
  }
}
