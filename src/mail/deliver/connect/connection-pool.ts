/**
 * Idle connections of lanes, between two messages. Bounded in number, age and use; a lane never has more connections,
 * idle and busy together, than it may have attempts at a time.
 */

import { PassingMap, PassingSet } from '../../../base/flow/cache.ts'
import type { Clock, Timer } from '../../../base/time/clock.ts'
import type { TranscriptEntry } from '../../../protocols/smtp/channel.ts'
import type { SmtpConnection } from '../../../protocols/smtp/connection.ts'

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
  /** Idle connections of all lanes, the one that has been idle for longest first. */
  private readonly idle = new PassingSet<Idle>()
  private readonly byKey = new PassingMap<string, Idle[]>()
  /** Connections that are being closed, per lane. */
  private readonly closing = new PassingMap<string, PassingSet<Promise<void>>>()
  private readonly clock: Clock
  private closed = false

  constructor(clock: Clock) {
    this.clock = clock
  }

  /** The connection used last, so that surplus ones stay idle and close. `key`: host and TLS rules. */
  take(lane: string, key: string): HeldConnection | null {
    for (;;) {
      const entry = this.byKey.get(`${lane} ${key}`)?.at(-1)
      if (!entry) return null
      this.remove(entry)
      if (entry.connection.reusable) return entry
      entry.connection.close()
    }
  }

  /** To be awaited before a connection is opened: closes an idle one of the lane, which was of no use. */
  async makeRoom(lane: string): Promise<void> {
    for (const entry of this.idle) {
      if (entry.lane !== lane) continue
      this.remove(entry)
      this.quit(lane, entry)
      break
    }
    await Promise.all(this.closing.get(lane) ?? [])
  }

  give(lane: string, key: string, held: HeldConnection, messagesMax: number): void {
    if (this.closed || !held.connection.reusable || held.used >= messagesMax) {
      this.quit(lane, held)
      return
    }
    const entry: Idle = {
      ...held,
      lane,
      key,
      timer: this.clock.setTimer(IDLE_MS, () => {
        this.remove(entry)
        this.quit(lane, entry)
      }),
    }
    this.idle.add(entry)
    const alike = this.byKey.get(`${lane} ${key}`)
    if (alike) alike.push(entry)
    else this.byKey.set(`${lane} ${key}`, [entry])
    const [oldest] = this.idle
    if (this.idle.size > IDLE_CONNECTIONS_MAX && oldest) {
      this.remove(oldest)
      this.quit(oldest.lane, oldest)
    }
  }

  /** Each idle connection holds a file that an attempt may need more. */
  closeIdle(): void {
    for (const entry of [...this.idle]) {
      this.remove(entry)
      this.quit(entry.lane, entry)
    }
  }

  async close(): Promise<void> {
    this.closed = true
    this.closeIdle()
    await Promise.all([...this.closing.values()].flatMap((closing) => [...closing]))
  }

  private quit(lane: string, { connection }: HeldConnection): void {
    const closing = this.closing.get(lane) ?? new PassingSet<Promise<void>>()
    this.closing.set(lane, closing)
    const closed = connection.quit().finally(() => {
      closing.delete(closed)
      if (closing.size === 0) this.closing.delete(lane)
    })
    closing.add(closed)
  }

  private remove(entry: Idle): void {
    entry.timer.cancel()
    this.idle.delete(entry)
    const name = `${entry.lane} ${entry.key}`
    const left = (this.byKey.get(name) ?? []).filter((other) => other !== entry)
    if (left.length > 0) this.byKey.set(name, left)
    else this.byKey.delete(name)
  }
}

/** A dialogue with one recipient has about 15 lines; EHLO replies at most 100. */
const LINES_MAX = 150
const LINE_CHARS_MAX = 500

/** Records the lines of one connection; `restart` begins the dialogue of the next message on it. */
export class TranscriptRecorder {
  private lines: TranscriptEntry[] = []
  private startMs = 0

  readonly add = (entry: TranscriptEntry): void => {
    if (this.lines.length >= LINES_MAX) return
    const line = entry.line.length > LINE_CHARS_MAX ? `${entry.line.slice(0, LINE_CHARS_MAX)}...` : entry.line
    this.lines.push({ ...entry, line, ms: entry.ms - this.startMs })
  }

  /** @param ms age of the connection, from which times are counted. */
  restart(ms: number): void {
    this.lines = []
    this.startMs = ms
  }

  take(): TranscriptEntry[] {
    return this.lines
  }
}
