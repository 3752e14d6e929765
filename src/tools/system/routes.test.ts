import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addAccount } from '../../../test/support/accounts.ts'
import { operationsOf } from '../../../test/support/described-calls.ts'
import { FILLED_ENV, fillAccount, setFaults } from '../../../test/support/fill-account.ts'
import { createReceiver } from '../../../test/support/http-receiver.ts'
import { eventually, ownAddress, startTestService } from '../../../test/support/service.ts'
import { callAs, createSubaccount } from '../../../test/support/subaccounts.ts'

test('an account other than the first sees its own queue, and no checks of the installation', async (t) => {
  const service = await startTestService(t)
  const subaccount = await createSubaccount(service, 'customer')
  const stranger = addAccount(service)
  const later = String(Math.floor(Date.now() / 1000) + 3_600)
  for (const to of ['a@example.org', 'b@example.org'])
    assert.equal((await service.send({ to, 'o:deliverytime': later })).status, 200)
  const own = await service.call('GET', '/sendwright/v1/system')
  assert.deepEqual(own.body.queue, { scheduled: 2, queued: 0, sending: 0 })
  for (const call of [
    callAs(service, subaccount),
    (method: string, path: string) => service.call(method, path, { key: stranger.key }),
  ]) {
    const { status, body } = await call('GET', '/sendwright/v1/system')
    assert.equal(status, 200)
    assert.deepEqual(Object.keys(body), [
      'version',
      'mode',
      'inbox_release',
      'database',
      'uptime_seconds',
      'queue',
    ])
    assert.deepEqual(body.queue, { scheduled: 0, queued: 0, sending: 0 })
    assert.equal((await call('GET', '/sendwright/v1/system/checks')).status, 403)
  }
  const one = callAs(service, subaccount)
  assert.equal((await one('POST', '/v4/domains', { form: { name: 'customer.example' } })).status, 200)
  const form = {
    from: 'a@customer.example',
    to: 'c@example.org',
    subject: 'x',
    text: 'x',
    'o:deliverytime': later,
  }
  assert.equal((await one('POST', '/v3/customer.example/messages', { form })).status, 200)
  // A count is kept for a while.
  const scheduled = async (call: typeof one) =>
    (await call('GET', '/sendwright/v1/system')).body.queue.scheduled
  await eventually('its own is counted', async () => (await scheduled(one)) === 1)
  await eventually('all are counted', async () => (await scheduled(service.call)) === 3)
})

test('no list or figure names what another account has', async (t) => {
  const receiver = await createReceiver({ host: ownAddress() })
  t.after(() => receiver.close())
  const service = await startTestService(t, FILLED_ENV)
  await setFaults(service)
  await fillAccount(service, service.call, 'firstcanary.example', receiver.url)
  const stranger = addAccount(service)
  const described = await service.call('GET', '/openapi.json', { key: null })
  const operations = operationsOf(described.body.paths).filter(
    ({ method, path }) => method === 'GET' && !path.includes('{') && !path.endsWith('/stream'),
  )
  assert.ok(operations.length > 60, String(operations.length))
  for (const { path } of operations) {
    const { text } = await service.call('GET', path, { key: stranger.key })
    assert.ok(!text.includes('firstcanary'), `${path}: ${text.slice(0, 500)}`)
  }
})
