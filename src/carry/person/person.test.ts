import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findLeaves } from '../../protocols/mime/part-map.ts'
import { splitMessage } from '../../protocols/mime/split.ts'
import { maskedBytes, maskedMail } from './content.ts'
import { createPerson, replacedText } from './person.ts'

const ann = createPerson('Ann.Bee@Example.org', () => 'P')

test('an address is found in each of its forms, and in no other address', () => {
  const rows: [text: string, expected: string][] = [
    ['ann.bee@example.org', 'P'],
    ['to ANN.BEE@EXAMPLE.ORG.', 'to P.'],
    ['?to=ann.bee%40example.org&x=1', '?to=P&x=1'],
    ['x=3Dann.bee=40example.org', 'x=3DP'],
    ['550 <ann.bee@example.org> unknown', '550 <P> unknown'],
    ['Ann Bee <ann.bee@example.org>, Bob <bob@example.org>', '<P>, Bob <bob@example.org>'],
    ['Bob <bob@example.org>, "Bee, Ann" <ann.bee@example.org>', 'Bob <bob@example.org>, <P>'],
    ['=?utf-8?q?Ann?= <ann.bee@example.org>', '<P>'],
    ['joann.bee@example.org', 'joann.bee@example.org'],
    ['x+ann.bee@example.org', 'x+ann.bee@example.org'],
    ['ann.bee+news@example.org', 'ann.bee+news@example.org'],
    ['ann.bee@example.org.uk', 'ann.bee@example.org.uk'],
    ['ann.bee@example.orgs', 'ann.bee@example.orgs'],
    ['annxbee@example.org', 'annxbee@example.org'],
  ]
  for (const [text, expected] of rows) assert.equal(ann.replaced(text), expected, text)
})

test('domains and local parts that are not ASCII are found in each form', () => {
  const zoe = createPerson('zoe\u0308@m\u00fcnchen.example', () => 'P')
  for (const text of [
    'zo\u00eb@xn--mnchen-3ya.example',
    'ZO\u00cb@M\u00fcnchen.example',
    'zoe\u0308@m\u00fcnchen.example',
  ])
    assert.equal(zoe.replaced(text), 'P', text)
  assert.ok(zoe.is('Zo\u00eb@xn--mnchen-3ya.example'))
  const shop = createPerson('ann-b@my-shop.example', () => 'P')
  assert.equal(shop.replaced('ann-b@my-shop.example, b@my-shop.example'), 'P, b@my-shop.example')
})

test('in JSON values and names are replaced, and all else stays as it is written', () => {
  const text = '{"to":"a\\nann.bee@example.org","ann.bee@example.org":{"n":1.50},"l":["ann.bee@example.org"]}'
  assert.equal(replacedText(text, ann), '{"to":"a\\nP","P":{"n":1.5},"l":["P"]}')
  assert.equal(replacedText('{"n": 1.50}', ann), '{"n": 1.50}')
  assert.equal(replacedText('[ann.bee@example.org', ann), '[P')
})

test('bytes keep their length: in lines of quoted-printable, in base 64, and over the border of a slice', async () => {
  const mail = (encoding: string, body: string) =>
    Buffer.from(`To: ann.bee@example.org\r\nContent-Transfer-Encoding: ${encoding}\r\n\r\n${body}`)
  const quoted = await maskedMail(mail('quoted-printable', 'at ann.b=\r\nee=40example.org!'), ann)
  assert.equal(
    quoted?.toString(),
    'To: 000.000@0000000.000\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nat 000.0=\r\n00=400000000.000!',
  )
  const text = 'Hello ann.bee@example.org, hello. '.repeat(5)
  const lines = (
    Buffer.from(text)
      .toString('base64')
      .match(/.{1,30}/g) ?? []
  ).join('\r\n')
  const masked = (await maskedMail(mail('base64', lines), ann)) as Buffer
  const { headers, bodyOffset } = splitMessage(masked)
  const [leaf] = await findLeaves(headers, masked.subarray(bodyOffset))
  const content = masked.subarray(bodyOffset).toString('latin1', leaf?.start, leaf?.end)
  assert.equal(
    Buffer.from(content, 'base64').toString(),
    text.replaceAll('ann.bee@example.org', '000.000@0000000.000'),
  )
  assert.equal(masked.byteLength, mail('base64', lines).byteLength)
  for (const at of [262_130, 262_144, 260_095, 260_096, 524_280]) {
    const bytes = Buffer.alloc(600_000, 'x ')
    bytes.write(' ann.bee@example.org ', at)
    const after = (await maskedBytes(bytes, ann)) as Buffer
    assert.equal(after.toString('latin1', at, at + 21), ' 000.000@0000000.000 ', String(at))
  }
})

test('a text made to be slow is read in linear time', () => {
  for (const filler of ['ann.bee@', '<ann.bee', '"\\'.repeat(4), 'ann.bee%40exampl', '<"'])
    assert.equal(ann.replaced(filler.repeat(50_000)).length, filler.length * 50_000)
})
