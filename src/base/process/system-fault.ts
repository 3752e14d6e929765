/** Errors of the operating system, such as a file that does not exist, as a sentence for a person. */
import { userInfo } from 'node:os'
import { InsufficientStorage, Unavailable } from './errors.ts'
import { shortageOf } from './shortage.ts'

/** What a call of the system would have done. Others are named as they are. */
const ACTIONS: Readonly<Record<string, string>> = {
  access: 'use',
  copyfile: 'copy',
  lstat: 'read',
  mkdir: 'create the folder',
  mkdtemp: 'create a folder',
  opendir: 'read the folder',
  rmdir: 'remove the folder',
  scandir: 'read the folder',
  stat: 'read',
  unlink: 'remove',
}

/** Codes that say what this process's user may not do. */
const OF_RIGHTS = ['EACCES', 'EPERM', 'EROFS']

/**
 * The sentence, with path, reason and code, e.g. `Cannot open "/nope": no such file or directory (ENOENT).` Null: the error is
 * not one that the system returned.
 */
export function systemFault(error: unknown): string | null {
  if (!(error instanceof Error)) return null
  const { code, syscall, path, dest, message } = error as NodeJS.ErrnoException & { dest?: string }
  if (syscall === undefined || code === undefined || !/^E[A-Z0-9]+$/.test(code)) return null
  const [, reason = message] = /^[A-Z0-9]+: (.*?),? \w+(?: '|$)/.exec(message) ?? []
  const action = ACTIONS[syscall] ?? syscall
  const places = [path, dest].filter((place) => place !== undefined).map((place) => `"${place}"`)
  const user = OF_RIGHTS.includes(code) ? ` as user ${userName()}` : ''
  return `Cannot ${[action, ...places].join(' ')}${user}: ${reason} (${code}).`
}

function userName(): string {
  try {
    return userInfo().username
  } catch {
    // The user has no entry, as in a container that runs with any id.
    return String(process.geteuid?.() ?? 'of this process')
  }
}

/**
 * What this machine or its database lacked when an error arose, as a sentence without its full stop: it ends by itself or by
 * the operator's action. Null: the fault is of what was to be done.
 */
export function localFaultOf(error: unknown): string | null {
  if (error instanceof Unavailable) return 'the database cannot be reached'
  if (error instanceof InsufficientStorage) return 'there is no space left on this machine'
  return shortageOf(error)
}
