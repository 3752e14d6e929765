/** What docs/architecture.md says of adding an area, held to: this area is added without a change of any other file. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { exampleArea } from '../support/example-area.ts'
import { eventually, startTestService } from '../support/service.ts'

test('an area has its operation, its job, its interest in events and its part in a deletion', async (t) => {
  const { call, send, domain } = await startTestService(t, {}, { areas: [exampleArea] })
  const own = 'example.test'
  const made = await call('POST', '/v4/domains', { form: { name: own } })
  assert.equal(made.status, 200, made.text)
  const delivered = async (name: string) =>
    (await call('GET', `/sendwright/v1/example/${name}`)).body.delivered as number

  await t.test('the operation answers, with the rights of all others', async () => {
    assert.equal(await delivered(domain), 0)
    assert.equal((await call('GET', `/sendwright/v1/example/${domain}`, { key: 'wrong' })).status, 401)
    assert.equal((await call('GET', '/sendwright/v1/example/foreign.test')).status, 404)
    const { paths } = (await call('GET', '/openapi.json')).body
    assert.ok(paths['/sendwright/v1/example/{domain_name}'])
  })

  await t.test('its rows are written with the event', async () => {
    assert.equal((await send({})).status, 200)
    await eventually('the delivery', async () => (await delivered(domain)) === 1)
  })

  await t.test('its job has run, and the operator sees it', async () => {
    const job = await eventually('the run', async () => {
      const { jobs } = (await call('GET', '/sendwright/v1/system')).body
      return jobs.find((one: { name: string }) => one.name === 'example-retention' && one)
    })
    assert.deepEqual([job.interval_seconds, job.last_error], [3600, null])
    assert.ok(Date.parse(job.last_ended_at) >= Date.parse(job.last_started_at))
  })

  await t.test('its rows go with the domain', async () => {
    const from = `Sender <sender@${own}>`
    const sent = await call('POST', `/v3/${own}/messages`, {
      form: { from, to: 'bob@example.org', subject: 'Hello', text: 'Hi.' },
    })
    assert.equal(sent.status, 200, sent.text)
    await eventually('the delivery', async () => (await delivered(own)) === 1)
    assert.equal((await call('DELETE', `/v3/domains/${own}`)).status, 200)
    await eventually('the name is free again', async () => {
      return (await call('POST', '/v4/domains', { form: { name: own } })).status === 200
    })
    assert.equal(await delivered(own), 0)
  })
})
