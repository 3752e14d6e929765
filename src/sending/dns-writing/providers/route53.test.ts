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
