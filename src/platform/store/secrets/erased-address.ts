import type { Sealer } from './sealing.ts'

const PURPOSE = 'erased-address'
/** 128 bits: no two addresses have the same pseudonym. */
const BYTES = 16

/**
 * What stands for an address after its erasure: the same for the same address, and found again only with the sealing
 * secret. `key`: from `addressKey`. No mail can be sent to it (RFC 6761 §6.4).
 */
export const erasedAddress = (sealer: Pick<Sealer, 'mac'>, key: string): string =>
  `erased-${sealer.mac(PURPOSE, key).subarray(0, BYTES).toString('hex')}@erased.invalid`

/** `erasedAddress` of one installation, by the address' key. */
export const erasedAddresses = (sealer: Pick<Sealer, 'mac'>) => (key: string) => erasedAddress(sealer, key)
