/** Names what keeps a process that should have ended: its sockets and processes, and the timers with the lines that set them. */
import { inspect } from 'node:util'

interface Followed {
  timer: NodeJS.Timeout
  delayMs: number
  setAt: Error
}

/** Shorter ones end, or are set again by what is found. */
const DELAY_MIN_MS = 250
/** From which on timers that have ended are forgotten. */
const FOLLOWED_MAX = 5_000
/** Lines of the stack that are shown, below the one of this file. */
const STACK_LINES = 6
const SHOWN_CHARS = 1_500

const followed = new Set<Followed>()
let forgetAt = FOLLOWED_MAX

/** From now on remembers where timers are set. */
export function followTimers(): void {
  globalThis.setTimeout = following(globalThis.setTimeout)
  globalThis.setInterval = following(globalThis.setInterval)
}

type Setter = typeof setTimeout | typeof setInterval

function following<T extends Setter>(set: T): T {
  const wrapped = (run: () => void, delayMs?: number, ...values: []) => {
    const timer = set(run, delayMs, ...values)
    if (delayMs !== undefined && delayMs >= DELAY_MIN_MS) follow(timer, delayMs)
    return timer
  }
  // `promisify` finds its form in a property.
  return Object.defineProperties(wrapped, Object.getOwnPropertyDescriptors(set)) as T
}

function follow(timer: NodeJS.Timeout, delayMs: number): void {
  followed.add({ timer, delayMs, setAt: new Error('set') })
  if (followed.size < forgetAt) return
  for (const one of followed) if (!isOpen(one)) followed.delete(one)
  forgetAt = followed.size + FOLLOWED_MAX
}

/** Node shows this nowhere else. */
const isOpen = ({ timer }: Followed) => !(timer as unknown as { _destroyed: boolean })._destroyed

export function printOpen(): void {
  const handles = (process as unknown as { _getActiveHandles(): object[] })._getActiveHandles()
  console.error('Left open:', process.getActiveResourcesInfo().join(' '))
  for (const handle of handles)
    console.error(inspect(handle, { depth: 1, breakLength: 120 }).slice(0, SHOWN_CHARS))
  for (const one of followed) {
    if (!isOpen(one) || !one.timer.hasRef()) continue
    const lines = one.setAt.stack?.split('\n').slice(3, 3 + STACK_LINES) ?? []
    console.error(`A timer of ${one.delayMs} ms, set\n${lines.join('\n')}`)
  }
}
