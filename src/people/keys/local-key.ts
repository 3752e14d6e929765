/**
 * Access for the command line: whoever can read the sealing secret on this machine administers the service, so a
 * key derived from it needs no database row and no set-up.
 */
import { Forbidden } from '../../base/process/errors.ts'
import type { Caller } from '../../platform/http/rights/auth.ts'
import { equalSecrets, type Sealer } from '../../platform/store/secrets/sealing.ts'

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

/** For what proves access to this machine, never an API key or a session. @throws Forbidden */
export function requireLocalKey(caller: Caller): void {
  if (caller.keyId !== LOCAL_KEY_ID) throw new Forbidden()
}
