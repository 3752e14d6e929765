/** A name that another account registers after its domain was deleted brings nothing of its first owner. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addAccount } from '../support/accounts.ts'
import { eventually, startTestService } from '../support/service.ts'

const NAME = 'mail.changing-hands.example'
const MARK = 'firstowner'

/** What the first owner makes, each with the mark. */
const MADE: [path: string, form: Record<string, string>][] = [
  [`/v3/${NAME}/bounces`, { address: `${MARK}@there.example` }],
  [`/v3/${NAME}/unsubscribes`, { address: `${MARK}@there.example`, tag: `${MARK}tag` }],
  [`/v3/${NAME}/complaints`, { address: `${MARK}@there.example` }],
  [`/v3/${NAME}/whitelists`, { address: `${MARK}@there.example` }],
  [`/v3/${NAME}/templates`, { name: `${MARK}-template`, description: 'x', template: MARK, tag: 'v1' }],
  [`/v3/domains/${NAME}/webhooks`, { id: 'delivered', url: `http://127.0.0.1:9/${MARK}` }],
  [`/v3/domains/${NAME}/credentials`, { login: MARK, password: 'a-long-password-1' }],
]

/** What the next owner reads. */
const READ = [
  ...['events', `events?tags=${MARK}tag`, 'bounces', 'unsubscribes', 'complaints', 'whitelists', 'templates'],
  ...['tags', 'stats/total?event=accepted&event=delivered&duration=1d'],
].map((path) => `/v3/${NAME}/${path}`)
const READ_OF_DOMAIN = ['', '/webhooks', '/credentials', '/tracking', '/limits/tag']

test('the next owner of a name sees nothing of the one before', async (t) => {
  const service = await startTestService(t, { SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8' })
  const next = addAccount(service)
  const call = async (method: string, path: string, options = {}) => {
    const answer = await service.call(method as 'GET', path, options)
    assert.equal(answer.status, 200, `${method} ${path}: ${answer.text}`)
    return answer
  }
  const reads = [...READ, ...READ_OF_DOMAIN.map((path) => `/v3/domains/${NAME}${path}`)]
  const readAll = (key: string) =>
    Promise.all(reads.map(async (path) => (await call('GET', path, { key })).text))
  const metrics = async (key: string) => {
    const json = { dimensions: ['tag'], metrics: ['accepted_count'], duration: '2d' }
    return (await call('POST', '/v1/analytics/metrics', { json, key })).body.items as unknown[]
  }

  await call('POST', '/v4/domains', { form: { name: NAME } })
  for (const [path, form] of MADE) await call('POST', path, { form })
  const from = `Shop <shop@${NAME}>`
  const sent = { from, to: `${MARK}2@there.example`, subject: MARK, text: MARK, 'o:tag': `${MARK}tag` }
  await call('POST', `/v3/${NAME}/messages`, { form: sent })
  await eventually('the mail is delivered and counted', async () => {
    const { items } = (await call('GET', `/v3/${NAME}/events?event=delivered&tags=${MARK}tag`)).body
    return items.length > 0 && (await metrics(service.key)).length > 0
  })
  const seen = await readAll(service.key)
  assert.ok(seen.filter((text) => text.includes(MARK)).length >= 9, 'the first owner sees it')

  await call('DELETE', `/v3/domains/${NAME}`)
  await eventually('the name is free', async () => {
    const options = { form: { name: NAME }, key: next.key }
    return (await service.call('POST', '/v4/domains', options)).status === 200
  })
  for (const [at, text] of (await readAll(next.key)).entries())
    assert.ok(!text.toLowerCase().includes(MARK), `${reads[at]}: ${text}`)
  assert.deepEqual(await metrics(next.key), [])
})
