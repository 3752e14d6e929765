/** Open connections between two messages of a lane. Bounded in number, age and use. */
import type { Clock, Timer } from '../base/clock.ts'
import type { SmtpConnection } from '../smtp/client.ts'
import type { TlsPolicy } from './engine.ts'

export interface HeldConnection {
  connection: SmtpConnection
  /** Host name, for events and TLS. */
  name: string
  /** Messages sent on it. */
  used: number
}

/** Then a new connection, so that load spreads over a site's hosts. */
const MESSAGES_PER_CONNECTION_MAX = 100
/** Servers close idle connections after minutes; holding one costs them a process. */
const IDLE_MS = 3_000
/** Idle connections of all lanes together. */
const IDLE_MAX = 500

type Idle = HeldConnection & { key: string; timer: Timer }

export class ConnectionPool {
  private readonly idle: Idle[] = []
  private readonly clock: Clock
  private closed = false

  constructor(clock: Clock) {
    this.clock = clock
  }

  /** The connection used last, so that surplus ones grow idle and close. */
  take(lane: string, tls: TlsPolicy, source: string | null): HeldConnection | null {
    const key = keyOf(lane, tls, source)
    for (let index = this.idle.length - 1; index >= 0; index--) {
      const entry = this.idle[index] as Idle
      if (entry.key !== key) continue
      this.idle.splice(index, 1)
      entry.timer.cancel()
      if (entry.connection.reusable) return entry
      entry.connection.close()
    }
    return null
  }

  give(lane: string, tls: TlsPolicy, source: string | null, held: HeldConnection): void {
    if (this.closed || !held.connection.reusable || held.used >= MESSAGES_PER_CONNECTION_MAX) {
      void held.connection.quit()
      return
    }
    const entry: Idle = {
      ...held,
      key: keyOf(lane, tls, source),
      timer: this.clock.setTimer(IDLE_MS, () => {
        const index = this.idle.indexOf(entry)
        if (index >= 0) this.idle.splice(index, 1)
        void held.connection.quit()
      }),
    }
    this.idle.push(entry)
    if (this.idle.length > IDLE_MAX) this.drop(this.idle.shift() as Idle)
  }

  async close(): Promise<void> {
    this.closed = true
    const entries = this.idle.splice(0)
    for (const { timer } of entries) timer.cancel()
    await Promise.all(entries.map(({ connection }) => connection.quit()))
  }

  private drop(entry: Idle): void {
    entry.timer.cancel()
    void entry.connection.quit()
  }
}

/** A connection made under one TLS policy, or from one address, does not serve another. */
const keyOf = (lane: string, tls: TlsPolicy, source: string | null) =>
  `${lane} ${tls.required} ${tls.verify} ${source ?? ''}`
