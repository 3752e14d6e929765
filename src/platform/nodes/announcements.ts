/**
 * Announcements over notifications of PostgreSQL: each goes to all processes, and each that has applied it confirms to
 * the channel of the sender. A sender waits for those that it knows to be alive, and at most CONFIRM_MAX_MS.
 *
 * Announcements of one turn of the event loop are sent together, and so are confirmations.
 */
import type { Logger } from 'pino'
import type { ChangeCarrier, ChangeHub } from '../../base/changes.ts'
import { schemaOf } from '../store/pods/pod.ts'
import type { Note } from './link.ts'

interface AnnouncementParts {
  /** This process. */
  id: string
  /** Where all processes of the installation listen. */
  channel: string
  hub: ChangeHub
  log: Logger
  /** Ids of the other live processes. */
  others(): readonly string[]
  notify(notes: readonly Note[]): Promise<void>
}

export interface Announcements extends ChangeCarrier {
  /** A notification has arrived on either channel. */
  received(payload: string): void
  /** Processes that were waited for may be gone. */
  othersChanged(): void
}

/** Where all processes of an installation listen; channels are of a whole database, whatever the schema. */
export const commonChannel = (pod: string | null): string =>
  pod === null ? 'sendwright' : `sendwright_${schemaOf(pod)}`
/** 33 characters; PostgreSQL truncates names after 63. */
export const channelOf = (id: string) => `sendwright_${id}`

/** A change is answered after this time also when a process has not confirmed it: caches expire after five seconds. */
const CONFIRM_MAX_MS = 2_000
/** PostgreSQL refuses payloads of 8,000 bytes and more; the rest of the message takes about a hundred. */
const TEXT_MAX_BYTES = 7_000
/** Numbers in one confirmation, for the same reason. */
const NUMBERS_MAX = 400

type Message =
  | { kind: 'say'; from: string; number: number; topic: string; text: string | null }
  | { kind: 'done'; from: string; numbers: number[] }

interface Waiting {
  missing: Set<string>
  settle(allApplied: boolean): void
}

export function createAnnouncements({
  id,
  channel: common,
  hub,
  log,
  others,
  notify,
}: AnnouncementParts): Announcements {
  const waiting = new Map<number, Waiting>()
  const outbox: Note[] = []
  const confirmations = new Map<string, number[]>()
  let counter = 0
  let isFlushing = false

  function flushSoon(): void {
    if (isFlushing) return
    isFlushing = true
    setImmediate(() => void flush())
  }

  async function flush(): Promise<void> {
    for (;;) {
      const notes = outbox.splice(0)
      for (const [to, numbers] of confirmations) {
        const channel = channelOf(to)
        for (let at = 0; at < numbers.length; at += NUMBERS_MAX) {
          const some = numbers.slice(at, at + NUMBERS_MAX)
          notes.push({ channel, payload: JSON.stringify({ kind: 'done', from: id, numbers: some }) })
        }
      }
      confirmations.clear()
      if (notes.length === 0) break
      // What is lost here is found again by the time of caches; its sender does not wait for it.
      await notify(notes).catch(() => {
        for (const { settle } of [...waiting.values()]) settle(false)
      })
    }
    isFlushing = false
  }

  async function apply({ from, number, topic, text }: Extract<Message, { kind: 'say' }>): Promise<void> {
    try {
      await hub.received(topic, text, from)
    } catch (error) {
      log.warn({ err: error, topic }, 'cannot apply what another node announced')
      return
    }
    confirmations.set(from, [...(confirmations.get(from) ?? []), number])
    flushSoon()
  }

  return {
    carry(topic, text) {
      const number = ++counter
      const missing = new Set(others())
      const message: Message = { kind: 'say', from: id, number, topic, text: fitting(text) }
      outbox.push({ channel: common, payload: JSON.stringify(message) })
      flushSoon()
      if (missing.size === 0) return Promise.resolve(true)
      return new Promise((resolve) => {
        const timer = setTimeout(() => settle(false), CONFIRM_MAX_MS)
        function settle(allApplied: boolean): void {
          clearTimeout(timer)
          waiting.delete(number)
          resolve(allApplied)
        }
        waiting.set(number, { missing, settle })
      })
    },
    hasOthers: () => others().length > 0,
    received(payload) {
      const message = messageOf(payload)
      if (message === null || message.from === id) return
      if (message.kind === 'say') return void apply(message)
      for (const number of message.numbers) {
        const wait = waiting.get(number)
        if (wait?.missing.delete(message.from) && wait.missing.size === 0) wait.settle(true)
      }
    },
    othersChanged() {
      const alive = new Set(others())
      for (const { missing, settle } of [...waiting.values()]) {
        for (const other of missing) if (!alive.has(other)) missing.delete(other)
        if (missing.size === 0) settle(true)
      }
    },
  }
}

/** Null, as if it had been missed, for a text that no notification can hold. */
const fitting = (text: string) => (Buffer.byteLength(JSON.stringify(text)) > TEXT_MAX_BYTES ? null : text)

/** Null: it is none of ours; whoever may connect to the database may notify. */
function messageOf(payload: string): Message | null {
  try {
    const message = JSON.parse(payload) as Partial<Extract<Message, { kind: 'say' }>> & { numbers?: unknown }
    const isSaid = message.kind === 'say' && typeof message.topic === 'string'
    const isDone = (message as { kind?: string }).kind === 'done' && Array.isArray(message.numbers)
    return isSaid || isDone ? (message as Message) : null
  } catch {
    return null
  }
}
