/**
 * A copy of the database beside it, made before the migrations of a newer program: whoever has to go back to the older one
 * replaces the database by it (docs/upgrading.md).
 */
import { closeSync, openSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { open, statfs } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { syncFolder } from '../blobs/blobs.ts'

/** What became of it. */
export type UpgradeCopy =
  | { file: string; bytes: number }
  | { file: null; neededBytes: number; freeBytes: number }

const NAME = /^before-upgrade-to-\d+\.db(?:\.part)?$/
export const isUpgradeCopy = (name: string): boolean => NAME.test(name)
/** The migrations need room too, and so does mail. */
const ROOM_FACTOR = 3

/**
 * Keeps one copy, of the last upgrade. One of an upgrade to the same schema stays: that upgrade was cut off, and the copy is
 * from before it.
 * @param schema that the migrations lead to
 * @param run executes SQL on the database
 * @returns null: there is such a copy already
 */
export async function keepUpgradeCopy(
  database: string,
  schema: number,
  run: (sql: string) => Promise<void>,
): Promise<UpgradeCopy | null> {
  const folder = dirname(database)
  const file = join(folder, `before-upgrade-to-${schema}.db`)
  const others = readdirSync(folder).filter((name) => NAME.test(name) && name !== basename(file))
  if (statSync(file, { throwIfNoEntry: false }) !== undefined) return null
  const { bavail, bsize } = await statfs(folder)
  const neededBytes = ROOM_FACTOR * statSync(database).size
  if (bavail * bsize < neededBytes) return { file: null, neededBytes, freeBytes: bavail * bsize }
  const part = `${file}.part`
  rmSync(part, { force: true })
  closeSync(openSync(part, 'a', 0o600))
  await run(`VACUUM INTO '${part.replaceAll("'", "''")}'`)
  // VACUUM INTO syncs nothing, and a copy with its final name is never made again.
  const copy = await open(part, 'r')
  await copy.sync().finally(() => copy.close())
  renameSync(part, file)
  await syncFolder(folder)
  for (const name of others) rmSync(join(folder, name), { force: true })
  return { file, bytes: statSync(file).size }
}
