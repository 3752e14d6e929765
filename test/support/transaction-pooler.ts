/**
 * A connection pooler that gives each transaction the session of PostgreSQL that was used last, as PgBouncer does with
 * `pool_mode = transaction`. Only for clients that wait for each answer.
 */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import pg from 'pg'
import { ownAddress } from './service.ts'

/** AuthenticationOk, BackendKeyData of a process that does not exist, ReadyForQuery: PostgreSQL's message formats. */
const WELCOME = Buffer.from('R\0\0\0\x08\0\0\0\0K\0\0\0\x0c\0\0\0\x07\0\0\0\0Z\0\0\0\x05I', 'latin1')
/** ReadyForQuery outside a transaction. */
const IDLE = Buffer.from('Z\0\0\0\x05I', 'latin1')

const TERMINATE = 'X'.charCodeAt(0)

export async function startTransactionPooler(url: string): Promise<{ url: string; close(): void }> {
  const free: Socket[] = []
  const all: Socket[] = []

  async function session(): Promise<Socket> {
    const last = free.pop()
    if (last) return last
    const client = new pg.Client({ connectionString: url })
    client.on('error', () => {}) // `close` ends it
    await client.connect()
    const { stream } = (client as unknown as { connection: { stream: Socket } }).connection
    stream.removeAllListeners('data')
    all.push(stream)
    return stream
  }

  async function serve(client: Socket): Promise<void> {
    let used: Socket | null = null
    let isOpen = false
    for await (const bytes of client) {
      if (!isOpen) {
        isOpen = true
        client.write(WELCOME)
        continue
      }
      if (bytes[0] === TERMINATE) break
      used ??= await session()
      const upstream: Socket = used
      upstream.removeAllListeners('data')
      upstream.on('data', (answer) => {
        if (answer.subarray(-IDLE.length).equals(IDLE)) {
          used = null
          free.push(upstream)
        }
        client.write(answer)
      })
      upstream.write(bytes)
    }
  }

  const server = createServer((client) => void serve(client.on('error', () => {})).catch(() => {}))
  server.listen(0, ownAddress())
  await once(server, 'listening')
  const { address, port } = server.address() as AddressInfo
  const through = new URL(url)
  through.host = `${address}:${port}`
  return {
    url: through.href,
    close() {
      server.close()
      for (const each of all) each.destroy()
    },
  }
}
