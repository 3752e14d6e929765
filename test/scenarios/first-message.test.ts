// Both databases: it is the whole service on each.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eachDatabase } from '../support/databases.ts'
import { eventually, startTestService } from '../support/service.ts'

eachDatabase((database) => {
  test('a message goes from the API to the inbox by SMTP, signed, with its events', async (t) => {
    const service = await startTestService(t, {}, { database })
    const sent = await service.send({ text: 'Plain body', html: '<p>Body</p>', 'o:tag': 'welcome' })
    assert.equal(sent.status, 200)
    assert.equal(sent.body.message, 'Queued. Thank you.')

    const delivered = await eventually('delivered event', async () =>
      (await service.events()).find((event) => event['event'] === 'delivered'),
    )
    const item = await eventually('inbox item', async () => {
      const { body } = await service.call('GET', '/sendwright/v1/inbox')
      return body.items[0]
    })
    assert.deepEqual(item.envelope.to, ['alice@example.org'])
    assert.deepEqual(item.tags, ['welcome'])

    const { body: message } = await service.call('GET', `/sendwright/v1/inbox/${item.id}`)
    assert.equal(`<${message.message_id}>`, sent.body.id)
    assert.equal(message.text.trim(), 'Plain body')
    assert.equal(message.authentication.dkim[0].result, 'pass')

    const storage = delivered['storage'] as { key: string; url: string }
    const stored = await service.call('GET', `/v3/domains/${service.domain}/messages/${storage.key}`)
    assert.equal(stored.status, 200)
    assert.equal(stored.body['body-plain'], 'Plain body')
    assert.equal(stored.body['Message-Id'], sent.body.id)
  })
})
