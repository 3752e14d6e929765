/**
 * DKIM key pairs: generation, reading and writing as PEM, and the TXT record that publishes the
 * public half (RFC 6376 §3.6.1; RFC 8463 §4 for Ed25519).
 *
 * Not here: looking up the record, and sealing the private key at rest.
 */
import { createPrivateKey, createPublicKey, generateKeyPair, type KeyObject, sign, verify } from 'node:crypto'
import { promisify } from 'node:util'

export type DkimAlgorithm = 'rsa' | 'ed25519'

/** A private key ready for use. Make it once and keep it: parsing PEM costs twice the RSA signature itself. */
export interface DkimKey {
  readonly algorithm: DkimAlgorithm
  readonly privateKey: KeyObject
}

/** The text is not a private key that DKIM can use. `message` names the broken rule, never the content. */
export class DkimKeyError extends Error {
  override name = 'DkimKeyError'
}

/** Signers must use at least 1024 bits (RFC 8301 §3.2); above 4096 the record and the signature cost too much. */
const RSA_BITS_MIN = 1024
const RSA_BITS_MAX = 4096

/** An RSA-4096 key in PKCS #8 PEM is about 3,300 characters; the rest is room for comments around it. */
const PEM_LENGTH_MAX = 8192

/** Verifiers compute with this exponent: a large one makes each check slow and several refuse it. */
const RSA_EXPONENT_MAX = 0xffffffffn

const generate = promisify(generateKeyPair)
const signAsync = promisify<string | null, Uint8Array, KeyObject, Buffer>(sign)

/**
 * A new key pair, made on the thread pool (RSA-2048 takes 50 to 500 ms).
 * @param bits RSA modulus, 1024 to 4096; ignored for Ed25519.
 * @throws DkimKeyError when `bits` is out of range.
 */
export async function generateDkimKey(algorithm: DkimAlgorithm, bits = 2048): Promise<DkimKey> {
  if (algorithm === 'ed25519') {
    return { algorithm, privateKey: (await generate('ed25519')).privateKey }
  }
  if (!Number.isInteger(bits) || bits < RSA_BITS_MIN || bits > RSA_BITS_MAX) {
    throw new DkimKeyError(
      `Cannot make an RSA key of ${bits} bits: ${RSA_BITS_MIN} to ${RSA_BITS_MAX} are allowed`,
    )
  }
  return { algorithm, privateKey: (await generate('rsa', { modulusLength: bits })).privateKey }
}

/**
 * Reads an unencrypted private key: PKCS #1 (`RSA PRIVATE KEY`) or PKCS #8 (`PRIVATE KEY`), RSA or Ed25519.
 * The key is tried once on the thread pool, because the parser does not notice numbers that do not fit together.
 * @throws DkimKeyError for anything else, and for RSA outside 1024 to 4096 bits.
 */
export async function readDkimKey(pem: string): Promise<DkimKey> {
  if (pem.length > PEM_LENGTH_MAX)
    throw new DkimKeyError(`Cannot read the key: PEM is over ${PEM_LENGTH_MAX} characters`)
  const privateKey = parsePem(pem)
  const algorithm = algorithmOf(privateKey)
  if (algorithm === 'rsa') checkRsa(privateKey)
  if (!(await worksAsPair(algorithm, privateKey))) {
    throw new DkimKeyError('Cannot use the key: its private and public halves do not fit together')
  }
  return { algorithm, privateKey }
}

/** The private key as unencrypted PKCS #8 PEM, which `readDkimKey` reads. */
export function dkimKeyToPem(key: DkimKey): string {
  return key.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
}

/** Value of the TXT record: `k=rsa; p=<base64 SPKI>` or `k=ed25519; p=<base64 of the bare 32 bytes>`. */
export function publicRecord(key: DkimKey): string {
  return `k=${key.algorithm}; p=${publicKeyBytes(key).toString('base64')}`
}

function publicKeyBytes(key: DkimKey): Buffer {
  const spki = createPublicKey(key.privateKey).export({ type: 'spki', format: 'der' })
  // An Ed25519 SPKI is a fixed 12-byte prefix and the key (RFC 8410 §4); the record holds the key alone.
  return key.algorithm === 'ed25519' ? spki.subarray(12) : spki
}

function parsePem(pem: string): KeyObject {
  if (!/-----BEGIN (?:RSA )?PRIVATE KEY-----/.test(pem)) {
    throw new DkimKeyError(
      'Cannot read the key: it is not an unencrypted PKCS #1 or PKCS #8 private key in PEM',
    )
  }
  try {
    return createPrivateKey({ key: pem, format: 'pem' })
  } catch (cause) {
    throw new DkimKeyError('Cannot read the key: it is not a valid PEM private key', { cause })
  }
}

function algorithmOf(key: KeyObject): DkimAlgorithm {
  const type = key.asymmetricKeyType
  if (type === 'rsa' || type === 'ed25519') return type
  throw new DkimKeyError(`Cannot use a key of type "${type}": DKIM knows RSA and Ed25519`)
}

function checkRsa(key: KeyObject): void {
  const { modulusLength = 0, publicExponent = 0n } = key.asymmetricKeyDetails ?? {}
  if (modulusLength < RSA_BITS_MIN || modulusLength > RSA_BITS_MAX) {
    throw new DkimKeyError(
      `Cannot use an RSA key of ${modulusLength} bits: ${RSA_BITS_MIN} to ${RSA_BITS_MAX} are allowed`,
    )
  }
  if (publicExponent < 3n || publicExponent > RSA_EXPONENT_MAX) {
    throw new DkimKeyError('Cannot use the RSA key: its public exponent is out of range')
  }
}

async function worksAsPair(algorithm: DkimAlgorithm, key: KeyObject): Promise<boolean> {
  const digest = algorithm === 'rsa' ? 'sha256' : null
  const probe = Buffer.from('probe')
  try {
    return verify(digest, probe, createPublicKey(key), await signAsync(digest, probe, key))
  } catch {
    return false
  }
}
