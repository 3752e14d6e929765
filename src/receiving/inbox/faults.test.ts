import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually, startTestService, type TestService } from '../../../test/support/service.ts'

const PATH = '/sendwright/v1/inbox/faults'

interface Item {
  state: string
  attempts: number
  last_reply: { code: number; text: string } | null
}

async function attempted(service: TestService, to: string): Promise<Item> {
  const { id } = (await service.send({ to })).body
  return eventually(`attempt for ${to}`, async () => {
    const path = `/sendwright/v1/messages/${encodeURIComponent(id)}/deliveries`
    const [item] = (await service.call('GET', path)).body.items as Item[]
    return item && item.attempts > 0 && item.state !== 'sending' ? item : null
  })
}

test('the inbox replies at each stage as configured', async (t) => {
  const service = await startTestService(t)
  assert.equal((await attempted(service, 'first@example.org')).state, 'delivered')
  const stages = ['connect', 'mail', 'rcpt', 'data', 'dot']
  for (const stage of stages) {
    const recipient = stage === 'connect' ? '*' : `${stage}-*@example.org`
    const fault = { recipient, stage, reply: '450 4.2.2 mailbox full', probability: 1, delay_ms: 1 }
    const put = await service.call('PUT', PATH, { json: [fault] })
    assert.deepEqual(put.body, [fault])
    const item = await attempted(service, `${stage}-user@example.org`)
    assert.equal(item.state, 'queued', stage)
    assert.deepEqual(item.last_reply, { code: 450, text: '4.2.2 mailbox full' }, stage)
    if (stage !== 'connect')
      assert.equal((await attempted(service, 'other@example.org')).state, 'delivered', stage)
  }
  await service.call('PUT', PATH, {
    json: [
      { stage: 'rcpt', reply: '550 5.1.1 never', probability: 0 },
      { stage: 'rcpt', recipient: 'gone@example.org', reply: '550 5.1.1 no such user' },
    ],
  })
  assert.equal((await attempted(service, 'gone@example.org')).state, 'bounced')
  assert.equal((await attempted(service, 'here@example.org')).state, 'delivered')
  await service.restart()
  // The first bounce suppressed the address.
  await service.call('DELETE', `/v3/${service.domain}/bounces/gone@example.org`)
  assert.equal((await attempted(service, 'gone@example.org')).state, 'bounced', 'kept over a restart')
  assert.equal((await service.call('GET', PATH)).body.length, 2)
})

test('malformed faults are refused', async (t) => {
  const service = await startTestService(t)
  const wrong: [unknown, string][] = [
    [{}, 'The body must be a JSON list of faults'],
    [[{ stage: 'quit' }], 'Invalid format for parameter stage of fault 0'],
    [[{ stage: 'rcpt', reply: '250 fine' }], 'Invalid format for parameter reply of fault 0'],
    [[{ stage: 'rcpt', reply: '450 a\r\n250 b' }], 'Invalid format for parameter reply of fault 0'],
    [[{ stage: 'rcpt', probability: 2 }], 'Invalid format for parameter probability of fault 0'],
    [[{ stage: 'rcpt', delay_ms: 60_001 }], 'Invalid format for parameter delay_ms of fault 0'],
    [[{ stage: 'connect', recipient: 'a@b.example' }], 'Invalid format for parameter recipient of fault 0'],
    [[{ stage: 'rcpt', recipient: '*******' }], 'Invalid format for parameter recipient of fault 0'],
    [[{ stage: 'rcpt', colour: 1 }], 'Unknown member of fault 0: colour'],
  ]
  for (const [json, message] of wrong) {
    const answer = await service.call('PUT', PATH, { json })
    assert.equal(answer.status, 400, message)
    assert.deepEqual(answer.body, { message })
  }
})
