/**
 * The mark that a target has until its copy is complete: which source it is of, and how far it is. It is written in the
 * transaction of the rows that it speaks of. A service refuses to start on a database with a mark (platform/store/installation.ts).
 */
import { createHash } from 'node:crypto'
import { COPY_MARK, SECRET_MARK } from '../../platform/store/installation.ts'
import { readMigrations } from '../../platform/store/migrate.ts'
import { TABLE_KINDS } from '../../tools/system/sizes/table-kinds.ts'
import { MADE_ANEW } from './catalog.ts'
import type { Side, Writer } from './side.ts'
import { MigrationError } from './values.ts'

export interface Mark {
  /** Identifies the source. */
  source: string
  /** The schema version of both. */
  schema: number
  /** Tables that are complete. */
  done: string[]
  /** The one that is being copied, and its last key (`packed`). */
  table: string | null
  place: string[] | null
}

export const newestSchema = (): number => readMigrations('sqlite').at(-1)?.version ?? 0

/** @throws MigrationError unless the source has the schema of this program, and something to copy */
export async function identify(source: Side): Promise<string> {
  const catalog = await source.catalog()
  const versions = catalog?.has('schema_versions')
    ? await source.query('SELECT version FROM schema_versions ORDER BY version')
    : []
  const known = readMigrations(source.kind).map(({ version }) => version)
  const newest = Number(versions.at(-1)?.[0] ?? 0)
  if (versions.map(([version]) => Number(version)).join() !== known.join()) {
    const remedy =
      newest > newestSchema()
        ? 'Use the version of Sendwright that it belongs to.'
        : 'Start and stop the service of this version once; that brings it up to date.'
    throw new MigrationError(
      `Cannot copy ${source.name}: it has schema version ${newest}, this program has ${newestSchema()}. ${remedy}`,
    )
  }
  const [secret] = await source.query(`SELECT value FROM installation WHERE name = '${SECRET_MARK}'`)
  if (!secret) throw new MigrationError(`There is nothing to copy: no service has used ${source.name}.`)
  if (await readMark(source))
    throw new MigrationError(`Cannot copy ${source.name}: it is itself a copy that did not end.`)
  return createHash('sha256')
    .update(secret[0] as Uint8Array)
    .digest('hex')
}

async function readMark(side: Side): Promise<Mark | null> {
  const [row] = await side.query(`SELECT value FROM installation WHERE name = '${COPY_MARK}'`)
  return row ? (JSON.parse(Buffer.from(row[0] as Uint8Array).toString()) as Mark) : null
}

export async function writeMark(writer: Writer, mark: Mark): Promise<void> {
  await writer.run(`DELETE FROM installation WHERE name = '${COPY_MARK}'`)
  await writer.run(`INSERT INTO installation (name, value) VALUES ('${COPY_MARK}', ?)`, [
    Buffer.from(JSON.stringify(mark)),
  ])
}

export const removeMark = (writer: Writer): Promise<void> =>
  writer.run(`DELETE FROM installation WHERE name = '${COPY_MARK}'`)

/** `filled`: by a service, or by a copy that is complete. `table`: the first one that has rows. */
type TargetState = { kind: 'empty' } | { kind: 'begun'; mark: Mark } | { kind: 'filled'; table: string }

/** Tables that hold rows before any service has used them: those of a few fixed rows. */
const FIXED: ReadonlySet<string> = new Set(
  Object.values(TABLE_KINDS).flatMap((tables) =>
    Object.entries(tables).flatMap(([name, bound]) => (bound === 'fixed' ? [name] : [])),
  ),
)

/** @throws MigrationError if there are tables of something else */
export async function stateOf(target: Side): Promise<TargetState> {
  const catalog = await target.catalog()
  if (!catalog) return { kind: 'empty' }
  if (!catalog.has('schema_versions')) {
    const [name] = catalog.keys()
    throw new MigrationError(
      `Cannot copy to ${target.name}: it holds other tables, such as "${name}". Give it a database of its own.`,
    )
  }
  const mark = catalog.has('installation') ? await readMark(target) : null
  if (mark) return { kind: 'begun', mark }
  if (catalog.has('installation')) {
    const [row] = await target.query('SELECT name FROM installation LIMIT 1')
    if (row) return { kind: 'filled', table: 'installation' }
  }
  for (const name of catalog.keys()) {
    if (FIXED.has(name) || Object.hasOwn(MADE_ANEW, name)) continue
    const [row] = await target.query(`SELECT 1 FROM ${name} LIMIT 1`)
    if (row) return { kind: 'filled', table: name }
  }
  return { kind: 'empty' }
}
