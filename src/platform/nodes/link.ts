/**
 * The connection to PostgreSQL that a process keeps for the others: it listens on it, and gives its signs of life.
 *
 * 1. Each process listens on one channel of all and one of its own, named after its id.
 * 2. It says a word to itself after each connect. One that does not come back shows that notifications do not pass, as
 *    behind a pooler that gives each transaction another connection.
 * 3. A connection that breaks, or does not answer within QUERY_MAX_MS, is replaced. What was announced meanwhile is lost:
 *    `onMissed`. Of several servers the one is found that takes writes.
 */
import type { Logger } from 'pino'
import { Servers, WritableClient } from '../store/postgres/postgres-servers.ts'
import { StoreUnavailable } from '../store/store.ts'

export type Link = Awaited<ReturnType<typeof openLink>>

export interface Note {
  channel: string
  payload: string
}

interface LinkParts {
  url: string
  /** Whose schema its statements see. */
  pod: string | null
  channels: readonly [common: string, own: string]
  log: Logger
  onNote(channel: string, payload: string): void
  /** Connected again after a break. */
  onMissed(): void
  /** After each attempt to connect again: the server that answers (`WritableClient.server`), null if none does. */
  onServer(server: string | null): void
}

const CONNECT_MAX_MS = 2_000
/** A start waits as long for the only server as the store does: a busy one takes seconds for a connection and its first answer. */
const FIRST_CONNECT_MAX_MS = 30_000
const QUERY_MAX_MS = 3_000
const RECONNECT_AFTER_MS = 500
const ECHO_MAX_MS = 2_000
/** Never the payload of another note: those are JSON. */
const ECHO = 'echo'

/** Resolves when the first connection listens. @throws StoreUnavailable */
export async function openLink(parts: LinkParts) {
  const { url, pod, channels, log, onNote, onMissed, onServer } = parts
  const servers = new Servers(url, pod)
  let client: WritableClient | null = null
  let closed = false
  let hears = true
  let echoTimer: NodeJS.Timeout | undefined
  let retry: NodeJS.Timeout | undefined

  async function connect(limitMs = CONNECT_MAX_MS): Promise<void> {
    const next = new WritableClient(servers, {
      connectionTimeoutMillis: limitMs,
      query_timeout: QUERY_MAX_MS,
      keepAlive: true,
      application_name: 'sendwright node',
    })
    next.on('error', () => lose(next))
    next.on('end', () => lose(next))
    next.on('notification', ({ channel, payload = '' }) => {
      if (payload === ECHO) noteHears(true)
      else onNote(channel, payload)
    })
    try {
      await next.connect()
      for (const name of channels) {
        const listen = { text: `LISTEN "${name}"`, query_timeout: Math.max(limitMs, QUERY_MAX_MS) }
        await next.query(listen)
      }
    } catch (error) {
      await next.end().catch(() => {})
      throw error
    }
    if (closed) return void (await next.end().catch(() => {}))
    client = next
    checkEcho(next)
  }

  function checkEcho(of: WritableClient): void {
    clearTimeout(echoTimer)
    echoTimer = setTimeout(() => noteHears(false), ECHO_MAX_MS)
    void of.query('SELECT pg_notify($1, $2)', [channels[1], ECHO]).catch(() => {})
  }

  /** An echo may come late, from a busy server. */
  function noteHears(now: boolean): void {
    clearTimeout(echoTimer)
    if (now === hears) return
    hears = now
    log.warn(
      { hears },
      hears
        ? 'notifications of PostgreSQL arrive again'
        : 'notifications of PostgreSQL do not arrive, as behind a pooler by transactions; other nodes are asked every few seconds instead',
    )
  }

  function lose(broken: WritableClient): void {
    if (client !== broken) return
    client = null
    clearTimeout(echoTimer)
    // It may be waiting for an answer that never comes.
    broken.cut()
    if (!closed) unreached()
  }

  function unreached(): void {
    onServer(null)
    retry = setTimeout(() => {
      servers
        .reach(() => connect())
        .then(
          () => {
            if (closed) return
            onServer(client?.server ?? null)
            onMissed()
          },
          () => {
            if (!closed) unreached()
          },
        )
    }, RECONNECT_AFTER_MS)
  }

  /** Rows of a statement on this connection. @throws when it is broken: a new one is being made */
  async function query(sql: string, values: readonly unknown[]): Promise<Record<string, unknown>[]> {
    const used = client
    if (used === null) throw new StoreUnavailable('The connection between nodes is broken')
    try {
      return (await used.query(sql, [...values])).rows as Record<string, unknown>[]
    } catch (error) {
      // A statement that fails for another reason costs a connection, once.
      lose(used)
      throw new StoreUnavailable('The connection between nodes is broken', { cause: error })
    }
  }

  await servers
    .reach(() => connect(servers.count === 1 ? FIRST_CONNECT_MAX_MS : servers.connectMaxMs))
    .catch((error: unknown) => {
      throw servers.unreachable(error)
    })
  return {
    query,
    /** Sends payloads to channels, in one transaction. */
    async notify(notes: readonly Note[]): Promise<void> {
      const values = [notes.map(({ channel }) => channel), notes.map(({ payload }) => payload)]
      await query('SELECT pg_notify(c, p) FROM unnest($1::text[], $2::text[]) AS note (c, p)', values)
    },
    /** False: notifications do not arrive. */
    hears: () => hears,
    async close(): Promise<void> {
      closed = true
      clearTimeout(retry)
      clearTimeout(echoTimer)
      await client?.end().catch(() => {})
    },
  }
}
