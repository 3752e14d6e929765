/**
 * Refuses a connection pooler that gives each transaction another session of PostgreSQL. Notifications, session locks and
 * prepared statements need a session of their own.
 *
 * 1. PostgreSQL names its process to each client. Where that is the one that answers, nothing is in between.
 * 2. Behind a pooler, one client asks twice for the process that answers it: a pooler by transactions may take turns.
 * 3. It asks again while another client holds a transaction open, which may have been given its session.
 */

import { StoreUnavailable } from '../store.ts'
import { type Servers, WritableClient } from './postgres-servers.ts'

const ANSWER_MAX_MS = 3_000
/** One is enough for a pooler that gives out the session that was used last; others choose at random. */
const ROUNDS = 3

/** @throws StoreUnavailable also when no server can be reached */
export async function requireSessions(servers: Servers): Promise<void> {
  const open: WritableClient[] = []
  const connect = () =>
    servers.reach(async () => {
      const client = new WritableClient(servers, {})
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
        await ask(other, 'BEGIN')
        await answeringProcess(other)
        await check()
        await ask(other, 'ROLLBACK')
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

function ask(client: WritableClient, text: string) {
  const query = { text, query_timeout: ANSWER_MAX_MS }
  return client.query<{ pid: number }>(query)
}

async function answeringProcess(client: WritableClient): Promise<number | undefined> {
  const { rows } = await ask(client, 'SELECT pg_backend_pid() AS pid')
  return rows[0]?.pid
}
