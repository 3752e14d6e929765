import type { Relays } from '../../src/mail/deliver/contract.ts'

/** All mail is direct. */
export const NO_RELAYS: Relays = {
  inUse: () => false,
  choose: () => null,
  byName: () => null,
  isClosed: () => true,
  nextFree: () => 0,
  take: () => undefined,
  answered() {},
  without: () => null,
}
