import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noCounts, valuesOfEvent } from './counters.ts'
import { metricValue } from './figures.ts'

test('rates have four decimals, rounded half up', () => {
  const cases: [opened: number, delivered: number, text: string][] = [
    [0, 0, '0.0000'],
    [1, 0, '0.0000'],
    [83, 100, '0.8300'],
    [1, 3, '0.3333'],
    [2, 3, '0.6667'],
    [5, 100_000, '0.0001'],
    [35, 100_000, '0.0004'],
    [10_045, 10_000_000, '0.0010'],
    [10_050, 10_000_000, '0.0010'],
    [10_500, 10_000_000, '0.0011'],
    [7, 2, '3.5000'],
  ]
  for (const [opened, delivered, text] of cases) {
    const counts = { ...noCounts(), opened, delivered_smtp: delivered }
    assert.equal(metricValue('opened_rate', counts, []), text, `${opened} of ${delivered}`)
  }
})

test('an event has the values of its payload', () => {
  const payload = {
    'recipient-provider': 'Apple',
    envelope: { 'sending-ip': '2001:DB8::1', 'i-ip-pool-id': 'pool' },
    geolocation: { country: 'de' },
    'client-info': { 'device-type': 'mobile', bot: 'gmail' },
  }
  const none = { country: '', device: '', bot: '' }
  const attempted = { recipient_domain: 'one.example', provider: 'Apple', ip: '2001:db8::1', pool: 'pool' }
  const to = 'ann@One.Example'
  assert.deepEqual(valuesOfEvent('delivered', to, payload), { ...attempted, ...none })
  assert.deepEqual(valuesOfEvent('clicked', to, payload), {
    ...attempted,
    country: 'DE',
    device: 'mobile',
    bot: 'Gmail',
  })
  const strange = {
    ...payload,
    geolocation: { country: 'Unknown' },
    'client-info': { 'device-type': 'tv', bot: 'x' },
  }
  assert.deepEqual(valuesOfEvent('opened', to, strange), { ...attempted, ...none })
  const unknown = { provider: 'Other', ip: '', pool: '', ...none }
  assert.deepEqual(valuesOfEvent('accepted', to, null), { recipient_domain: 'one.example', ...unknown })
  assert.deepEqual(valuesOfEvent('accepted', 'a@gmail.com', payload).ip, '', 'not attempted yet')
  assert.equal(valuesOfEvent('accepted', 'a@gmail.com', null).provider, 'Gmail')
  assert.deepEqual(valuesOfEvent('stored', null, {}), { recipient_domain: '', ...unknown })
})
