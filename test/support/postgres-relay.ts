/** Passes bytes between a service and PostgreSQL, and breaks a connection after a commit was done, before its answer arrives. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { ownAddress } from './service.ts'

export interface PostgresRelay {
  /** The database's, through the relay. */
  readonly url: string
  /** Answers to commits that were lost so far. */
  readonly cuts: number
  /** The next connection that carries this value loses the answer to its commit. */
  cutCommitWith(value: string): void
  /** From now on each commit loses its answer with this probability. */
  cutCommits(chance: number): void
  close(): void
}

/** What the server says when a COMMIT is done, and nothing else: a statement of that name has no rows to count. */
const COMMITTED = 'COMMIT\0'
/** ReadyForQuery outside a transaction: PostgreSQL's message formats. */
const IDLE = Buffer.from('Z\0\0\0\x05I')

export async function startPostgresRelay(url: string): Promise<PostgresRelay> {
  const { hostname, port } = new URL(url)
  let wanted: string | null = null
  let chance = 0
  let cuts = 0

  const server = createServer((client) => {
    const upstream = connect({ host: hostname, port: Number(port) })
    let carriesWanted = false
    const end = () => {
      client.destroy()
      upstream.destroy()
    }
    for (const socket of [client, upstream]) socket.on('error', end).on('close', end)
    client.on('data', (chunk) => {
      if (wanted !== null && chunk.includes(wanted)) carriesWanted = true
      upstream.write(chunk)
    })
    upstream.on('data', (chunk) => {
      const isWanted = carriesWanted && wanted !== null
      if (chunk.includes(COMMITTED) && (isWanted || Math.random() < chance)) {
        if (isWanted) wanted = null
        cuts++
        end()
        return
      }
      // A query of the value outside a transaction has been answered.
      if (chunk.includes(IDLE)) carriesWanted = false
      client.write(chunk)
    })
  })
  server.listen(0, ownAddress())
  await once(server, 'listening')
  const { address, port: own } = server.address() as AddressInfo
  const through = new URL(url)
  through.host = `${address}:${own}`
  return {
    url: through.href,
    get cuts() {
      return cuts
    },
    cutCommitWith(value) {
      wanted = value
    },
    cutCommits(next) {
      chance = next
    },
    close: () => server.close(),
  }
}
