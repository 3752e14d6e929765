/** The sealing secret: configured, or in a file in the data folder that the first start creates. */
import { randomBytes } from 'node:crypto'
import { chmodSync, closeSync, fsyncSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { SECRET_FILE } from '../blobs/data-folder.ts'

const SECRET_BYTES = 32

export const secretFile = (dataFolder: string): string => join(dataFolder, SECRET_FILE)

/** The secret does not match the database, or cannot be read. The message is for the operator: whole sentences. */
export class SecretFault extends Error {}

/** The configured secret or the one in the data folder; null if there is none. @throws SecretFault */
export function readSecret(configured: string | null, dataFolder: string): string | null {
  if (configured) return configured
  const file = secretFile(dataFolder)
  try {
    // A full disk leaves an empty file.
    return readFileSync(file, 'utf8').trim() || null
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return null
    throw new SecretFault(`Cannot read the sealing secret in "${file}": ${message}.`, { cause: error })
  }
}

/** Creates a secret and writes it to the data folder with mode 0600; syncs the file and its folder. */
export function makeSecret(dataFolder: string): string {
  mkdirSync(dataFolder, { recursive: true, mode: 0o700 })
  const file = secretFile(dataFolder)
  const secret = randomBytes(SECRET_BYTES).toString('base64url')
  writeFileSync(file, `${secret}\n`, { mode: 0o600, flush: true })
  chmodSync(file, 0o600)
  const folder = openSync(dirname(file), 'r')
  fsyncSync(folder)
  closeSync(folder)
  return secret
}
