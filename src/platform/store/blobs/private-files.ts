/**
 * The data folder holds mail, credentials and the sealing secret: only the service's own user may read it. New files
 * are private by the process's umask. Files that an earlier start or an operator's copy left open are made private at
 * the start if the process owns them, and reported if not.
 *
 * The mode of the data folder itself is never changed: an operator may share it with a group on purpose. The files in it
 * are private either way, so read access to the folder shows names only; write access lets others replace files.
 */
import type { Stats } from 'node:fs'
import { chmod, lstat, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'

/** Read, write and execute for group and others. */
const OTHERS_BITS = 0o077
/** The same for users outside the group. */
const EVERYONE_BITS = 0o007
/** Write for group and others. */
const OTHERS_WRITE_BITS = 0o022
const FILE_MODE = 0o600
const FOLDER_MODE = 0o700
/** Files and folders that the service creates directly in the data folder, and SQLite's companion files. */
const OWN_NAMES = /^(?:secret|(?:sendwright|lock)\.db(?:-\w+)?|blobs|spool|tls)$/
/** For the umask of the process: no access for group and others. */
export const PRIVATE_UMASK = OTHERS_BITS

interface ExposedFile {
  path: string
  isFolder: boolean
  /** Permission bits only. */
  mode: number
  /** The user of this process owns it. */
  isOurs: boolean
  /** Others may write, not only read. */
  isWritable: boolean
}

/**
 * The data folder and the service's entries directly in it that group or others can access. Subfolders count as a
 * whole: nobody reaches a file below a private folder. Empty if the platform has no such modes, or the folder does not
 * exist.
 */
export async function exposedFiles(folder: string): Promise<ExposedFile[]> {
  if (process.geteuid === undefined) return []
  const names = await readdir(folder).catch(() => [])
  const paths = names.filter((name) => OWN_NAMES.test(name)).map((name) => join(folder, name))
  const found = await Promise.all([`${folder}/.`, ...paths].map(examine))
  return found.filter((file) => file !== null)
}

async function examine(path: string): Promise<ExposedFile | null> {
  const stats = await lstat(path).catch(() => null)
  // A link's own mode means nothing, and its target belongs to the operator.
  if (stats === null || stats.isSymbolicLink() || (stats.mode & OTHERS_BITS) === 0) return null
  return describe(path.replace(/\/\.$/, ''), stats)
}

const describe = (path: string, stats: Stats): ExposedFile => ({
  path,
  isFolder: stats.isDirectory(),
  mode: stats.mode & 0o7777,
  isOurs: stats.uid === process.geteuid?.(),
  isWritable: (stats.mode & OTHERS_WRITE_BITS) !== 0,
})

/** Removes the access of group and others from our own files; `left`: those that are still exposed. */
export async function makePrivate(folder: string): Promise<{ mended: ExposedFile[]; left: ExposedFile[] }> {
  const mended: ExposedFile[] = []
  for (const file of await exposedFiles(folder)) {
    if (!file.isOurs || file.path === folder) continue
    const changed = await chmod(file.path, file.isFolder ? FOLDER_MODE : FILE_MODE).then(
      () => true,
      () => false,
    )
    if (changed) mended.push(file)
  }
  return { mended, left: await exposedFiles(folder) }
}

/** One sentence for a person: which file, its mode, and what to do. */
export function exposureSentence({ path, isFolder, mode, isOurs }: ExposedFile): string {
  const command = isFolder ? `chmod 700 ${path}` : `chmod 600 ${path}`
  const owner = isOurs ? '' : ' as its owner'
  return `${path} is open to other users of this machine (mode ${mode.toString(8).padStart(4, '0')}): run "${command}"${owner}.`
}

/**
 * Checks a file outside the data folder: null unless every user has access to it. Group access is fine: a certificate's
 * key is often shared with a group.
 */
export async function readableByAll(path: string): Promise<ExposedFile | null> {
  const stats = await stat(path).catch(() => null)
  if (stats === null || (stats.mode & EVERYONE_BITS) === 0) return null
  return describe(path, stats)
}
