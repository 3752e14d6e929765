import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seededNumbers } from '../../../../test/support/random.ts'
import { VALUE_NAMES } from '../counters.ts'
import { nameOf, type PackedEntry, PackReader, pack, WHOLE } from './packs.ts'
import { COUNTER_PLACES, type CounterCounts } from './splits.ts'

const NO_VALUES: PackedEntry['values'] = {
  ...{ tag: '', recipient_domain: '', provider: '', ip: '' },
  ...{ pool: '', country: '', device: '', bot: '' },
}

function unpacked(bytes: Uint8Array): PackedEntry[] {
  const reader = new PackReader(bytes)
  const entries: PackedEntry[] = []
  while (reader.next()) entries.push(reader.entry())
  return entries
}

test('what is packed is what is read, section by section', () => {
  const random = seededNumbers(153)
  const below = (count: number) => Math.floor(random() * count)
  const texts = ['', '', 'a', 'example.org', 'Zürich 🚀', '["a","b"]', 'x'.repeat(300)]
  for (let round = 0; round < 200; round++) {
    const entries = Array.from({ length: below(40) }, (): PackedEntry => {
      const values = Object.fromEntries(VALUE_NAMES.map((name) => [name, texts[below(texts.length)]]))
      const counts: CounterCounts = []
      for (let place = 0; place < 31; place += 1 + below(12))
        counts.push(place, [1, 127, 128, 2 ** 31, 2 ** 40 + 5][below(5)] as number)
      return { hour: below(25) - 1, values: values as unknown as PackedEntry['values'], counts }
    })
    const found = unpacked(pack(entries))
    // Within a section the order is kept.
    assert.deepEqual(
      found,
      entries.toSorted((a, b) => a.hour - b.hour),
    )
  }
})

test('the layout of stored packs does not change', () => {
  const entries: PackedEntry[] = [
    {
      hour: 23,
      values: { ...NO_VALUES, recipient_domain: 'b.org', provider: 'Gmail' },
      counts: [COUNTER_PLACES.accepted_outgoing, 300],
    },
    { hour: WHOLE, values: { ...NO_VALUES, tag: '["é"]' }, counts: [COUNTER_PLACES.archived, 1] },
  ]
  assert.equal(
    Buffer.from(pack(entries)).toString('hex'),
    [
      ...['01', '03', '05622e6f7267', '05476d61696c', '065b22c3a9225d'],
      // Two sections: of the whole interval with an entry that has a tag, of an hour with one that has two values.
      ...['02', '0001', '0102', '011e01', '1801', '060001', '0101ac02'],
    ].join(''),
  )
})

test('counters keep the places that stored packs name them by', () => {
  assert.deepEqual(
    Object.keys(COUNTER_PLACES).join(' '),
    [
      'accepted_incoming accepted_outgoing delivered_smtp delivered_http delivered_optimized delivered_first',
      'delivered_later failed_temporary failed_temporary_espblock rate_limited failed_permanent',
      'failed_suppress_bounce failed_suppress_unsubscribe failed_suppress_complaint failed_bounce failed_soft',
      'failed_delayed_bounce failed_old failed_permanent_espblock failed_webhook failed_optimized stored opened',
      'opened_unique clicked clicked_unique unsubscribed complained accepted_listed test_delivered archived',
    ].join(' '),
  )
})

test('bytes that are no pack are refused, wherever they are cut off', () => {
  const bytes = pack([{ hour: 3, values: { ...NO_VALUES, tag: '["news"]', country: 'DE' }, counts: [2, 5] }])
  for (let length = 0; length < bytes.length; length++)
    assert.throws(() => unpacked(bytes.slice(0, length)), /cannot be read/, String(length))
  assert.throws(() => unpacked(Uint8Array.from([...bytes, 0])), /cannot be read/)
  assert.throws(() => unpacked(Uint8Array.from([2, ...bytes.slice(1)])), /cannot be read/)
  assert.deepEqual(unpacked(pack([])), [])
})

test('entries of different hours or values have different names', () => {
  const names = [
    nameOf(1, '', NO_VALUES),
    nameOf(WHOLE, '', NO_VALUES),
    nameOf(1, '1', NO_VALUES),
    nameOf(1, '', { ...NO_VALUES, ip: '1' }),
    nameOf(1, '', { ...NO_VALUES, pool: '1' }),
  ]
  assert.equal(new Set(names).size, names.length)
})
