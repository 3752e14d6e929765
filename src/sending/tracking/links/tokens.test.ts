import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { newId } from '../../../base/ids.ts'
import { createSealer } from '../../../platform/store/secrets/sealing.ts'
import { createTokens, UNSUBSCRIBE_PREFIX, type Unsubscription } from './tokens.ts'

const tokens = createTokens(createSealer('a secret of at least 32 characters!!'))
const deliveryId = newId()
const leave: Unsubscription = {
  scope: 'tags',
  accountId: newId(),
  domainId: newId(),
  recipient: 'ada@example.net',
  tags: ['news', 'Weekly "best of"'],
  listSid: null,
  deliveryId,
}

/** One token of each kind, with its reader. */
const KINDS: Record<string, { token: string; read(token: string): unknown }> = {
  open: { token: tokens.open(deliveryId), read: tokens.readOpen },
  'click with its url': {
    token: tokens.click(deliveryId, { url: 'https://example.com/a?b=c' }),
    read: tokens.readClick,
  },
  'click with a stored url': {
    token: tokens.click(deliveryId, { linkId: newId() }),
    read: tokens.readClick,
  },
  unsubscribe: { token: tokens.unsubscribe(leave), read: tokens.readUnsubscribe },
  'unsubscribe address': {
    token: tokens.unsubscribeAddress(deliveryId, 'domain'),
    read: tokens.readUnsubscribeAddress,
  },
}

test('each kind returns its content', () => {
  assert.equal(tokens.readOpen(tokens.open(deliveryId)), deliveryId)
  fc.assert(
    fc.property(fc.webUrl({ withQueryParameters: true, withFragments: true }), (url) => {
      const read = tokens.readClick(tokens.click(deliveryId, { url }))
      assert.deepEqual(read, { deliveryId, target: { url } })
    }),
    { seed: 41 },
  )
  const linkId = newId()
  assert.deepEqual(tokens.readClick(tokens.click(deliveryId, { linkId })), { deliveryId, target: { linkId } })
  for (const scope of ['domain', 'tags', 'list'] as const) {
    const token = tokens.unsubscribeAddress(deliveryId, scope)
    assert.ok(UNSUBSCRIBE_PREFIX.length + token.length <= 64, token)
    assert.deepEqual(tokens.readUnsubscribeAddress(token.toUpperCase()), { deliveryId, scope })
  }
})

test('an unsubscribe token is self-contained, and equal contents give equal bytes', () => {
  const text = fc.string({ unit: 'grapheme', maxLength: 200 }).filter((value) => value.isWellFormed())
  const name = fc.oneof(text, fc.string({ minLength: 22, maxLength: 22 }))
  const members = {
    scope: fc.constantFrom('domain' as const, 'tags' as const, 'list' as const),
    accountId: name.filter((value) => value !== ''),
    domainId: fc.constant(newId()),
    recipient: text.filter((value) => value !== ''),
    tags: fc.array(text, { maxLength: 10 }),
    listSid: fc.oneof(
      fc.constant(null),
      name.filter((value) => value !== ''),
    ),
    deliveryId: fc.constant(deliveryId),
  }
  const cases = fc.record(members, { noNullPrototype: true })
  fc.assert(
    fc.property(cases, (given) => {
      const token = tokens.unsubscribe(given)
      assert.deepEqual(tokens.readUnsubscribe(token), given)
      assert.equal(tokens.unsubscribe({ ...given, tags: [...given.tags] }), token)
    }),
    { seed: 41, numRuns: 500 },
  )
})

test('no kind is accepted as another', () => {
  for (const [name, { token }] of Object.entries(KINDS)) {
    for (const [other, { read }] of Object.entries(KINDS)) {
      const same = name.startsWith('click') ? other.startsWith('click') : name === other
      assert.equal(read(token) !== null, same, `${name} read as ${other}`)
    }
  }
})

test('another secret accepts nothing', () => {
  const others = createTokens(createSealer('another secret of 32 characters!!'))
  assert.equal(others.readOpen(KINDS['open']?.token ?? ''), null)
  assert.equal(others.readClick(KINDS['click with its url']?.token ?? ''), null)
  assert.equal(others.readUnsubscribe(KINDS['unsubscribe']?.token ?? ''), null)
  assert.equal(others.readUnsubscribeAddress(KINDS['unsubscribe address']?.token ?? ''), null)
})

test('in a pod the tokens of links begin with its name, which is no part of them', () => {
  const inPod = createTokens(createSealer('a secret of at least 32 characters!!'), 'eu')
  assert.equal(inPod.open(deliveryId), `eu.${tokens.open(deliveryId)}`)
  assert.equal(inPod.unsubscribe(leave), `eu.${tokens.unsubscribe(leave)}`)
  assert.equal(inPod.unsubscribeAddress(deliveryId, 'list'), tokens.unsubscribeAddress(deliveryId, 'list'))
  for (const named of ['', 'eu.', 'former_pod.']) {
    assert.equal(inPod.readOpen(`${named}${tokens.open(deliveryId)}`), deliveryId)
    assert.deepEqual(inPod.readUnsubscribe(`${named}${tokens.unsubscribe(leave)}`), leave)
    assert.equal(inPod.readConfirm(`${named}${tokens.confirm(deliveryId)}`), deliveryId)
  }
  assert.equal(inPod.readOpen(`eu.eu.${tokens.open(deliveryId)}`), null)
})

/** Characters for mutations: the alphabet, other alphabets, what decoders skip, and what is in no alphabet. */
const CHARACTERS = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_+/=.~% \n\t\0é']

test('R41: of 100,000 changed tokens none is accepted', () => {
  const all = Object.entries(KINDS)
  const change = fc.record({
    kind: fc.nat(all.length - 1),
    how: fc.constantFrom('replace', 'insert', 'remove', 'cut', 'append', 'swap', 'flip'),
    at: fc.nat(),
    character: fc.constantFrom(...CHARACTERS),
    bit: fc.nat(7),
  })
  let accepted = 0
  let tried = 0
  fc.assert(
    fc.property(change, ({ kind, how, at, character, bit }) => {
      const [name, { token, read }] = all[kind] as (typeof all)[number]
      const changed = mutate(token, how, at % token.length, character, bit)
      // Letter case is ignored where it may get lost.
      const fold = (text: string) => (name === 'unsubscribe address' ? text.toLowerCase() : text)
      if (fold(changed) === fold(token)) return
      tried++
      if (read(changed) !== null) accepted++
    }),
    { seed: 41, numRuns: 110_000 },
  )
  assert.ok(tried >= 100_000, `${tried}`)
  assert.equal(accepted, 0)
})

function mutate(token: string, how: string, at: number, character: string, bit: number): string {
  const [before, after] = [token.slice(0, at), token.slice(at + 1)]
  const here = token[at] as string
  switch (how) {
    case 'replace':
      return before + character + after
    case 'insert':
      return before + character + here + after
    case 'remove':
      return before + after
    case 'cut':
      return before
    case 'append':
      return token + character
    case 'swap':
      return before + (after[0] ?? '') + here + after.slice(1)
    default: {
      const bytes = Buffer.from(token, 'base64url')
      const place = at % bytes.length
      bytes[place] = (bytes[place] as number) ^ (1 << bit)
      return bytes.toString('base64url')
    }
  }
}

test('other spellings of the same bytes are refused', () => {
  const token = tokens.open(deliveryId)
  for (const other of [`${token}=`, `${token} `, `${token}\n`, `${token}.`, ` ${token}`]) {
    assert.equal(tokens.readOpen(other), null, JSON.stringify(other))
  }
  // Two digits at the end carry bits that no byte uses.
  const click = tokens.click(deliveryId, { url: 'https://example.com/' })
  const spellings = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_']
    .map((digit) => click.slice(0, -1) + digit)
    .filter((text) => Buffer.from(text, 'base64url').equals(Buffer.from(click, 'base64url')))
  assert.deepEqual(
    spellings.filter((text) => tokens.readClick(text) !== null),
    [click],
  )
})

test('an invalid id makes no token', () => {
  assert.throws(() => tokens.open('not an id'), RangeError)
  assert.throws(() => tokens.click(deliveryId, { linkId: '' }), RangeError)
})
