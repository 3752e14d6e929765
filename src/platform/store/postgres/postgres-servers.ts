/**
 * Connections to the server that takes writes. A database URL may name several servers, of which one is the primary and
 * the others follow it:
 *
 *     postgres://user:password@a:5432,b:5433/database?target_session_attrs=read-write
 *
 * 1. A new connection is made to the server that the last one was made to. If that fails, or the server only allows
 *    reading, the others are tried in turn.
 * 2. A connection whose server has become read-only meanwhile is closed at the first refused write.
 * 3. A server that vanished without a word leaves connections that wait for answers until the system gives up, after
 *    many minutes. `endUnanswered` closes them; the link between nodes notices (platform/nodes/link.ts).
 *
 * Two servers that both take writes cannot be told apart here: whoever promotes a standby makes sure that the old primary
 * is stopped (docs/scaling.md).
 */
import type { Socket } from 'node:net'
import pg from 'pg'
import { serversOf } from '../database-url.ts'
import { ALLOW_TRIGGERS } from '../pods/distribute.ts'
import { schemaOf } from '../pods/pod.ts'
import { StoreUnavailable } from '../store.ts'

/** One of several that does not answer is given up for the next one. */
const CONNECT_MAX_MS = 3_000
/** The only one is waited for longer: a busy one takes seconds for a new connection. */
const ONLY_CONNECT_MAX_MS = 10_000
/** At a start, when none of several has answered in time: busy ones get a second round. */
const SECOND_ROUND_MAX_MS = 6_000
/** A connection that has received nothing for this long while no server answers, and is in use. */
const UNANSWERED_MAX_MS = 2_000

const READ_ONLY = '25006'

/** A write was refused because the server, or its default, allows reading only. */
export const isReadOnly = (error: unknown) => (error as { code?: string }).code === READ_ONLY

/** The server allows reading only, or none of several can be used. */
export class NoWritableServer extends Error {}

/**
 * Sent on each new connection. Without `jit`: ranges of many branches look expensive to the planner, and compiling their
 * plans took 100 ms, running them 3. It is not a startup option because connection poolers refuse those.
 */
const GREETING = `SELECT set_config('jit', 'off', false), current_setting('transaction_read_only') AS read_only,
  pg_postmaster_start_time()::text AS started`

/** Sent with it where the session is a pod's. */
const inPod = (pod: string) => `, set_config('search_path', '${schemaOf(pod)}', false), ${ALLOW_TRIGGERS}`

/** Which of the servers the next connection is made to. */
export class Servers {
  readonly #urls: readonly string[]
  /** What each new session is asked first. */
  readonly greeting: string
  #at = 0
  /** Until one has answered: whether all were tried already. */
  #start: 'first round' | 'second round' | 'over' = 'first round'
  #name: string | null = null

  /**
   * @param pod whose schema the sessions see; null: the one that the address or its user has
   * @throws as serversOf
   */
  constructor(url: string, pod: string | null = null) {
    this.#urls = serversOf(url)
    this.greeting = pod === null ? GREETING : GREETING + inPod(pod)
  }

  get count(): number {
    return this.#urls.length
  }

  /** Longest wait for a new connection, and for an answer to what it is asked first. */
  get connectMaxMs(): number {
    if (this.count === 1) return ONLY_CONNECT_MAX_MS
    return this.#start === 'second round' ? SECOND_ROUND_MAX_MS : CONNECT_MAX_MS
  }

  get current(): string {
    return this.#urls[this.#at] as string
  }

  /** Hosts, ports and database, for messages; neither user nor password. */
  get name(): string {
    this.#name ??= nameOf(this.#urls)
    return this.#name
  }

  /** The error of a caller whose connection `cause` has prevented. */
  unreachable(cause: unknown): StoreUnavailable {
    return new StoreUnavailable(`Cannot reach PostgreSQL at ${this.name}: ${messageOf(cause)}`, { cause })
  }

  /** The next connection is made to another one, unless that was decided already. */
  failed(url: string): void {
    if (url === this.current) this.#at = (this.#at + 1) % this.#urls.length
  }

  /**
   * Calls `connect` until it succeeds, at most once for each server, and twice before the first success.
   * @throws the error of the only server; NoWritableServer for several
   */
  async reach<T>(connect: () => Promise<T>): Promise<T> {
    let failures: string[] = []
    for (;;) {
      const { host } = new URL(this.current)
      try {
        const made = await connect()
        this.#start = 'over'
        return made
      } catch (error) {
        if (this.count === 1 || isPoolExhausted(error)) throw error
        failures.push(`${host}: ${messageOf(error)}`)
        if (failures.length < this.count) continue
        if (this.#start === 'first round') {
          this.#start = 'second round'
          failures = []
          continue
        }
        throw new NoWritableServer(`No server takes writes (${failures.join('; ')})`, { cause: error })
      }
    }
  }
}

/** As the driver reads the URLs, with its defaults. */
function nameOf(urls: readonly string[]): string {
  const clients = urls.map((connectionString) => new pg.Client({ connectionString }))
  return `${clients.map(({ host, port }) => `${host}:${port}`).join(', ')}, database "${clients[0]?.database}"`
}

const isPoolExhausted = (error: unknown) => /exceeded when trying/.test((error as Error).message)

/** An AggregateError of several addresses has no message. */
const messageOf = (error: unknown) => (error as Error).message || String((error as { code?: string }).code)

/** A connection to the current server. `connect` fails if that only allows reading. */
export class WritableClient extends pg.Client {
  readonly #servers: Servers
  readonly #url: string
  /** Start of the server that answers, which tells a server from the one that took its place. */
  server: string | null = null

  constructor(servers: Servers, options: pg.ClientConfig) {
    const url = servers.current
    super({ connectionTimeoutMillis: servers.connectMaxMs, ...options, connectionString: url })
    this.#servers = servers
    this.#url = url
    // Without a listener the event would end the process: the pool listens on idle connections only. A query that runs on
    // a connection that breaks rejects.
    this.on('error', () => {})
    this.connection.on('errorMessage', (error: unknown) => {
      if (isReadOnly(error)) void this.end()
    })
  }

  override connect(): Promise<pg.Client>
  override connect(callback: ((error: Error) => void) | ((error: null, client: pg.Client) => void)): void
  override connect(callback?: (error: never, client: pg.Client) => void): Promise<pg.Client> | undefined {
    const connected = this.#connect()
    if (callback === undefined) return connected
    const settle = callback as (error: Error | null, client?: pg.Client) => void
    connected.then(
      () => settle(null, this),
      (error: Error) => settle(error),
    )
    return undefined
  }

  async #connect(): Promise<pg.Client> {
    try {
      await super.connect()
      const greeting = { text: this.#servers.greeting, query_timeout: this.#servers.connectMaxMs }
      const { rows } = await super.query<{ read_only: string; started: string }>(greeting)
      if (rows[0]?.read_only === 'on')
        throw new NoWritableServer('PostgreSQL allows reading only: is this a standby?')
      this.server = rows[0]?.started ?? null
      return this
    } catch (error) {
      this.#servers.failed(this.#url)
      // The pool forgets a connection that failed, but does not close one that was refused here.
      this.connection.stream.destroy()
      throw error
    }
  }

  /** The server's process, as it was named when the connection was made. */
  get namedProcess(): number | null {
    return (this as unknown as { processID: number | null }).processID
  }

  /** Ends it at once: its server does not answer. */
  cut(): void {
    this.#servers.failed(this.#url)
    this.connection.stream.destroy(new Error('Connection terminated: the server does not answer'))
  }

  /**
   * Calls `send`. The driver writes each query by itself; here what `send` sends leaves in one write, and wakes the server
   * once.
   */
  inOneWrite<T>(send: () => T): T {
    const { stream } = this.connection
    stream.cork()
    try {
      return send()
    } finally {
      stream.uncork()
    }
  }

  get bytesReceived(): number {
    return (this.connection.stream as Socket).bytesRead
  }
}

/** A connection of the pool. */
interface Member {
  inUse: boolean
  /** What it had received when `endUnanswered` first found it unchanged, and when that was. */
  seen: { bytes: number; at: number } | null
}

/** The pool of connections to the current server. */
export class WritablePool extends pg.Pool {
  readonly #servers: Servers
  readonly #members = new Map<WritableClient, Member>()

  constructor(servers: Servers, options: pg.PoolConfig) {
    class Client extends WritableClient {
      constructor() {
        super(servers, { ...options, connectionTimeoutMillis: servers.connectMaxMs })
      }
    }
    super({ ...options, Client })
    this.#servers = servers
    const note = (client: pg.PoolClient, inUse: boolean) =>
      this.#members.set(client as pg.Client as WritableClient, { inUse, seen: null })
    this.on('acquire', (client) => note(client, true))
    this.on('release', (_, client) => note(client, false))
    this.on('remove', (client) => this.#members.delete(client as pg.Client as WritableClient))
  }

  /** Tries every server before it fails. */
  override connect(): Promise<pg.PoolClient>
  override connect(callback: Connected): void
  override connect(callback?: Connected): Promise<pg.PoolClient> | undefined {
    const connected = this.#servers.reach(() => super.connect())
    if (callback === undefined) return connected
    connected.then(
      (client) => callback(undefined, client, (error) => client.release(error)),
      (error: Error) => callback(error, undefined, () => {}),
    )
    return undefined
  }

  /**
   * Ends connections to a server that is gone. `server` is the one that answers now, and its connections stay; null: none
   * answers, and those end that have been in use without receiving anything for UNANSWERED_MAX_MS of such calls.
   */
  endUnanswered(server: string | null): void {
    const now = performance.now()
    for (const [client, member] of this.#members) {
      if (server !== null) {
        if (client.server !== server) client.cut()
        continue
      }
      const { bytesReceived: bytes } = client
      if (member.seen?.bytes !== bytes) member.seen = { bytes, at: now }
      else if (member.inUse && now - member.seen.at >= UNANSWERED_MAX_MS) client.cut()
    }
  }
}

type Connected = (
  error: Error | undefined,
  client: pg.PoolClient | undefined,
  done: (release?: boolean | Error) => void,
) => void

/** One is enough for a pooler that gives out the session that was used last; others choose at random. */
const ROUNDS = 3

/**
 * Refuses a connection pooler that gives each transaction another session of PostgreSQL. Notifications, session locks and
 * prepared statements need a session of their own.
 *
 * 1. PostgreSQL names its process to each client. Where that is the one that answers, nothing is in between.
 * 2. Behind a pooler, one client asks twice for the process that answers it: a pooler by transactions may take turns.
 * 3. It asks again while another client holds a transaction open, which may have been given its session.
 *
 * @throws StoreUnavailable also when no server can be reached
 */
export async function requireSessions(servers: Servers): Promise<void> {
  const open: WritableClient[] = []
  const connect = () =>
    servers.reach(async () => {
      const client = new WritableClient(servers, { query_timeout: servers.connectMaxMs })
      await client.connect()
      open.push(client)
      return client
    })
  try {
    const client = await connect()
    const first = await answeringProcess(client)
    if (first !== client.namedProcess) {
      const check = async () => {
        if ((await answeringProcess(client)) !== first) throw refusal(servers)
      }
      await check()
      const other = await connect()
      for (let round = 0; round < ROUNDS; round++) {
        await other.query('BEGIN')
        await answeringProcess(other)
        await check()
        await other.query('ROLLBACK')
      }
    }
    for (const each of open) await each.end()
  } catch (error) {
    for (const each of open) each.cut()
    throw error instanceof StoreUnavailable ? error : servers.unreachable(error)
  }
}

const refusal = ({ name }: Servers) =>
  new StoreUnavailable(
    `Cannot use PostgreSQL through the pooler at ${name}: it gives each transaction another session. Give SENDWRIGHT_DATABASE_URL the address of PostgreSQL itself, or set the pooler to pool by sessions (PgBouncer: pool_mode = session).`,
  )

async function answeringProcess(client: WritableClient): Promise<number | undefined> {
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
  return rows[0]?.pid
}
