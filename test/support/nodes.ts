/** Several processes of the service on one PostgreSQL database. */
import type { TestContext } from 'node:test'
import pg from 'pg'
import { createMigratedDatabase } from './migrated.ts'
import type { TestDatabase } from './postgres.ts'
import { ownAddress } from './service.ts'
import { AUTHORIZATION, type ServiceProcess, startProcess } from './service-process.ts'
import { temporaryFolder } from './stores.ts'

export interface TestNode extends ServiceProcess {
  /** Its id in the table of nodes. */
  id: string
}

export interface TestNodes {
  start(env?: Record<string, string>): Promise<TestNode>
  /** One without the role `api`, beside another node. */
  startSilent(beside: TestNode, env: Record<string, string>): Promise<ServiceProcess>
  /** Runs a statement on their database. */
  query(sql: string, values?: unknown[]): Promise<Record<string, unknown>[]>
}

const SECRET = 'secret-of-all-processes-0123456789'

/** A database for processes that `env` applies to; all end with the test. `own`: instead of one of the test run's server. */
export async function testNodes(
  t: TestContext,
  env: Record<string, string> = {},
  own?: TestDatabase,
): Promise<TestNodes> {
  const database = own ?? (await createMigratedDatabase())
  const client = new pg.Client({ connectionString: database.url })
  // A test may stop the server.
  client.on('error', () => {})
  await client.connect()
  t.after(async () => {
    await client.end().catch(() => {})
    await database.drop()
  })
  const launch = async (more: Record<string, string>, options: { domain?: string } = {}) => {
    const settings = {
      SENDWRIGHT_DATA: await temporaryFolder(t),
      SENDWRIGHT_DATABASE_URL: database.url,
      SENDWRIGHT_SECRET: SECRET,
      SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8',
    }
    const service = await startProcess(ownAddress(), { ...settings, ...env, ...more }, options)
    t.after(() => service.end('SIGKILL'))
    return service
  }
  return {
    async start(more = {}) {
      const service = await launch(more)
      const own = (await listNodes(service)).find(({ answers }) => answers)
      return { ...service, id: own?.id ?? '' }
    },
    startSilent: ({ domain }, more) => launch(more, { domain }),
    query: async (sql, values = []) => (await client.query(sql, values)).rows,
  }
}

export interface ListedNode {
  id: string
  answers: boolean
  roles: string[]
  addresses: string[]
  state: string
  silent_seconds: number
}

/** As GET /sendwright/v1/system names them. */
export async function listNodes(node: ServiceProcess): Promise<ListedNode[]> {
  const { nodes } = (await call(node, 'GET', '/sendwright/v1/system')) as { nodes: ListedNode[] }
  return nodes
}

/** One call with a form or a JSON body. @throws unless it is answered with 200 to 299 */
export async function call(
  node: ServiceProcess,
  method: string,
  path: string,
  fields?: Record<string, string>,
  json?: object,
  headers?: Record<string, string>,
): Promise<Record<string, unknown>> {
  const answer = await fetch(`${node.url}${path}`, {
    method,
    headers: {
      authorization: AUTHORIZATION,
      ...(json && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(json && { body: JSON.stringify(json) }),
    ...(fields && { body: new URLSearchParams(fields) }),
  })
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
  return JSON.parse(text) as Record<string, unknown>
}
