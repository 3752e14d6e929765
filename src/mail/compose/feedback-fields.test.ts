import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DEFAULT_OPTIONS } from '../record/options.ts'
import { feedbackFields } from './feedback-fields.ts'

const record = {
  accountId: 'acc1',
  options: DEFAULT_OPTIONS,
  summary: { tags: [] },
  content: { batch: true },
} as unknown as Parameters<typeof feedbackFields>[0]
const domain: Parameters<typeof feedbackFields>[1] = {
  ...{ id: '0123456789abcdef01234567', name: 'a.example', dkimAuthority: 'a.example' },
  ...{ mailfromHost: 'a.example', returnPathValid: false, cfblAddress: true, feedbackId: false },
}
const target = { delivery: { id: 'd', sid: 'token' }, list: null }

/** The host of CFBL-Address; null: there is none. */
function hostOf(from: string, change: Partial<typeof domain>): string | null {
  const [field] = feedbackFields(record, { ...domain, ...change }, target, [['From', from]])
  return field === undefined ? null : (/^fbl@(.*); report=arf$/.exec(field[1])?.[1] ?? '')
}

test('CFBL-Address is at From or below it, and From at the signing domain or below it (RFC 9477 §3.1)', () => {
  const below = { mailfromHost: 'mail.a.example', returnPathValid: true }
  const cases: [from: string, change: Partial<typeof domain>, host: string | null][] = [
    ['x@a.example', {}, 'a.example'],
    ['A <x@a.example>, y@a.example', {}, 'a.example'],
    ['x@a.example', below, 'mail.a.example'],
    // Not where its SPF record is missing, nor above the domain.
    ['x@a.example', { ...below, returnPathValid: false }, 'a.example'],
    [
      'x@b.a.example',
      { name: 'b.a.example', dkimAuthority: 'a.example', mailfromHost: 'a.example', returnPathValid: true },
      'b.a.example',
    ],
    // A signature of a domain above From counts, of one below it does not.
    ['x@a.example', { dkimAuthority: 'mail.a.example' }, null],
    ['x@a.example', { dkimAuthority: 'b.example' }, null],
    // From elsewhere: another domain, a name below the address's, several domains.
    ['x@b.example', {}, null],
    ['x@b.a.example', {}, null],
    ['x@a.example, y@b.example', {}, null],
    ['no address', {}, null],
    ['', {}, null],
  ]
  for (const [from, change, host] of cases)
    assert.equal(hostOf(from, change), host, `${from} ${JSON.stringify(change)}`)
})

test('Feedback-ID: the first tag made safe, the kind of mail, a sender that stays', () => {
  const cases: [tags: string[], list: object | null, batch: boolean, expected: string][] = [
    [[], null, true, ':acc1:batch:cdef01234567'],
    [['Spring: sale\r\nX: y', 'z'], null, false, 'spring-sale-x-y:acc1:copies:cdef01234567'],
    [['ä'.repeat(40)], { sid: 'l' }, false, '-:acc1:list:cdef01234567'],
    [['a'.repeat(40)], null, true, `${'a'.repeat(32)}:acc1:batch:cdef01234567`],
  ]
  for (const [tags, list, batch, expected] of cases) {
    const made = feedbackFields(
      { ...record, summary: { tags }, content: { batch } } as unknown as typeof record,
      { ...domain, cfblAddress: false, feedbackId: true },
      { ...target, list } as typeof target,
      [['From', 'x@a.example']],
    )
    assert.deepEqual(made, [['Feedback-ID', expected]])
  }
})
