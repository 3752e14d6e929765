import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeReply, encodeQuery } from './packet.ts'
import {
  macIn,
  replyFault,
  requestFault,
  signReply,
  signRequest,
  TSIG_ALGORITHMS,
  type TsigKey,
} from './tsig.ts'

const NOW = 1_800_000_000
const query = () => encodeQuery({ id: 7, name: 'example.com', type: 'TXT', edns: false })

for (const algorithm of TSIG_ALGORITHMS)
  test(`${algorithm}: a reply counts for its request, unchanged and in time`, () => {
    const key: TsigKey = { name: 'key.example', algorithm, secret: Buffer.from('a secret of some length') }
    const { packet, mac } = signRequest(query(), key, NOW)
    assert.equal(requestFault(packet, key, NOW + 300), null)
    assert.deepEqual(macIn(packet), mac)
    const message = query()
    message.writeUInt8(0x84, 2)
    const reply = signReply(message, key, NOW, mac).packet
    assert.equal(replyFault(reply, key, mac, NOW), null)
    assert.deepEqual(decodeReply(reply).answers, [])
    assert.match(replyFault(reply, key, mac, NOW + 301) ?? '', /^BADTIME/)
    assert.equal(replyFault(reply, key, Buffer.alloc(mac.length), NOW), 'the signature of the reply is wrong')
    for (const other of [{ secret: Buffer.from('another') }, { name: 'other.example' }])
      assert.equal(replyFault(reply, { ...key, ...other }, mac, NOW), 'the signature of the reply is wrong')
    for (const at of [0, 3, 14, reply.length - 20]) {
      const changed = Buffer.from(reply)
      changed.writeUInt8((changed[at] as number) ^ 1, at)
      // The id is that of the record, so that a forwarder may change the other one (RFC 8945 §5.2).
      if (at > 0) assert.notEqual(replyFault(changed, key, mac, NOW), null, `byte ${at}`)
    }
    assert.equal(replyFault(message, key, mac, NOW), 'the reply is not signed')
  })
