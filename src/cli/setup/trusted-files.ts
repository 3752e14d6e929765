/**
 * What `sendwright setup` believes when root runs it. Settings decide where the data is, and so who gets the administrator's
 * password: nobody but root and the service's user may have written them. Other users run setup with their own rights.
 */
import { realpathSync, type Stats, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { CommandError } from '../usage.ts'

const WRITE_BITS = 0o022
const EVERYONE_WRITES = 0o002
/** Entries belong to their owners: others can add some, not replace these. */
const STICKY = 0o1000

export interface Rights {
  /** The user of this process. */
  userId: number | undefined
  /** The service's user by what root has set; null: not known. */
  serviceUserId: number | null
}

/**
 * The rights of this process. The service's user owns the data folder that the environment names: a folder named in the file
 * says nothing about the file.
 */
export function ownRights(dataFolder: string | undefined): Rights {
  const owner = dataFolder ? statSync(dataFolder, { throwIfNoEntry: false })?.uid : undefined
  return { userId: process.getuid?.(), serviceUserId: owner ?? null }
}

/** @throws CommandError if another user could have written the file of settings, or could write it */
export function checkSettings(file: string, rights: Rights): void {
  if (rights.userId !== 0) return
  const isTrusted = ({ uid }: Stats) => uid === 0 || uid === rights.serviceUserId
  const settings = statSync(file, { throwIfNoEntry: false })
  if (settings !== undefined && !isTrusted(settings))
    throw refusal(`"${file}" belongs to user ${settings.uid}`, settings.uid)
  if (settings !== undefined && (settings.mode & WRITE_BITS) !== 0)
    throw refusal(`others may write to "${file}"`, null)
  const folders = foldersAbove(file)
  folders.forEach((folder, depth) => {
    const stats = statSync(folder)
    if (!isTrusted(stats)) throw refusal(`"${folder}" belongs to user ${stats.uid}`, stats.uid)
    const isShared = (stats.mode & WRITE_BITS) !== 0
    if (isShared && !(depth > 0 && (stats.mode & STICKY) !== 0))
      throw refusal(`others may write to "${folder}"`, null)
  })
}

/** @throws CommandError if anybody could have made the folder, which gets the data of a first start */
export function checkDataFolder(dataFolder: string, { userId }: Rights): void {
  if (userId !== 0 || statSync(dataFolder, { throwIfNoEntry: false })?.uid === 0) return
  const parent = dirname(dataFolder)
  const mode = statSync(parent, { throwIfNoEntry: false })?.mode ?? 0
  if ((mode & EVERYONE_WRITES) !== 0)
    throw refusal(`everybody may create "${dataFolder}" in "${parent}"`, null)
}

function refusal(cause: string, owner: number | null): CommandError {
  const other = owner === null ? '' : ', or run setup as that user'
  return new CommandError(
    `Setup by root believes only settings that root or the service's user has written, and ${cause}. Change that${other}.`,
  )
}

/** From the file's own folder to the root; without links. Empty where it does not exist: then no file can be written. */
function foldersAbove(file: string): string[] {
  let folder: string
  try {
    folder = realpathSync(dirname(file))
  } catch {
    return []
  }
  const folders = [folder]
  while (dirname(folder) !== folder) {
    folder = dirname(folder)
    folders.push(folder)
  }
  return folders
}
