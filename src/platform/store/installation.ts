/**
 * Opens the store together with the secret that sealed its contents.
 *
 * 1. Before the schema is touched, the secret is verified: against the mark, a text that the first start sealed with it,
 *    or, in a database older than marks, against some of the sealed keys. A start with another secret is refused, and so
 *    is one without a secret if the database has sealed values; neither changes anything.
 * 2. An empty database gets a secret, if none is configured, and its mark.
 *
 * A service that ran with another secret would look healthy, but could neither sign with the stored keys nor recognise
 * API keys and links that are in use, and would seal new keys with the wrong secret.
 */
import { randomBytes } from 'node:crypto'
import { mkdirSync, rmSync } from 'node:fs'
import { systemFault } from '../../base/process/system-fault.ts'
import type { Config } from '../config/config.ts'
import type { UnmigratedDatabase } from './migrate.ts'
import { schemaOf } from './pods/pod.ts'
import type { PostgresOptions } from './postgres/postgres.ts'
import { createSealer, type Sealer } from './secrets/sealing.ts'
import { makeSecret, readSecret, SecretFault, secretFile } from './secrets/secret-file.ts'
import { lockFolder, openSqlite, type SqliteOptions } from './sqlite/sqlite.ts'
import { insert, type LeaseTimes, type Store, StoreUnavailable } from './store.ts'

export interface Installation {
  store: Store
  sealer: Sealer
  /** The sealer's secret, for backups that include it. */
  secret: string
}

type InstallationConfig = Pick<Config, 'databaseUrl' | 'dataFolder' | 'secret'> & Partial<Pick<Config, 'pod'>>

/** @throws SecretFault, StoreUnavailable, UnknownSchema; StoreFault for a damaged database */
export async function openInstallation(
  config: InstallationConfig,
  options: Omit<OpenOptions, 'beforeMigrations'> = {},
): Promise<Installation> {
  const chosen: { secret?: string; isNew: boolean } = { isNew: false }
  const store = await openStore(config, {
    ...options,
    async beforeMigrations(database) {
      await refuseUnfinishedCopy(database)
      const secret = readSecret(config.secret, config.dataFolder)
      const samples = await samplesIn(database, config.pod ?? null)
      if (secret === null && samples.length > 0) throw missing(config)
      if (secret !== null && samples.length > 0 && !opensOne(createSealer(secret), samples))
        throw wrong(config)
      chosen.isNew = secret === null
      chosen.secret = secret ?? makeSecret(config.dataFolder)
    },
  })
  try {
    const secret = chosen.secret as string
    const sealer = createSealer(secret)
    await keepMark(store, sealer).catch((error: unknown) => {
      if (!(error instanceof SecretFault)) throw error
      // Another node was faster at a simultaneous first start.
      if (chosen.isNew) rmSync(secretFile(config.dataFolder), { force: true })
      throw chosen.isNew ? missing(config) : wrong(config)
    })
    return { store, sealer, secret }
  } catch (error) {
    await store.close()
    throw error
  }
}

interface Sample {
  purpose: string
  sealed: Uint8Array
}

/** Name of the mark in table `installation`, and the purpose it is sealed under. */
export const SECRET_MARK = 'secret-mark'
/** Name of the row in table `installation` that `sendwright migrate` keeps in a database until its copy is complete. */
export const COPY_MARK = 'unfinished-copy'
const MARK_BYTES = 32

/** Keys tried per table in a database without a mark; one that opens proves the secret. */
const SAMPLES_MAX = 20

const SAMPLES: readonly { table: string; purpose: string; query: string }[] = [
  {
    table: 'accounts',
    purpose: 'webhook-signing-key',
    query: `SELECT signing_key_sealed AS sealed FROM accounts ORDER BY created_at LIMIT ${SAMPLES_MAX}`,
  },
  {
    table: 'dkim_keys',
    purpose: 'dkim-key',
    query: `SELECT private_key_sealed AS sealed FROM dkim_keys ORDER BY created_at LIMIT ${SAMPLES_MAX}`,
  },
]

/** @throws StoreUnavailable */
async function refuseUnfinishedCopy({ hasTable, rows }: UnmigratedDatabase): Promise<void> {
  if (!(await hasTable('installation'))) return
  const marks = await rows(`SELECT name FROM installation WHERE name = '${COPY_MARK}'`)
  if (marks.length > 0)
    throw new StoreUnavailable(
      'Cannot open the database: a copy into it did not end. Run the same `sendwright migrate` again, or empty the database.',
    )
}

/** Sealed values to verify the secret against: the mark alone if there is one. */
async function samplesIn({ hasTable, rows }: UnmigratedDatabase, pod: string | null): Promise<Sample[]> {
  if (await hasTable('installation')) {
    const marks = await rows(`SELECT value AS sealed FROM installation WHERE name = '${SECRET_MARK}'`)
    if (marks.length > 0)
      return marks.map(({ sealed }) => ({ purpose: SECRET_MARK, sealed: sealed as Uint8Array }))
  }
  const samples: Sample[] = []
  for (const { table, purpose, query } of SAMPLES) {
    if (!(await hasTable(table))) continue
    const found = await rows(query)
    samples.push(...found.map(({ sealed }) => ({ purpose, sealed: sealed as Uint8Array })))
  }
  if (pod !== null && samples.length === 0) samples.push(...(await marksOfPods(rows)))
  // An account may have no signing key.
  return samples.filter(({ sealed }) => sealed.byteLength > 0)
}

/**
 * The mark of another pod, for a pod that is new: all have one secret, so that accounts can move, and whoever passes
 * connections on finds keys by their digests.
 */
async function marksOfPods(rows: UnmigratedDatabase['rows']): Promise<Sample[]> {
  for (const { name } of await rows('SELECT name FROM sendwright_pods.pods ORDER BY name')) {
    const table = `${schemaOf(String(name))}.installation`
    const [found] = await rows(`SELECT to_regclass('${table}') IS NOT NULL AS there`)
    if (found?.['there'] !== true) continue
    const marks = await rows(`SELECT value AS sealed FROM ${table} WHERE name = '${SECRET_MARK}'`)
    if (marks.length > 0)
      return marks.map(({ sealed }) => ({ purpose: SECRET_MARK, sealed: sealed as Uint8Array }))
  }
  return []
}

function opensOne(sealer: Sealer, samples: readonly Sample[]): boolean {
  return samples.some(({ purpose, sealed }) => {
    try {
      sealer.open(purpose, sealed)
      return true
    } catch {
      return false
    }
  })
}

/** Writes the mark if there is none. @throws SecretFault if the existing one is sealed with another secret */
async function keepMark(store: Store, sealer: Sealer): Promise<void> {
  const sealed = sealer.seal(SECRET_MARK, randomBytes(MARK_BYTES).toString('base64url'))
  const { sql, values } = insert('installation', { name: SECRET_MARK, value: sealed })
  await store.commit([{ sql: `${sql} ON CONFLICT (name) DO NOTHING`, values }])
  const rows = await store.read({
    sql: 'SELECT value FROM installation WHERE name = ?',
    values: [SECRET_MARK],
  })
  const samples = rows.map(({ value }) => ({ purpose: SECRET_MARK, sealed: value as Uint8Array }))
  if (!opensOne(sealer, samples)) throw new SecretFault('The mark is sealed with another secret')
}

const LOST =
  'Without that secret the DKIM keys, webhook signing keys and certificate keys in the database cannot be read, and API keys and links in mail that was sent do not work'

const wrong = ({ secret, dataFolder }: InstallationConfig) =>
  new SecretFault(
    `Cannot start: ${secret ? 'SENDWRIGHT_SECRET' : `the secret in "${secretFile(dataFolder)}"`} is not the secret that this database was sealed with. ${LOST}. ${GO_ON}`,
  )

const missing = ({ dataFolder }: InstallationConfig) =>
  new SecretFault(
    `Cannot start: the database has keys sealed with a secret, but SENDWRIGHT_SECRET is not set and "${secretFile(dataFolder)}" does not exist or is empty. ${LOST}. ${GO_ON}`,
  )

const GO_ON =
  'Put the right secret there, from a backup or from another node of this installation, and start again; nothing was changed. If it is lost for good, only a start with an empty database is left.'

export interface OpenOptions extends SqliteOptions {
  leaseTimes?: LeaseTimes
  onClashes?: PostgresOptions['onClashes']
}

/**
 * Opens the configured store: PostgreSQL if there is a URL, else SQLite in the data folder. In both cases the data folder
 * is locked for one process: it holds the blobs, and a start removes all spool files.
 * @throws StoreUnavailable
 */
export async function openStore(
  config: Pick<InstallationConfig, 'databaseUrl' | 'dataFolder' | 'pod'>,
  options: OpenOptions = {},
): Promise<Store> {
  if (!config.databaseUrl) return openSqlite(config.dataFolder, options).catch(refuseFolder)
  const lock = lockedFolder(config.dataFolder)
  try {
    const { openPostgres } = await import('./postgres/postgres.ts')
    const store = await openPostgres(config.databaseUrl, { ...options, pod: config.pod ?? null })
    return { ...store, close: () => store.close().finally(() => lock.close()) }
  } catch (error) {
    lock.close()
    throw error
  }
}

function lockedFolder(folder: string): ReturnType<typeof lockFolder> {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    return lockFolder(folder)
  } catch (error) {
    return refuseFolder(error)
  }
}

/** What the system refuses in the data folder becomes a sentence that names the setting. */
function refuseFolder(error: unknown): never {
  const fault = systemFault(error)
  if (fault === null) throw error
  throw new StoreUnavailable(`Cannot open the data folder, as SENDWRIGHT_DATA says: ${fault}`, {
    cause: error,
  })
}
