/** Whether an address lies in a network, as the list of callers has it. Pure. */

/** An address as a number of 32 or 128 bits; null: it is none. IPv4-mapped IPv6 is IPv4. */
function numberOf(text: string): { bits: bigint; length: 32 | 128 } | null {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(text)?.[1]
  const four = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(mapped ?? text)
  if (four) {
    const parts = four.slice(1).map(Number)
    if (parts.some((part) => part > 255)) return null
    return { bits: parts.reduce((all, part) => (all << 8n) | BigInt(part), 0n), length: 32 }
  }
  if (!/^[0-9a-f:]+$/i.test(text) || !text.includes(':')) return null
  const [head = '', tail, more] = text.split('::')
  const left = head === '' ? [] : head.split(':')
  const right = tail === undefined || tail === '' ? [] : tail.split(':')
  const missing = 8 - left.length - right.length
  if (more !== undefined || missing < 0 || (tail === undefined) !== (missing === 0)) return null
  const groups = [...left, ...new Array<string>(missing).fill('0'), ...right]
  if (groups.some((group) => !/^[0-9a-f]{1,4}$/i.test(group))) return null
  return { bits: groups.reduce((all, group) => (all << 16n) | BigInt(`0x${group}`), 0n), length: 128 }
}

/** `network`: an address, or `address/bits`. False too if one of the two cannot be read. */
export function isInNetwork(address: string, network: string): boolean {
  const [base = '', prefix] = network.trim().split('/')
  const [one, other] = [numberOf(address.trim()), numberOf(base)]
  if (one === null || other === null || one.length !== other.length) return false
  const bits = prefix === undefined ? other.length : Number(prefix)
  if (!Number.isInteger(bits) || bits < 0 || bits > other.length) return false
  const shift = BigInt(other.length - bits)
  return one.bits >> shift === other.bits >> shift
}
