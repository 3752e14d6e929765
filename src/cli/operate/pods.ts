/** `sendwright pods`: the pods of the database that the settings name, read and made without a running service. */
import pg from 'pg'
import { type Config, readConfig } from '../../platform/config/config.ts'
import { type PodReport, readPods } from '../../platform/store/pods/directory.ts'
import { podName, schemaOf } from '../../platform/store/pods/pod.ts'
import { openPostgres } from '../../platform/store/postgres/postgres.ts'
import { Servers } from '../../platform/store/postgres/postgres-servers.ts'
import { StoreUnavailable } from '../../platform/store/store.ts'
import { CommandError, parseFlags, wrongArguments } from '../usage.ts'
import { show, table } from './service.ts'

export const PODS_USAGE = `sendwright pods list [--json]
sendwright pods create NAME [--json]

The pods of the database in SENDWRIGHT_DATABASE_URL. The service need not run.

  list     state, live nodes and what each pod has
  create   makes the schema pod_NAME with its tables, for a database user who may not do that; the first start of a service
           with SENDWRIGHT_POD=NAME does it too. A pod that is there stays as it is
`

export async function podsCommand(args: string[]): Promise<void> {
  const { values, positionals } = parseFlags('pods', {
    args,
    allowPositionals: true,
    options: { json: { type: 'boolean' } },
  })
  const [action = 'list', name, ...more] = positionals
  const isList = action === 'list' && name === undefined
  if (more.length > 0 || !(isList || (action === 'create' && name !== undefined)))
    throw wrongArguments('pods', 'Name list, or create and a pod')
  const wanted = isList ? null : checkedName(name as string)
  const url = urlOf(readConfig(process.env))
  try {
    if (wanted !== null) await (await openPostgres(url, { pod: wanted })).close()
    const pods = (await withClient(url, readPods)).filter((pod) => isList || pod.name === wanted)
    show(values.json, { items: pods }, () => podsTable(pods))
  } catch (error) {
    if (error instanceof StoreUnavailable) throw new CommandError(error.detail)
    if ((error as { code?: string }).code === NO_PRIVILEGE)
      throw new CommandError(
        `Cannot make the schema ${schemaOf(wanted as string)}: the database's user may not (GRANT CREATE ON DATABASE ...).`,
      )
    throw error
  }
}

const NO_PRIVILEGE = '42501'

function checkedName(name: string): string {
  try {
    return podName(name)
  } catch (error) {
    throw wrongArguments('pods', `Cannot name a pod "${name}": ${(error as Error).message}`)
  }
}

function urlOf({ databaseUrl }: Config): string {
  if (databaseUrl === null)
    throw new CommandError('Pods need SENDWRIGHT_DATABASE_URL: a pod is a schema of PostgreSQL.')
  return databaseUrl
}

async function withClient<T>(url: string, use: (client: pg.Client) => Promise<T>): Promise<T> {
  const servers = new Servers(url)
  const client = new pg.Client({ connectionString: servers.current, connectionTimeoutMillis: CONNECT_MAX_MS })
  client.on('error', () => {})
  try {
    await client.connect().catch((error: unknown) => {
      throw servers.unreachable(error)
    })
    return await use(client)
  } finally {
    await client.end().catch(() => {})
  }
}

const CONNECT_MAX_MS = 10_000

const podsTable = (pods: readonly PodReport[]): string =>
  table(
    ['pod', 'state', 'nodes', 'accounts', 'domains', 'keys', 'users', 'HTTP', 'SMTP'],
    pods.map(({ name, state, nodes, entries, http, smtp }) => [
      name,
      state,
      nodes,
      entries.account ?? 0,
      entries.domain ?? 0,
      entries.key ?? 0,
      entries.user ?? 0,
      http.join(' '),
      smtp.join(' '),
    ]),
    'There are no pods.',
  )
