import type { Caller } from '../../platform/http/rights/auth.ts'
import { LOCAL_KEY_ID } from '../keys/local-key.ts'

/**
 * Whether the account's list of addresses applies to the caller: to its API keys, but not to browser sessions and web keys
 * of people, who move, nor to the command line on this machine, which ends a lockout. A parent that acts for the account is
 * bound to its own list.
 */
export const isBoundToAddresses = ({ kind, keyId, parentAccountId }: Caller): boolean =>
  kind !== 'session' && kind !== 'web' && keyId !== LOCAL_KEY_ID && parentAccountId === undefined
