/**
 * The file of settings, NAME=value in each line, as systemd (EnvironmentFile) and Node (--env-file) both read it. Lines that
 * do not change stay as they are, comments included.
 */
import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  lstatSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  type Stats,
  writeFileSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { parseEnv } from 'node:util'
import { CommandError } from '../usage.ts'

/** A value to set; null: the setting goes back to its default. */
export type EnvChanges = ReadonlyMap<string, string | null>

/** No file of settings is larger. */
const SIZE_MAX_BYTES = 1024 * 1024

/** '' for a file that does not exist. @throws CommandError, for a symbolic link and other things that are no file too */
export function readEnvFile(file: string): string {
  let opened: number
  try {
    // A pipe would hold the command.
    opened = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return ''
    throw new CommandError(`Cannot read the settings in "${file}": ${code === 'ELOOP' ? IS_LINK : message}`)
  }
  try {
    const fault = fileFault(fstatSync(opened))
    if (fault !== null) throw new Error(fault)
    return readFileSync(opened, 'utf8')
  } catch (error) {
    throw new CommandError(`Cannot read the settings in "${file}": ${(error as Error).message}`)
  } finally {
    closeSync(opened)
  }
}

const IS_LINK = 'it is a symbolic link; name the file that it leads to'

function fileFault(stats: Stats): string | null {
  if (stats.isSymbolicLink()) return IS_LINK
  if (!stats.isFile()) return 'it is no file'
  return stats.size > SIZE_MAX_BYTES ? `it is larger than ${SIZE_MAX_BYTES} bytes` : null
}

export const valuesIn = (text: string): Record<string, string> =>
  ({ ...parseEnv(text) }) as Record<string, string>

/**
 * The text with the changes: a line that sets the name is replaced, else the setting follows the comment that mentions it
 * (`#NAME=`), else the end. A setting that goes back to its default becomes a comment.
 * @throws CommandError for a value that cannot be written in one line
 */
export function changedText(text: string, changes: EnvChanges): string {
  const lines = text === '' ? [] : text.replace(/\r?\n$/, '').split('\n')
  const before = valuesIn(text)
  for (const [name, value] of changes) {
    if (value === (before[name] ?? null)) continue
    // The last one counts.
    const at = lines.findLastIndex((line) => new RegExp(`^\\s*(?:export\\s+)?${name}\\s*=`).test(line))
    if (value === null) {
      if (at >= 0) lines[at] = `#${lines[at]?.trimStart()}`
      continue
    }
    const line = `${name}=${written(name, value)}`
    const comment = lines.findLastIndex((one) => new RegExp(`^\\s*#\\s*${name}=`).test(one))
    if (at >= 0) lines[at] = line
    else if (comment >= 0) lines.splice(comment + 1, 0, line)
    else lines.push(line)
  }
  return lines.length === 0 ? '' : `${lines.join('\n')}\n`
}

/** Names whose value differs. */
export const changedNames = (text: string, changes: EnvChanges): string[] => {
  const before = valuesIn(text)
  return [...changes].filter(([name, value]) => value !== (before[name] ?? null)).map(([name]) => name)
}

/** Both readers take single quotes literally. */
function written(name: string, value: string): string {
  if (/^[\w./:@,+=%~-]*$/.test(value)) return value
  if (/['\r\n\0]/.test(value)) throw new CommandError(`${name}: the value has a quote or a line break`)
  return `'${value}'`
}

/** At most the group may read it: it may hold passwords. */
const MODE_MAX = 0o640
const MODE_NEW = 0o600

/** Replaces the file in one step; owner, group and mode stay, a new one is its owner's alone. @throws CommandError */
export function writeEnvFile(file: string, text: string): void {
  try {
    replaceFile(file, text)
  } catch (error) {
    throw new CommandError(`Cannot write the settings to "${file}": ${(error as Error).message}`)
  }
}

function replaceFile(file: string, text: string): void {
  const old = lstatSync(file, { throwIfNoEntry: false })
  const fault = old === undefined ? null : fileFault(old)
  if (fault !== null) throw new Error(fault)
  const next = `${file}.${process.pid}.new`
  try {
    writeFileSync(next, text, { mode: MODE_NEW, flag: 'wx', flush: true })
    if (old && (old.uid !== process.getuid?.() || old.gid !== process.getgid?.()))
      chownSync(next, old.uid, old.gid)
    // After the owner: the mode of the umask is narrower, and a change of owner may narrow it too.
    if (old) chmodSync(next, old.mode & MODE_MAX)
    renameSync(next, file)
  } catch (error) {
    rmSync(next, { force: true })
    throw error
  }
  const folder = openSync(dirname(file), 'r')
  fsyncSync(folder)
  closeSync(folder)
}
