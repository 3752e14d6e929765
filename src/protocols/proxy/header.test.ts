import assert from 'node:assert/strict'
import { test } from 'node:test'
import { crc32c } from './crc32c.ts'
import { addressBytes, readProxyHeader, writeProxyHeader } from './header.ts'

const SIGNATURE = Buffer.from('0d0a0d0a000d0a515549540a', 'hex')
const v2 = (command: number, family: number, ...block: Uint8Array[]) => {
  const body = Buffer.concat(block)
  const length = Buffer.alloc(2)
  length.writeUInt16BE(body.length)
  return Buffer.concat([SIGNATURE, Buffer.from([0x20 | command, family]), length, body])
}
const FOUR = Buffer.from('c0000201c0000202dc0401bb', 'hex') // 192.0.2.1:56324 to 192.0.2.2:443
const SIX = Buffer.concat([
  addressBytes('2001:db8::1'),
  addressBytes('2001:db8::2'),
  Buffer.from('dc040019', 'hex'),
])
const tlv = (type: number, value: Uint8Array) =>
  Buffer.concat([Buffer.from([type, value.length >> 8, value.length & 255]), value])

/** A version 2 header whose last TLV is its checksum. */
function withChecksum(change = 0): Buffer {
  const header = v2(1, 0x11, FOUR, tlv(0x02, Buffer.from('mx.example.net')), tlv(0x03, Buffer.alloc(4)))
  header.writeUInt32BE((crc32c(header) ^ change) >>> 0, header.length - 4)
  return header
}

const client = (address: string, port: number, length: number, isSecure = false) => ({
  ...{ kind: 'header', length, isSecure },
  client: { address, port },
})
const own = (length: number) => ({ kind: 'header', length, isSecure: false, client: null })

const LONGEST = 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'

const READ: readonly [name: string, bytes: Buffer, read: object][] = [
  // The examples of section 2.1 of the specification.
  [
    'TCP4',
    Buffer.from('PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n'),
    client('255.255.255.255', 65_535, 56),
  ],
  [
    'TCP6 at its longest',
    Buffer.from(`PROXY TCP6 ${LONGEST} ${LONGEST} 65535 65535\r\n`),
    client(LONGEST, 65_535, 104),
  ],
  ['UNKNOWN, short', Buffer.from('PROXY UNKNOWN\r\n'), own(15)],
  [
    'UNKNOWN at its longest: 107 bytes',
    Buffer.from(`PROXY UNKNOWN ${LONGEST} ${LONGEST} 65535 65535\r\n`),
    own(107),
  ],
  [
    'what follows is not read',
    Buffer.from('PROXY TCP4 192.0.2.1 192.0.2.2 56324 443\r\nEHLO a\r\n'),
    client('192.0.2.1', 56_324, 42),
  ],
  [
    'an IPv4-mapped client',
    Buffer.from('PROXY TCP6 ::ffff:192.0.2.1 ::1 1 2\r\n'),
    client('192.0.2.1', 1, 37),
  ],
  ['canonical IPv6', Buffer.from('PROXY TCP6 2001:DB8:0::1 ::1 1 2\r\n'), client('2001:db8::1', 1, 34)],
  ['version 2, TCP over IPv4', v2(1, 0x11, FOUR), client('192.0.2.1', 56_324, 28)],
  ['version 2, TCP over IPv6', v2(1, 0x21, SIX), client('2001:db8::1', 56_324, 52)],
  ['version 2, LOCAL', v2(0, 0x00), own(16)],
  ['version 2, LOCAL with a block to ignore', v2(0, 0x77, Buffer.from('abc')), own(19)],
  ['version 2, UNSPEC', v2(1, 0x00, Buffer.from('??')), own(18)],
  ['version 2, a socket of the file system', v2(1, 0x31, Buffer.alloc(216)), own(232)],
  ['version 2 with a checksum', withChecksum(), client('192.0.2.1', 56_324, 52)],
  [
    'a client that speaks TLS to the balancer, with what is known of it',
    v2(1, 0x11, FOUR, tlv(0x20, Buffer.from('05000000002100075453763132', 'hex'))),
    client('192.0.2.1', 56_324, 44, true),
  ],
  [
    'a client that does not',
    v2(1, 0x21, SIX, tlv(0x20, Buffer.from('0000000001', 'hex'))),
    client('2001:db8::1', 56_324, 60),
  ],
  ['nothing', Buffer.alloc(0), { kind: 'partial' }],
]

test('headers are read as the specification says', () => {
  for (const [name, bytes, read] of READ) assert.deepEqual(readProxyHeader(bytes), read, name)
})

test('a header that arrives byte by byte is partial until its last byte', () => {
  for (const [name, bytes, read] of READ) {
    if (!('length' in read)) continue
    for (let length = 0; length < Number(read.length); length++)
      assert.deepEqual(
        readProxyHeader(bytes.subarray(0, length)),
        { kind: 'partial' },
        `${name} at ${length}`,
      )
  }
})

const MALFORMED: readonly [name: string, bytes: Buffer][] = [
  ['an SMTP client', Buffer.from('EHLO client.example\r\n')],
  ['an HTTP client', Buffer.from('GET / HTTP/1.1\r\n')],
  ['a PUT, which begins like the header', Buffer.from('PUT / HTTP/1.1\r\n')],
  ['a TLS handshake', Buffer.from('16030100f8', 'hex')],
  ['a line of 108 bytes', Buffer.from(`PROXY UNKNOWN ${'x'.repeat(92)}\r\n`)],
  ['107 bytes without an end', Buffer.from(`PROXY UNKNOWN ${'x'.repeat(93)}`)],
  ['another family in the line', Buffer.from('PROXY UDP4 192.0.2.1 192.0.2.2 1 2\r\n')],
  ['an address of the other family', Buffer.from('PROXY TCP4 ::1 192.0.2.2 1 2\r\n')],
  ['a name', Buffer.from('PROXY TCP4 localhost 192.0.2.2 1 2\r\n')],
  ['an octal address', Buffer.from('PROXY TCP4 0300.0.2.1 192.0.2.2 1 2\r\n')],
  ['a zone', Buffer.from('PROXY TCP6 fe80::1%eth0 ::1 1 2\r\n')],
  ['two blanks', Buffer.from('PROXY TCP4  192.0.2.1 192.0.2.2 1 2\r\n')],
  ['a port that is too large', Buffer.from('PROXY TCP4 192.0.2.1 192.0.2.2 65536 2\r\n')],
  ['a port with a leading zero', Buffer.from('PROXY TCP4 192.0.2.1 192.0.2.2 01 2\r\n')],
  ['a missing port', Buffer.from('PROXY TCP4 192.0.2.1 192.0.2.2 1\r\n')],
  ['a word more', Buffer.from('PROXY TCP4 192.0.2.1 192.0.2.2 1 2 3\r\n')],
  ['version 3', Buffer.concat([SIGNATURE, Buffer.from('31110000', 'hex')])],
  ['an unknown command', v2(2, 0x11, FOUR)],
  ['datagrams', v2(1, 0x12, FOUR)],
  ['an unknown family', v2(1, 0x41, FOUR)],
  ['too short for its addresses', v2(1, 0x21, FOUR)],
  ['a block of 9 KB', v2(1, 0x11, FOUR, Buffer.alloc(9 * 1024))],
  ['a cut TLV', v2(1, 0x11, FOUR, Buffer.from([0x02, 0, 9, 1]))],
  ['the head of a TLV', v2(1, 0x11, FOUR, Buffer.from([0x02, 0]))],
  ['a wrong checksum', withChecksum(1)],
  ['flags of TLS cut off', v2(1, 0x11, FOUR, tlv(0x20, Buffer.from([1])))],
  ['a checksum of two bytes', v2(1, 0x11, FOUR, tlv(0x03, Buffer.alloc(2)))],
]

test('anything else is malformed', () => {
  for (const [name, bytes] of MALFORMED) assert.equal(readProxyHeader(bytes).kind, 'malformed', name)
})

test('no change of one byte of a header with a checksum passes', () => {
  const good = withChecksum()
  for (let at = 12; at < good.length; at++) {
    // Without its type it is no checksum.
    if (at === good.length - 7) continue
    const bytes = Buffer.from(good)
    bytes[at] = (bytes[at] as number) ^ 0x40
    const { kind } = readProxyHeader(bytes)
    assert.ok(kind === 'malformed' || kind === 'partial', `byte ${at}: ${kind}`)
  }
})

test('the checksum is that of RFC 3720 appendix B.4', () => {
  assert.equal(crc32c(Buffer.alloc(32)), 0x8a9136aa)
  assert.equal(crc32c(Buffer.alloc(32, 0xff)), 0x62a8ab43)
  assert.equal(crc32c(Buffer.from('123456789')), 0xe3069283)
})

test('a written header is read back', () => {
  const four = writeProxyHeader({ address: '192.0.2.1', port: 0 }, { address: '198.51.100.2', port: 25 })
  assert.equal(four.toString('hex'), `${SIGNATURE.toString('hex')}2111000cc0000201c633640200000019`)
  const six = writeProxyHeader({ address: '2001:db8::5', port: 0 }, { address: '2001:db8::6', port: 25 })
  assert.deepEqual(readProxyHeader(six), client('2001:db8::5', 0, 52))
  const secure = writeProxyHeader({ address: '192.0.2.1', port: 7 }, { address: '0.0.0.0', port: 0 }, true)
  assert.deepEqual(readProxyHeader(secure), client('192.0.2.1', 7, 36, true))
  assert.throws(() => writeProxyHeader({ address: '192.0.2.1', port: 0 }, { address: '::1', port: 25 }))
})
