import assert from 'node:assert/strict'
import { test } from 'node:test'
import { blocklistsOf, eachOnce } from './lists.ts'

test("a customer's key is asked with and never shown", () => {
  const [list] = blocklistsOf(['SeCreTkey.zen.dq.spamhaus.net'], 'addresses')
  assert.ok(list)
  assert.deepEqual([list.askedZone, list.zone], ['secretkey.zen.dq.spamhaus.net', 'zen.dq.spamhaus.net'])
  const { askedZone: _, ...shown } = list
  assert.doesNotMatch(JSON.stringify(shown), /secretkey/i)
})

test('refusals name lists as the providers of these replies do', () => {
  const zones = ['bl.spamcop.net', 'psbl.surriel.com', 'dnsbl-1.uceprotect.net', 'dnsbl.dronebl.org']
  const lists = blocklistsOf([...zones, 'zen.spamhaus.org', 'own.example'], 'addresses')
  const named = (reply: string) => lists.filter(({ words }) => words.test(reply)).map(({ zone }) => zone)
  const cases: [reply: string, ...zones: string[]][] = [
    ['Service unavailable; Client host [192.0.2.1] blocked using bl.spamcop.net', 'bl.spamcop.net'],
    [
      'Client host [192.0.2.1] blocked using Spamhaus. To request removal see spamhaus.org',
      'zen.spamhaus.org',
    ],
    ['Your email was rejected due to having a domain present in the Spamhaus DBL'],
    ['blocked using dnsbl-1.uceprotect.net; see https://www.uceprotect.net', 'dnsbl-1.uceprotect.net'],
    ['blocked using dnsbl-2.uceprotect.net'],
    ['listed in PSBL, see http://psbl.org/', 'psbl.surriel.com'],
    ['refused: own.example lists 192.0.2.1', 'own.example'],
    ['refused: unknown.example and own.example.org'],
    ['mailbox full'],
  ]
  for (const [reply, ...expected] of cases) assert.deepEqual(named(reply), expected, reply)
})

test('a list that both settings name is one, with both kinds of entries', () => {
  const both = [...blocklistsOf(['Both.example'], 'addresses'), ...blocklistsOf(['both.example'], 'domains')]
  const [list, ...rest] = eachOnce(both)
  assert.deepEqual(
    [list?.zone, Object.keys(list?.tests ?? {}), rest],
    ['both.example', ['ipv4', 'ipv6', 'domain'], []],
  )
})
