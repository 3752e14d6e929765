/**
 * The command line's way in: whoever can read the sealing secret on this machine administers the service, so
 * a key derived from it needs no row in the database and no set-up.
 */
import { equalSecrets, type Sealer } from '../store/sealing.ts'

const PURPOSE = 'local-administration'

/** Stands where a stored key has its id. */
export const LOCAL_KEY_ID = 'local'

export function localKeySecret(sealer: Sealer): string {
  return `local-${sealer.mac(PURPOSE, 'admin').toString('hex')}`
}

/** Whether a secret is the local key. */
export function localKey(sealer: Sealer): (secret: string) => boolean {
  const expected = localKeySecret(sealer)
  return (secret) => equalSecrets(secret, expected)
}
