import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RELAY_SHARES, type RelayRequest } from '../../mail/deliver/claim/source-key.ts'
import { chosenOf, compileRules, type Facts, levelsFor, withoutAnd } from './choice.ts'
import type { RelayRule } from './shapes.ts'

const FACTS: Facts = {
  domain: 'shop.example.com',
  pool: 'pool-1',
  accountId: 'account-1',
  recipientDomain: 'Mail.Example.EDU',
  provider: 'Gmail',
}
const ANY: RelayRequest = { asked: null, share: null, without: [] }

const single = (...names: string[]) => names.map((relay) => [{ relay, weight: 1 }])
const level = (weights: Record<string, number>) =>
  Object.entries(weights).map(([relay, weight]) => ({ relay, weight }))

/** What each share gets, counted. */
function counted(levels: ReturnType<typeof level>[], without: string[], canUse: (relay: string) => boolean) {
  const counts: Record<string, number> = {}
  for (let share = 0; share < RELAY_SHARES; share++) {
    const relay = chosenOf(levels, { ...ANY, share, without }, 'key', canUse)
    counts[relay] = (counts[relay] ?? 0) + 1
  }
  return counts
}

test('what a rule matches', () => {
  const cases: [match: RelayRule['match'], isMatch: boolean][] = [
    [{}, true],
    [{ domain: 'shop.example.com' }, true],
    [{ domain: 'SHOP.example.com' }, true],
    [{ domain: 'example.com' }, false],
    [{ domain: '*.example.com' }, true],
    [{ domain: '*.shop.example.com' }, false],
    [{ recipient_domain: '*.edu' }, true],
    [{ recipient_domain: 'm*.e*e.edu' }, true],
    [{ recipient_domain: '*mail.example.edu*' }, true],
    [{ recipient_domain: 'mail.example.edu*edu' }, false],
    [{ recipient_domain: '*x*' }, true],
    [{ recipient_domain: '*.ed' }, false],
    [{ pool: 'pool-1' }, true],
    [{ pool: 'pool-2' }, false],
    [{ account_id: 'account-1' }, true],
    [{ account_id: 'account-2' }, false],
    [{ provider: 'gmail' }, true],
    [{ provider: 'Outlook' }, false],
    [{ provider: 'Gmail', pool: 'pool-2' }, false],
    [{ provider: 'Gmail', pool: 'pool-1', domain: '*' }, true],
  ]
  for (const [match, isMatch] of cases) {
    const rules = compileRules([{ match, levels: [[{ relay: 'one' }]] }], 'direct', () => true)
    const levels = levelsFor(
      rules,
      ANY,
      () => FACTS,
      () => true,
    )
    assert.deepEqual(levels, single(isMatch ? 'one' : 'direct'), JSON.stringify(match))
  }
})

test('the first rule that matches decides; o:relay goes before all, while there is such a relay', () => {
  const list: RelayRule[] = [
    { match: { pool: 'pool-2' }, levels: [[{ relay: 'one' }]] },
    { match: { provider: 'Gmail' }, levels: [[{ relay: 'two', weight: 3 }, { relay: 'one' }]] },
    { match: {}, levels: [[{ relay: 'three' }]] },
  ]
  const cases: [list: RelayRule[], asked: string | null, levels: unknown][] = [
    [list, null, [level({ two: 3, one: 1 })]],
    [list, 'three', single('three')],
    [list, 'direct', single('direct')],
    [list, 'removed', [level({ two: 3, one: 1 })]],
    [[], null, single('default')],
    [[], 'three', single('three')],
    [[], 'removed', single('default')],
    [[{ match: {}, levels: [[{ relay: 'removed' }], [{ relay: 'two' }]] }], null, single('two')],
    [[{ match: {}, levels: [[{ relay: 'removed' }, { relay: 'two' }]] }], null, single('two')],
    [[{ match: {}, levels: [[{ relay: 'removed' }]] }], null, single('default')],
  ]
  for (const [rules, asked, levels] of cases) {
    const facts = () => FACTS
    const isKnown = (relay: string) => relay !== 'removed'
    assert.deepEqual(
      levelsFor(compileRules(rules, 'default', isKnown), { ...ANY, asked }, facts, isKnown),
      levels,
      `${asked} with ${rules.length} rules`,
    )
  }
  assert.deepEqual(
    [list, list.slice(0, 1), []].map((rules) => {
      const { needProvider, needShares } = compileRules(rules, 'direct', () => true)
      return [needProvider, needShares]
    }),
    [
      [true, true],
      [false, false],
      [false, false],
    ],
  )
})

test('which relay of the levels takes a message', () => {
  const two = single('one', 'two')
  const cases: [levels: ReturnType<typeof single>, without: string[], unusable: string[], relay: string][] = [
    [two, [], [], 'one'],
    [two, [], ['one'], 'two'],
    [two, ['one'], [], 'two'],
    [two, ['one'], ['two'], 'two'],
    [two, ['two'], ['one'], 'one'],
    // While none can be used, it waits for the one that it would go to.
    [two, [], ['one', 'two'], 'one'],
    // All have failed it: all count again.
    [two, ['one', 'two'], [], 'one'],
    [two, ['one', 'two'], ['one'], 'two'],
    [single('one'), ['one'], ['one'], 'one'],
    [single('one', 'direct'), [], ['one'], 'direct'],
    [[level({ one: 1, two: 1 }), ...single('three')], ['one'], ['two'], 'three'],
    [[level({ one: 1, two: 1 }), ...single('three')], ['one'], [], 'two'],
    [[level({ one: 1, two: 1 }), ...single('three')], [], ['one', 'two', 'three'], 'one'],
  ]
  for (const [levels, without, unusable, relay] of cases)
    assert.equal(
      chosenOf(levels, { ...ANY, share: 0, without }, 'key', (name) => !unusable.includes(name)),
      relay,
      JSON.stringify({ levels, without, unusable }),
    )
})

test('the relays of a level share mail by their weights, also those that are left', () => {
  const weights = [level({ one: 3, two: 1, three: 1 })]
  const all = () => true
  assert.deepEqual(counted(weights, [], all), { one: 12, two: 4, three: 4 })
  assert.deepEqual(counted(weights, ['one'], all), { two: 10, three: 10 })
  assert.deepEqual(
    counted(weights, [], (name) => name !== 'three'),
    { one: 15, two: 5 },
  )
  assert.deepEqual(
    counted(weights, ['two'], (name) => name !== 'three'),
    { one: 20 },
  )
})

test('only the relay that a message goes to is asked whether a single message may try it', () => {
  const weights = [level({ one: 1, two: 1 })]
  const asked: string[] = []
  const relay = chosenOf(weights, { ...ANY, share: 0 }, 'key', (name) => asked.push(name) > 0)
  assert.deepEqual([relay, asked], ['one', ['one']])
})

test('without a share, a destination has one relay', () => {
  const weights = [level({ one: 1, two: 1 })]
  const relays = Array.from({ length: 200 }, (_, index) =>
    chosenOf(weights, ANY, `d${index}.example any`, () => true),
  )
  const ones = relays.filter((name) => name === 'one').length
  assert.ok(ones > 60 && ones < 140, `${ones} of 200`)
  assert.equal(
    chosenOf(weights, ANY, 'd7.example any', () => true),
    relays[7],
  )
})

test('after a failure another relay takes the message, if its size fits one', () => {
  const levels = [level({ one: 1, two: 1 }), ...single('three')]
  const cases: [without: string[], relay: string, small: string[], left: string[] | null][] = [
    [[], 'one', [], ['one']],
    [['one'], 'two', [], ['one', 'two']],
    [['one', 'two'], 'three', [], null],
    [[], 'one', ['two'], ['one']],
    [[], 'one', ['two', 'three'], null],
    [['two'], 'one', ['three'], null],
    // Names of relays that no rule has any more are forgotten.
    [['removed'], 'one', [], ['one']],
  ]
  for (const [without, relay, small, left] of cases)
    assert.deepEqual(
      withoutAnd(levels, { ...ANY, without }, relay, (name) => !small.includes(name)),
      left,
      JSON.stringify({ without, relay, small }),
    )
  assert.equal(
    withoutAnd(single('one'), ANY, 'one', () => true),
    null,
  )
})
