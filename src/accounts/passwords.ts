/**
 * Passwords that people choose: argon2id (RFC 9106) with the parameters that OWASP names as its first choice
 * for little memory. The text form names its parameters, so that they can be raised later.
 */
import { type Argon2Parameters, argon2, randomBytes } from 'node:crypto'
import { promisify } from 'node:util'
import { TooManyWaiting } from '../base/errors.ts'
import { createGate } from '../base/gate.ts'
import { equalSecrets } from '../store/sealing.ts'

const argon2Async = promisify(argon2) as (algorithm: string, parameters: Argon2Parameters) => Promise<Buffer>

const MEMORY_KIB = 19_456
const PASSES = 2
const TAG_BYTES = 32
const SALT_BYTES = 16
/** Each takes 19 MB, and 20 ms of one of the four threads that files and DNS need as well. */
const HASHES_AT_ONCE = 2
/** Two seconds' worth. */
const HASHES_WAITING_MAX = 200

const gate = createGate(HASHES_AT_ONCE, HASHES_WAITING_MAX)

/** `$argon2id$v=19$m=19456,t=2,p=1$<salt>$<tag>`, base 64 without padding. @throws TooManyWaiting */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(SALT_BYTES)
  const tag = await derive(password, salt, MEMORY_KIB, PASSES)
  return `$argon2id$v=19$m=${MEMORY_KIB},t=${PASSES},p=1$${unpadded(salt)}$${unpadded(tag)}`
}

/** Constant in time for one set of parameters; a text of another form matches nothing. @throws TooManyWaiting */
export async function verifyPassword(password: string, hash: string): Promise<boolean> {
  const match = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=1\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/.exec(hash)
  if (!match) return false
  const [, memory, passes, salt, tag] = match as unknown as [string, string, string, string, string]
  const derived = await derive(password, Buffer.from(salt, 'base64'), Number(memory), Number(passes))
  return equalSecrets(derived, Buffer.from(tag, 'base64'))
}

async function derive(password: string, nonce: Buffer, memory: number, passes: number): Promise<Buffer> {
  if (!(await gate.enter())) throw new TooManyWaiting(1)
  try {
    return await argon2Async('argon2id', {
      message: Buffer.from(password),
      nonce,
      parallelism: 1,
      tagLength: TAG_BYTES,
      memory,
      passes,
    })
  } finally {
    gate.leave()
  }
}

const unpadded = (bytes: Buffer) => bytes.toString('base64').replaceAll('=', '')
