/**
 * RSA keys that repeat: making one takes a tenth of a second of processor time, and a run of all tests would make thousands. Each
 * process hands out the same few in turn, made once for the whole run.
 */
import crypto, { createPrivateKey, createPublicKey } from 'node:crypto'
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** More than any test makes of one size and compares. */
const KEYS = 12

/** From now on `generateKeyPair` of node:crypto repeats RSA keys. `folder`: keeps them, for several processes. */
export function repeatKeys(folder: string): void {
  const generate = promisify(crypto.generateKeyPair)
  let asked = 0

  async function keyPair(bits: number) {
    const file = join(folder, `rsa-${bits}-${asked % KEYS}.pem`)
    asked += 1
    if (!existsSync(file)) {
      const { privateKey } = await generate('rsa', { modulusLength: bits })
      const own = `${file}-${process.pid}`
      writeFileSync(own, privateKey.export({ type: 'pkcs8', format: 'pem' }))
      renameSync(own, file)
    }
    const privateKey = createPrivateKey(readFileSync(file))
    return { privateKey, publicKey: createPublicKey(privateKey) }
  }

  const repeating = Object.assign(() => Promise.reject(new Error('only as a promise')), {
    [promisify.custom]: (type: 'rsa', options: crypto.RSAKeyPairKeyObjectOptions) =>
      type === 'rsa' ? keyPair(options.modulusLength) : generate(type, options),
  })
  crypto.generateKeyPair = repeating as unknown as typeof crypto.generateKeyPair
  syncBuiltinESMExports()
}
