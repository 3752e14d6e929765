/**
 * Open connections between two messages of a lane. Bounded in number, age and use; a lane never has more
 * connections, idle and busy together, than it runs attempts at a time.
 */

import type { Clock, Timer } from '../base/clock.ts'
import { PassingMap, PassingSet } from '../base/passing.ts'
import type { SmtpConnection } from '../smtp/client.ts'
import type { TranscriptRecorder } from './transcript.ts'

export interface HeldConnection {
  connection: SmtpConnection
  /** Host name, for events and TLS. */
  name: string
  openedAt: number
  transcript: TranscriptRecorder
  /** Messages sent on it. */
  used: number
}

/** Servers close idle connections after minutes; holding one costs them a process. */
const IDLE_MS = 3_000
/** Idle connections of all lanes together. */
export const IDLE_CONNECTIONS_MAX = 500

type Idle = HeldConnection & { lane: string; key: string; timer: Timer }

export class ConnectionPool {
  /** In the order of their coming, over all lanes. */
  private readonly idle = new PassingSet<Idle>()
  private readonly byKey = new PassingMap<string, Idle[]>()
  /** Goodbyes that are under way, per lane. */
  private readonly leaving = new PassingMap<string, PassingSet<Promise<void>>>()
  private readonly clock: Clock
  private closed = false

  constructor(clock: Clock) {
    this.clock = clock
  }

  /** The connection used last, so that surplus ones grow idle and close. `key`: host and TLS rules. */
  take(lane: string, key: string): HeldConnection | null {
    for (;;) {
      const entry = this.byKey.get(`${lane} ${key}`)?.at(-1)
      if (!entry) return null
      this.remove(entry)
      if (entry.connection.reusable) return entry
      entry.connection.close()
    }
  }

  /** To be awaited before a connection is opened: an idle one of the lane that does not fit makes place. */
  async makePlace(lane: string): Promise<void> {
    for (const entry of this.idle) {
      if (entry.lane !== lane) continue
      this.remove(entry)
      this.leave(lane, entry)
      break
    }
    await Promise.all(this.leaving.get(lane) ?? [])
  }

  give(lane: string, key: string, held: HeldConnection, messagesMax: number): void {
    if (this.closed || !held.connection.reusable || held.used >= messagesMax) {
      this.leave(lane, held)
      return
    }
    const entry: Idle = {
      ...held,
      lane,
      key,
      timer: this.clock.setTimer(IDLE_MS, () => {
        this.remove(entry)
        this.leave(lane, entry)
      }),
    }
    this.idle.add(entry)
    const alike = this.byKey.get(`${lane} ${key}`)
    if (alike) alike.push(entry)
    else this.byKey.set(`${lane} ${key}`, [entry])
    const [oldest] = this.idle
    if (this.idle.size > IDLE_CONNECTIONS_MAX && oldest) {
      this.remove(oldest)
      this.leave(oldest.lane, oldest)
    }
  }

  /** Ends all idle connections: each holds a file that somebody else may need more. */
  shed(): void {
    for (const entry of [...this.idle]) {
      this.remove(entry)
      this.leave(entry.lane, entry)
    }
  }

  async close(): Promise<void> {
    this.closed = true
    this.shed()
    await Promise.all([...this.leaving.values()].flatMap((goodbyes) => [...goodbyes]))
  }

  private leave(lane: string, { connection }: HeldConnection): void {
    const goodbyes = this.leaving.get(lane) ?? new PassingSet<Promise<void>>()
    this.leaving.set(lane, goodbyes)
    const goodbye = connection.quit().finally(() => {
      goodbyes.delete(goodbye)
      if (goodbyes.size === 0) this.leaving.delete(lane)
    })
    goodbyes.add(goodbye)
  }

  private remove(entry: Idle): void {
    entry.timer.cancel()
    this.idle.delete(entry)
    const place = `${entry.lane} ${entry.key}`
    const left = (this.byKey.get(place) ?? []).filter((other) => other !== entry)
    if (left.length > 0) this.byKey.set(place, left)
    else this.byKey.delete(place)
  }
}
