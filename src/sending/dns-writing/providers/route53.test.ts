import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Api } from './api.ts'
import { createRoute53 } from './route53.ts'

const ZONE = { name: 'example.com', id: 'Z2', ttlMin: null }

const set = (type: string, inner: string) =>
  `<ResourceRecordSet><Name>example.com.</Name><Type>${type}</Type>${inner}</ResourceRecordSet>`
const value = (text: string) =>
  `<TTL>60</TTL><ResourceRecords><ResourceRecord><Value>${text}</Value></ResourceRecord></ResourceRecords>`

test('aliases, sets with a policy and values that cannot be read are locked; texts come unescaped', async () => {
  const xml = [
    set('TXT', value('&quot;a &amp; \\&quot;b\\&#34;&#x22;')),
    set('A', '<AliasTarget><DNSName>x.</DNSName></AliasTarget>'),
    set('MX', `<SetIdentifier>eu</SetIdentifier><Weight>1</Weight>${value('1 mx.example.net.')}`),
    set('AAAA', value('no address')),
    '<ResourceRecordSet>'.repeat(3),
  ].join('')
  const sets = await createRoute53((async () => xml) as Api).read(ZONE, 'example.com')
  const policy = 'it has a routing policy, or is an alias'
  assert.deepEqual(
    sets.map(({ type, values, lock }) => [type, values, lock]),
    [
      ['TXT', ['"a & \\"b\\""'], null],
      ['A', [''], policy],
      ['MX', ['1 mx.example.net'], policy],
      ['AAAA', ['no address'], 'it holds a value that cannot be read'],
    ],
  )
})

/** What Route 53 writes, the name or the value as this service has it (null: not read), and the value as it is written back. */
const NAMES: [written: string, name: string | null][] = [
  ['\\052.example.com.', '*.example.com'],
  ['_dmarc.example.com.', '_dmarc.example.com'],
  ['a\\057b.example.com.', 'a/b.example.com'],
  ['a\\056b.example.com.', null],
  ['a\\134b.example.com.', null],
  ['caf\\303\\251.example.com.', null],
]
const TEXTS: [written: string, value: string][] = [
  ['"ex\\303\\244mple\\011"', '"ex\\195\\164mple\\009"'],
  ['"a\\"b\\\\052"', '"a\\"b\\\\052"'],
]

test('bytes are written in octal digits, and read as such', async () => {
  const named = (name: string) =>
    `<ResourceRecordSet><Name>${name}</Name><Type>TXT</Type>${value('"x"')}</ResourceRecordSet>`
  for (const [written, name] of NAMES) {
    const provider = createRoute53((async () => named(written)) as Api)
    const plain = name ?? written.replace(/\\\d{3}/, '.').slice(0, -1)
    assert.equal((await provider.read(ZONE, plain)).length, name === null ? 0 : 1, written)
  }
  for (const [written, plain] of TEXTS) {
    let sent = ''
    const provider = createRoute53((async (_method: string, _path: string, body?: unknown) => {
      sent = String(body)
      return set('TXT', value(written.replaceAll('"', '&quot;')))
    }) as Api)
    const [current] = await provider.read(ZONE, 'example.com')
    assert.deepEqual([current?.values, current?.handles, current?.lock], [[plain], [written], null])
    const change = { zone: ZONE, name: 'example.com', type: 'TXT' as const, ttlSeconds: 60 }
    await provider.write(ZONE, [{ change: { ...change, remove: [], add: [plain] }, current: undefined }])
    assert.ok(sent.includes(written.replaceAll('"', '&#34;')), sent)
  }
  const unread = createRoute53((async () => set('TXT', value('"\\400"'))) as Api)
  assert.notEqual((await unread.read(ZONE, 'example.com'))[0]?.lock, null)
})
