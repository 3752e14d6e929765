import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Domain } from '../domain.ts'
import { isForeign, namesUpToRoot, ownerOf, returnPathHost } from './name-owner.ts'

const domain = (name: string, accountId: string, verified = true): Domain =>
  ({ name, accountId, verified, type: 'custom', mailfromHost: name, returnPathValid: false }) as Domain

const KNOWN = [
  domain('example.com', 'a'),
  domain('team.example.com', 'b'),
  domain('claimed.example.com', 'b', false),
  domain('corp.example', 'b', false),
  domain('mg.corp.example', 'a'),
  domain('github.io', 'b'),
  { ...domain('sandbox1.host.example', 'b', false), type: 'sandbox' as const },
]
const domains = { byName: (name: string) => KNOWN.find((one) => one.name === name) ?? null }

test('a name belongs to the nearest verified domain at or above it, up to the registrable name', () => {
  const cases: [name: string, owner: string | null][] = [
    ['example.com', 'example.com'],
    ['a.b.example.com', 'example.com'],
    ['a.team.example.com', 'team.example.com'],
    ['claimed.example.com', 'example.com'],
    ['x.claimed.example.com', 'example.com'],
    ['corp.example', 'corp.example'],
    ['x.corp.example', null],
    ['x.sandbox1.host.example', 'sandbox1.host.example'],
    ['tenant.github.io', null],
    ['notexample.com', null],
  ]
  for (const [name, owner] of cases)
    assert.equal((ownerOf(domains, name) as Domain | null)?.name ?? null, owner, name)
})

test('of a deep name the labels next to its registrable name are looked up', () => {
  const deep = `${'x.'.repeat(60)}example.com`
  assert.equal(namesUpToRoot(deep).length, 9)
  assert.equal(namesUpToRoot(deep).at(-1), 'example.com')
  assert.equal((ownerOf(domains, deep) as Domain).name, 'example.com')
})

test("a claim that is not proven counts, but not against a verified domain of its organization's names", () => {
  const [a, b, , , mg] = KNOWN as [Domain, Domain, Domain, Domain, Domain]
  const cases: [sender: Domain, name: string, foreign: boolean][] = [
    [a, 'team.example.com', true],
    [a, 'x.team.example.com', true],
    [b, 'example.com', true],
    [b, 'hr.example.com', true],
    [b, 'x.team.example.com', false],
    [a, 'claimed.example.com', false],
    [mg, 'corp.example', false],
    [a, 'corp.example', true],
    [{ ...mg, verified: false }, 'corp.example', true],
    [a, 'nobody.example', false],
  ]
  for (const [sender, name, foreign] of cases)
    assert.equal(isForeign(domains, sender, name), foreign, `${sender.name} ${name}`)
})

test('return paths have the chosen host while its record is valid and the account owns it', () => {
  const own = KNOWN[0] as Domain
  const cases: [mailfromHost: string, returnPathValid: boolean, host: string][] = [
    ['example.com', false, 'example.com'],
    ['bounce.example.com', false, 'example.com'],
    ['bounce.example.com', true, 'bounce.example.com'],
    ['bounce.mg.corp.example', true, 'bounce.mg.corp.example'],
    ['bounce.team.example.com', true, 'example.com'],
    ['bounce.corp.example', true, 'example.com'],
    ['nobody.example', true, 'example.com'],
  ]
  for (const [mailfromHost, returnPathValid, host] of cases)
    assert.equal(returnPathHost(domains, { ...own, mailfromHost, returnPathValid }), host, mailfromHost)
})
