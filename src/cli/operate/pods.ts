/** `sendwright pods`: the pods of the database that the settings name, read and made without a running service. */
import pg from 'pg'
import { armFailPoint } from '../../base/flow/fail-point.ts'
import { pause } from '../../base/flow/pause.ts'
import { systemClock } from '../../base/time/clock.ts'
import { SECOND_MS } from '../../base/time/durations.ts'
import { type AccountMoveResult, moveAccount } from '../../carry/account-move/move.ts'
import { type BlobPlace, folderPlace, s3Place } from '../../carry/migrate/blobs.ts'
import { MigrationError } from '../../carry/migrate/values.ts'
import { FRESH_MS } from '../../front/directory.ts'
import { ACCOUNT_ID } from '../../people/accounts/account-directory.ts'
import { type Config, readConfig } from '../../platform/config/config.ts'
import { createS3Client } from '../../platform/store/blobs/s3-client.ts'
import { type PodReport, readPods } from '../../platform/store/pods/directory.ts'
import { podName, schemaOf } from '../../platform/store/pods/pod.ts'
import { openPostgres } from '../../platform/store/postgres/postgres.ts'
import { Servers } from '../../platform/store/postgres/postgres-servers.ts'
import { StoreUnavailable } from '../../platform/store/store.ts'
import { CommandError, parseWords, switches, texts, wrongArguments } from '../usage.ts'
import { show, table } from './service.ts'

export const usage = `sendwright pods list [--json]
sendwright pods create NAME [--json]
sendwright pods move-account ACCOUNT --to NAME [--to-data FOLDER] [--json]

The pods of the database in SENDWRIGHT_DATABASE_URL. The service need not run.

  list     state, live nodes and what each pod has
  create   makes the schema pod_NAME with its tables, for a database user who may not do that; the first start of a service
           with SENDWRIGHT_POD=NAME does it too. A pod that is there stays as it is
  move-account
           moves a subaccount with its mail, events and settings to another pod. Stop the nodes of both pods first: clients of
           both wait until they run again. One that was cut off has changed nothing or is over: run it again

  --to        the pod that gets the account
  --to-data   the data folder of that pod, where files are in folders: SENDWRIGHT_DATA is the one of the pod that has it
`

export async function run(args: string[]): Promise<void> {
  const { values, positionals } = parseWords('pods', args, { ...texts('to', 'to-data'), ...switches('json') })
  const [action = 'list', name, ...more] = positionals
  if (action === 'move-account') return moveCommand(name, more, values)
  const isList = action === 'list' && name === undefined
  if (
    more.length > 0 ||
    values.to !== undefined ||
    values['to-data'] !== undefined ||
    !(isList || (action === 'create' && name !== undefined))
  )
    throw wrongArguments('pods', 'Name list, create and a pod, or move-account and an account')
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

async function moveCommand(
  account: string | undefined,
  more: string[],
  values: { json?: boolean; to?: string; 'to-data'?: string },
): Promise<void> {
  if (account === undefined || !ACCOUNT_ID.test(account) || more.length > 0 || values.to === undefined)
    throw wrongArguments('pods', 'Name the id of an account, and the pod that gets it in --to')
  const to = checkedName(values.to)
  const config = readConfig(process.env)
  if (config.testFailPoint !== null) armFailPoint(config.testFailPoint)
  const { 'to-data': folder } = values
  try {
    const result = await moveAccount({
      ...{ url: urlOf(config), accountId: account, to },
      places: (from) => ({
        from: placeOf(config, from, config.dataFolder),
        to: config.blobs === null && folder === undefined ? null : placeOf(config, to, folder ?? ''),
      }),
      settle: () => pause(systemClock, FRESH_MS + SECOND_MS),
    })
    show(values.json, result, () => movedText(result))
  } catch (error) {
    if (error instanceof StoreUnavailable) throw new CommandError(error.detail)
    if (error instanceof MigrationError) throw new CommandError(error.message)
    throw error
  }
}

/** Where a pod has its files: under its part of the bucket, or in its data folder. */
function placeOf({ blobs }: Config, pod: string, folder: string): BlobPlace {
  if (blobs === null) return folderPlace(folder)
  const { prefix, ...options } = blobsOf(pod) ?? blobs
  return s3Place(createS3Client(options), options.bucket, prefix)
}

const blobsOf = (pod: string): Config['blobs'] => readConfig({ ...process.env, SENDWRIGHT_POD: pod }).blobs

const movedText = ({ account, from, to, tables, files }: AccountMoveResult): string =>
  from === null
    ? `Account ${account} is in pod ${to}.\n`
    : `Account ${account} has moved from pod ${from} to pod ${to}: ${tables.reduce((sum, { rows }) => sum + rows, 0)} rows of ${tables.length} tables and ${files} files, compared. Start the nodes of both pods.\n`

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
