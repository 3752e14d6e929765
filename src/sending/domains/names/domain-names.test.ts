import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  ancestorsOf,
  atomOf,
  hostNameOf,
  rootDomainOf,
  selectorOf,
  unclaimableReason,
} from './domain-names.ts'

test('host names are ASCII labels in lower case, at least two of them', () => {
  assert.equal(hostNameOf('MG.Example.com'), 'mg.example.com')
  assert.equal(hostNameOf('xn--bcher-kva.example'), 'xn--bcher-kva.example')
  const bad = [
    '',
    'com',
    'example.com.',
    '.example.com',
    'a..b',
    '-a.example',
    'a-.example',
    'bücher.example',
  ]
  bad.push(
    'a b.example',
    'a_b.example',
    '192.0.2.1',
    'a.1',
    `${'a'.repeat(64)}.example`,
    'a\0.example',
    '*.example',
  )
  bad.push(`${'a.'.repeat(120)}example`, 'a@b.example', 'a/b.example')
  for (const name of bad) assert.equal(hostNameOf(name), null, name)
})

test('selectors are dot-atoms, prefixes single atoms', () => {
  assert.equal(selectorOf('K1.2026'), 'k1.2026')
  assert.equal(atomOf('Email'), 'email')
  for (const text of ['', 'a..b', '.a', 'a b', 'a;b', 'ä', '-a', 'a'.repeat(64)]) {
    assert.equal(selectorOf(text), null, text)
    assert.equal(atomOf(text), null, text)
  }
  assert.equal(atomOf('a.b'), null)
})

test('the root domain follows the list of public suffixes', () => {
  assert.equal(rootDomainOf('a.b.example.co.uk'), 'example.co.uk')
  assert.equal(rootDomainOf('mg.example.com'), 'example.com')
  assert.equal(rootDomainOf('example.com'), 'example.com')
  // Tenants of mail hosts are owners of their own.
  assert.equal(rootDomainOf('onmicrosoft.com'), 'onmicrosoft.com')
  assert.equal(rootDomainOf('a.onmicrosoft.com'), 'a.onmicrosoft.com')
  assert.equal(rootDomainOf('x.a.onmicrosoft.com'), 'a.onmicrosoft.com')
  assert.equal(rootDomainOf('a.mail.onmicrosoft.com'), 'a.mail.onmicrosoft.com')
  assert.equal(rootDomainOf('a.partner.onmschina.cn'), 'a.partner.onmschina.cn')
  assert.equal(rootDomainOf('a.notzendesk.com'), 'notzendesk.com')
  assert.deepEqual(ancestorsOf('a.b.example.com'), ['b.example.com', 'example.com'])
})

test('public suffixes and reserved names have no owner', () => {
  for (const name of ['co.uk', 'com.au', 'x.kobe.jp', 'a.localhost', 'x.invalid', 'a.b.onion', 'home.arpa'])
    assert.notEqual(unclaimableReason(name), null, name)
  const owned = [
    'example.com',
    'shop.co.uk',
    'github.io',
    'shop.github.io',
    'a.test',
    'a.example',
    'corp.local',
  ]
  for (const name of owned) assert.equal(unclaimableReason(name), null, name)
})
