import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AddressSyntaxError, parseAddressList } from '../../protocols/mime/address.ts'
import type { Domain } from '../../sending/domains/domain.ts'
import { authorFault, authorsText, readAuthors } from './authors.ts'

const domain = (name: string, accountId: string) =>
  ({ name, accountId, verified: true, type: 'custom' }) as Domain
const OWN = domain('example.com', 'a')
const domains = {
  byName: (name: string) => [OWN, domain('other.example', 'b')].find((one) => one.name === name) ?? null,
}

test('a From is judged by every author in it, and only by authors', () => {
  const cases: [from: string, fault: RegExp | null][] = [
    ['a@example.com', null],
    ['a@nobody.example', null],
    ['"x@other.example" <a@example.com>', null],
    ['a@example.com (x@other.example)', null],
    ['a@other.example', /^From domain other\.example belongs to another account$/],
    ['a@example.com, b@X.Other.Example', /^From domain x\.other\.example belongs/],
    ['Team: a@example.com, b@other.example;', /^From domain other\.example belongs/],
    ['x@example.com <a@other.example>', /^From domain other\.example belongs/],
    ['', /^cannot parse from address$/],
    ['Team:;', /^cannot parse from address$/],
    ['%recipient.from%', /^cannot parse from address$/],
    ['a@other.example.', /^cannot parse from address$/],
  ]
  for (const [from, fault] of cases) {
    const found = authorFault(domains, OWN, from) as Error | null
    if (fault === null) assert.equal(found, null, from)
    else assert.match(found?.message ?? '', fault, from)
  }
})

test('authors are written so that they read in one way', () => {
  const text = authorsText(readAuthors('Site: News [weekly] <a@example.com>'))
  assert.equal(text, '"Site: News [weekly]" <a@example.com>')
  assert.deepEqual(parseAddressList(text), readAuthors(text))
})

test('a mail has a hundred authors at most, in one field or several', () => {
  const many = Array.from({ length: 101 }, (_, at) => `a${at}@example.com`)
  assert.equal(readAuthors(many.slice(1)).length, 100)
  assert.throws(() => readAuthors(many), AddressSyntaxError)
  assert.throws(() => readAuthors(many.join(', ')), AddressSyntaxError)
})
