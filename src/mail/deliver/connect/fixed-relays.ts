/** A relay that nothing chooses among others. */
import type { Relays } from '../contract.ts'
import type { RelayHop } from './relay.ts'

/** All mail goes to one relay, which nothing closes. */
export const onlyRelay = (relay: RelayHop): Relays => ({
  inUse: () => true,
  choose: () => relay,
  byName: (name) => (name === relay.name ? relay : null),
  isClosed: () => false,
  nextFree: () => 0,
  take: () => undefined,
  answered() {},
  without: () => null,
})
