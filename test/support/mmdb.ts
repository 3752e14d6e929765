/**
 * Writes a minimal MaxMind DB file (format 2.0: a binary tree over address bits, a data section, metadata): IPv4 and
 * IPv6 networks in one IPv6 tree of 24-bit records. Networks must not overlap.
 */
import { parseCidr } from '../../src/base/net/ip.ts'

type Value = string | number | readonly Value[] | { readonly [name: string]: Value }
type Node = { left: Node | number | null; right: Node | number | null }

const METADATA_MARK = Buffer.from('\xab\xcd\xefMaxMind.com', 'latin1')
/** Between tree and data. */
const SEPARATOR = Buffer.alloc(16)

export function writeMmdb(entries: readonly (readonly [network: string, data: Value])[]): Buffer {
  const root: Node = { left: null, right: null }
  const data: Buffer[] = []
  let dataSize = 0
  for (const [network, value] of entries) {
    const cidr = parseCidr(network)
    if (!cidr) throw new RangeError(`"${network}" is not a network`)
    // IPv4 is at ::/96.
    const bits = cidr.network
    const length = cidr.prefixLength + (cidr.family === 4 ? 96 : 0)
    put(root, bits, length, dataSize)
    const bytes = encode(value)
    data.push(bytes)
    dataSize += bytes.length
  }
  const { tree, count } = writeTree(root)
  const metadata = encode({
    binary_format_major_version: 2,
    binary_format_minor_version: 0,
    build_epoch: 1_780_315_200,
    database_type: 'Test-City',
    description: { en: 'Test' },
    ip_version: 6,
    languages: ['en'],
    node_count: count,
    record_size: 24,
  })
  return Buffer.concat([tree, SEPARATOR, ...data, METADATA_MARK, metadata])
}

function put(root: Node, bits: bigint, length: number, offset: number): void {
  let node = root
  for (let at = 0; at < length; at++) {
    const side = (bits >> BigInt(127 - at)) & 1n ? 'right' : 'left'
    if (at === length - 1) {
      node[side] = offset
      return
    }
    const next = node[side]
    if (typeof next === 'number') throw new RangeError('a network lies in another one')
    node[side] = next ?? { left: null, right: null }
    node = node[side] as Node
  }
}

function writeTree(root: Node): { tree: Buffer; count: number } {
  const nodes: Node[] = [root]
  const numbers = new Map<Node, number>([[root, 0]])
  for (const node of nodes) {
    for (const next of [node.left, node.right]) {
      if (next === null || typeof next === 'number') continue
      numbers.set(next, nodes.length)
      nodes.push(next)
    }
  }
  const tree = Buffer.alloc(nodes.length * 6)
  const record = (next: Node['left']) => {
    if (next === null) return nodes.length
    return typeof next === 'number' ? nodes.length + SEPARATOR.length + next : (numbers.get(next) as number)
  }
  for (const [at, node] of nodes.entries()) {
    tree.writeUIntBE(record(node.left), at * 6, 3)
    tree.writeUIntBE(record(node.right), at * 6 + 3, 3)
  }
  return { tree, count: nodes.length }
}

const TYPES = { text: 2, uint32: 6, map: 7, array: 11 } as const

function encode(value: Value): Buffer {
  if (typeof value === 'string') {
    const bytes = Buffer.from(value)
    return Buffer.concat([control(TYPES.text, bytes.length), bytes])
  }
  if (typeof value === 'number') {
    const bytes = Buffer.alloc(4)
    bytes.writeUInt32BE(value)
    return Buffer.concat([control(TYPES.uint32, 4), bytes])
  }
  if (Array.isArray(value)) return Buffer.concat([control(TYPES.array, value.length), ...value.map(encode)])
  const members = Object.entries(value as Record<string, Value>)
  const parts = members.flatMap(([name, member]) => [encode(name), encode(member)])
  return Buffer.concat([control(TYPES.map, members.length), ...parts])
}

/** Three bits of type and five of size; types over 7 take a byte more, and so do sizes over 28. */
function control(type: number, size: number): Buffer {
  if (size > 28 + 256) throw new RangeError('too long for a test')
  const head = type > 7 ? 0 : type << 5
  const low = size > 28 ? 29 : size
  return Buffer.from([head | low, ...(type > 7 ? [type - 7] : []), ...(size > 28 ? [size - 29] : [])])
}
