/**
 * What processes on one database tell each other: that a cached value has changed, that mail is due, that held mail must
 * be given back. Parts announce and follow by topic and know nothing of the way between processes, which
 * `platform/nodes/` attaches. Without one (SQLite) an announcement reaches nobody.
 */

/** `text`: what was announced; null: announcements may have been missed. `from`: the node that announced it. */
type Follower = (text: string | null, from: string) => Promise<void> | void

/** Carries announcements to the other processes. */
export interface ChangeCarrier {
  /** Resolves once every other live process has applied it, or after a few seconds: true if all have. */
  carry(topic: string, text: string): Promise<boolean>
  /** False: no other process is known. */
  hasOthers(): boolean
}

export interface Changes {
  /**
   * Tells the other processes. Resolves true once all that are alive have applied it; false after a few seconds without
   * that: those learn of it when their caches expire. Never rejects.
   */
  announce(topic: string, text: string): Promise<boolean>
  /** As `announce`, for what another process would find by itself, only later: without others it costs nothing. */
  hint(topic: string, text: string): void
  /** Calls `apply` for announcements of other processes; an announcement counts as applied when it has resolved. */
  follow(topic: string, apply: Follower): void
  /** Resolves when everything announced so far has been applied elsewhere, as far as it will be. */
  applied(): Promise<void>
}

/** The hub of one process. */
export class ChangeHub implements Changes {
  readonly #followers = new Map<string, Follower[]>()
  readonly #pending = new Set<Promise<boolean>>()
  #carrier: ChangeCarrier | null = null

  attach(carrier: ChangeCarrier | null): void {
    this.#carrier = carrier
  }

  announce(topic: string, text: string): Promise<boolean> {
    if (this.#carrier === null) return NOBODY
    const sent = this.#carrier.carry(topic, text)
    this.#pending.add(sent)
    void sent.finally(() => this.#pending.delete(sent))
    return sent
  }

  hint(topic: string, text: string): void {
    if (this.#carrier?.hasOthers()) void this.#carrier.carry(topic, text)
  }

  follow(topic: string, apply: Follower): void {
    this.#followers.set(topic, [...(this.#followers.get(topic) ?? []), apply])
  }

  async applied(): Promise<void> {
    if (this.#pending.size > 0) await Promise.all(this.#pending)
  }

  /** An announcement of another process has arrived. Rejects with the first failure. */
  async received(topic: string, text: string | null, from: string): Promise<void> {
    await Promise.all((this.#followers.get(topic) ?? []).map((apply) => apply(text, from)))
  }

  /** Announcements may have been missed. */
  async missed(): Promise<void> {
    await Promise.all([...this.#followers.values()].flat().map((apply) => apply(null, '')))
  }
}

const NOBODY = Promise.resolve(true)
