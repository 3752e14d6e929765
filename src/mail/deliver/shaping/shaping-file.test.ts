import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readShapingFile, ShapingFileError } from './shaping-file.ts'
import { actionOf, backOffOf, readShipped, shapingTable, shippedShaping } from './shaping-table.ts'

const read = (document: unknown) => readShapingFile(JSON.stringify(document, null, 1), readShipped())
const over = (document: unknown) => shapingTable(readShipped(), read(document))

function faultsOf(text: string): readonly string[] {
  try {
    readShapingFile(text, readShipped())
  } catch (error) {
    assert.ok(error instanceof ShapingFileError)
    return error.faults
  }
  return []
}

test('the shipped file names every site once, and has a date as its version', () => {
  const { version, sites } = shippedShaping()
  assert.match(version, /^\d{4}-\d\d-\d\d$/)
  assert.ok(sites.length > 25)
  for (const { site, mx } of sites)
    for (const host of mx) assert.equal(shippedShaping().siteOf(`a.b.${host}`)?.site, site, host)
})

test("an operator's file replaces what it names, member by member", () => {
  const table = over({
    version: 'acme-1',
    default: { comment: 'we are small', connections: 3, recovery: '30m' },
    providers: [
      { site: 'google', connections: 2, rate: '300/1m' },
      { site: 'qq', rate: null },
      { site: 'acme', name: 'Acme', mx: ['MX.acme.example', 'web.de'], messages_per_connection: 7 },
    ],
  })
  assert.equal(table.version, `${shippedShaping().version}+acme-1`)
  const { connections, messagesPerConnection, messagesPerSecond, backOff } = table.limitsOf('google')
  assert.deepEqual([connections, messagesPerConnection, messagesPerSecond], [2, 100, 5])
  assert.equal(backOff?.recoveryMs, 30 * 60_000)
  assert.equal(table.limitsOf('qq').messagesPerSecond, null)
  assert.equal(table.limitsOf('nobody-knows').connections, 3)
  assert.equal(table.siteOf('eu.mx.acme.example')?.site, 'acme')
  assert.equal(table.siteOf('mx1.web.de')?.site, 'acme', 'taken from one of ours')
  assert.equal(table.siteOf('mx00.gmx.net')?.site, 'united-internet')
  assert.equal(table.siteOf('acme.example'), null)
  assert.equal(table.siteOf('mx.acme.example')?.displayName('a.example', 'mx.acme.example'), 'Acme')
  assert.deepEqual([table.limitsOf('acme').connections, table.limitsOf('acme').messagesPerConnection], [3, 7])
})

test('rules for replies: those of the provider, then those of the default; ours last', () => {
  const table = over({
    version: '1',
    default: { replies: [{ patterns: ['try tomorrow'], action: 'slow-down' }] },
    providers: [
      {
        site: 'yahoo',
        replies: [
          { code: '5xx', patterns: ['bad neighbou?rhood'], action: 'block' },
          { code: '421', action: 'ignore' },
        ],
      },
    ],
  })
  const asked = (site: string, code: number, text: string) =>
    actionOf(backOffOf(table.limitsOf(site)).replies, code, text)
  assert.equal(asked('yahoo', 550, '5.7.1 Bad Neighborhood'), 'block')
  assert.equal(asked('yahoo', 450, '5.7.1 Bad Neighborhood'), null)
  assert.equal(asked('yahoo', 421, 'too many connections'), 'ignore')
  assert.equal(asked('yahoo', 451, 'try tomorrow'), 'slow-down')
  assert.equal(asked('google', 421, 'too many connections'), 'fewer-connections')
  assert.equal(asked('google', 451, `${' '.repeat(400_000)}try tomorrow`), null, 'only the beginning is read')
})

test('every fault of a file is reported with its line', () => {
  const text = `{
  "version": "a b",
  "default": {"connections": 0, "rate": "5 per second",
    "replies": [{"action": "stop"}, {"patterns": ["("], "action": "ignore"}, 7]},
  "providers": [
    {"site": "google", "mx": ["localhost"], "colour": "red"},
    {"site": "new"},
    {"site": "google", "recovery": "1s"},
    {"site": "Relay!"}, {"site": "qq", "prefer": "ipv5"}
  ],
  "version": "twice"
}`
  const faults = faultsOf(text.replace('"twice"', '"a b"'))
  for (const expected of [
    /^line 3: default\.connections: must be a whole number from 1 to 1000/,
    /^line 3: default\.rate: must be messages in a time/,
    /^line 4: default\.replies\[0\]\.action: must be one of slow-down, fewer-connections, ignore, block/,
    /^line 4: default\.replies\[0\]: needs "code" or "patterns"/,
    /^line 4: default\.replies\[1\]\.patterns\[0\]: missing/,
    /^line 4: default\.replies\[2\]: must be an object/,
    /^line 6: providers\[0\]\.mx\[0\]: must be a host name/,
    /^line 6: providers\[0\]\.colour: is unknown; known are/,
    /^line 7: providers\[1\]: "new" is a new site, and needs "mx"/,
    /^line 8: providers\[2\]\.site: "google" is given twice/,
    /^line 8: providers\[2\]\.recovery: must be a time from "1m" to "30d"/,
    /^line 9: providers\[4\]\.prefer: must be one of ipv4, ipv6, ipv4-only, ipv6-only, or null/,
    /^line 9: providers\[3\]\.site: must be lower-case letters/,
    /version: is given twice/,
    /version: must be 1 to 64 letters/,
  ])
    assert.ok(
      faults.some((fault) => expected.test(fault)),
      `${expected} of\n${faults.join('\n')}`,
    )
})

test('what is no file of shaping has faults, and few of them', () => {
  assert.match(faultsOf('{\n"version": \n}').join(), /^line 3: /)
  assert.match(faultsOf('').join(), /^line 1: /)
  assert.match(faultsOf('[]').join(), /the file: must be an object/)
  assert.equal(faultsOf(JSON.stringify({ version: '1', providers: Array(900).fill(1) })).length, 51)
  assert.match(faultsOf(' '.repeat(2_000_000)).join(), /larger than 1024 KB/)
  assert.ok(faultsOf(`{"version": "1", "__proto__": {"connections": 1}}`).join().includes('is unknown'))
})

test("which addresses come first: the provider's word, else the default's, else none", () => {
  const prefer = (document: object) => {
    const table = over({ version: '1', ...document })
    const { prefer: own } = table.sites.find(({ site }) => site === 'google') ?? assert.fail()
    return [table.prefer, own]
  }
  const google = (value: unknown) => ({ providers: [{ site: 'google', prefer: value }] })
  assert.deepEqual(prefer({}), [null, undefined])
  assert.deepEqual(prefer(google('ipv4-only')), [null, 'ipv4-only'])
  assert.deepEqual(prefer({ default: { prefer: 'ipv6' } }), ['ipv6', undefined])
  assert.deepEqual(prefer({ default: { prefer: 'ipv6' }, ...google(null) }), ['ipv6', null])
})
