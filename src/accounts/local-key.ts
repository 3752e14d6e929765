/**
 * Access for the command line: whoever can read the sealing secret on this machine administers the service, so a
 * key derived from it needs no database row and no set-up.
 */
import { equalSecrets, type Sealer } from '../store/sealing.ts'

const PURPOSE = 'local-administration'

/** The key id of the local key. */
export const LOCAL_KEY_ID = 'local'

export function localKeySecret(sealer: Sealer): string {
  return `local-${sealer.mac(PURPOSE, 'admin').toString('hex')}`
}

/** Whether a secret is the local key. */
export function localKey(sealer: Sealer): (secret: string) => boolean {
  const expected = localKeySecret(sealer)
  return (secret) => equalSecrets(secret, expected)
}
