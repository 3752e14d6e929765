/**
 * Hashing of user-chosen passwords: argon2id (RFC 9106) with the parameters that OWASP recommends first for little
 * memory. The text form contains its parameters, so that they can be raised later.
 */
import { randomBytes } from 'node:crypto'
import { equalSecrets } from '../../platform/store/secrets/sealing.ts'
import { argon2id } from './hashing.ts'

const MEMORY_KIB = 19_456
const PASSES = 2
const TAG_BYTES = 32
const SALT_BYTES = 16

/** `$argon2id$v=19$m=19456,t=2,p=1$<salt>$<tag>`, base 64 without padding. @throws TooManyWaiting */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(SALT_BYTES)
  return textForm(salt, await derive(password, salt, MEMORY_KIB, PASSES))
}

/** Constant-time for one set of parameters; false for a hash in another form. @throws TooManyWaiting */
export async function verifyPassword(password: string, hash: string): Promise<boolean> {
  const match = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=1\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/.exec(hash)
  if (!match) return false
  const [, memory, passes, salt, tag] = match as unknown as [string, string, string, string, string]
  const derived = await derive(password, Buffer.from(salt, 'base64'), Number(memory), Number(passes))
  return equalSecrets(derived, Buffer.from(tag, 'base64'))
}

function derive(password: string, salt: Buffer, memory: number, passes: number): Promise<Buffer> {
  // A copy: posting a slice to the thread would clone its whole underlying buffer.
  const nonce = Uint8Array.from(salt)
  return argon2id({ message: password, nonce, parallelism: 1, tagLength: TAG_BYTES, memory, passes })
}

const textForm = (salt: Buffer, tag: Buffer) =>
  `$argon2id$v=19$m=${MEMORY_KIB},t=${PASSES},p=1$${unpadded(salt)}$${unpadded(tag)}`
const unpadded = (bytes: Buffer) => bytes.toString('base64').replaceAll('=', '')

/** Matches no password. Verifying against it takes as long as against any other. */
export const DECOY_HASH = textForm(Buffer.alloc(SALT_BYTES), Buffer.alloc(TAG_BYTES))
