/** Mail and records within the space that they may take: the oldest go first, and never mail still to be sent. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestClock } from '../support/clock.ts'
import { eachDatabase } from '../support/databases.ts'
import { createReceiver } from '../support/http-receiver.ts'
import { runJobAfter } from '../support/jobs.ts'
import { eventually, startTestService } from '../support/service.ts'

// biome-ignore lint/suspicious/noExplicitAny: a test reaches into bodies freely and asserts on what it finds
type Json = any

const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS

eachDatabase((database) =>
  test('space that mail may take', async (t) => {
    const clock = createTestClock()
    const ticking = setInterval(() => void clock.advance(10), 5)
    t.after(() => clearInterval(ticking))
    const env = { SENDWRIGHT_MESSAGE_RETENTION_MEGABYTES: '2', SENDWRIGHT_INBOX_RETENTION_MEGABYTES: '1' }
    const service = await startTestService(t, env, { clock, database, restingJobs: [] })

    const send = async (subject: string, extra: Record<string, string> = {}) => {
      const attachment = new File([Buffer.alloc(500_000, 'x')], 'x.txt')
      const answer = await service.send({ subject, attachment, ...extra })
      assert.equal(answer.status, 200, answer.text)
      return answer.body.id as string
    }
    const captured = async (): Promise<string[]> =>
      (await service.call('GET', '/sendwright/v1/inbox')).body.items.map(({ subject }: Json) => subject)
    const runAfter = (name: string, ms: number) => runJobAfter(service, clock, name, ms)
    const isStored = async (id: string): Promise<boolean> => {
      const [event] = (await service.events(`?event=accepted&message-id=${id.slice(1, -1)}`)) as Json[]
      return (await service.call('GET', new URL(event.storage.url).pathname)).status === 200
    }

    const inADay = new Date(clock.now() + DAY_MS).toUTCString()
    const scheduled = await send('scheduled', { 'o:deliverytime': inADay })
    const ids: string[] = []
    for (const at of [1, 2, 3, 4, 5]) {
      ids.push(await send(`mail ${at}`))
      await eventually(`mail ${at}`, async () => (await captured()).includes(`mail ${at}`))
    }

    await runAfter('message-retention', 11 * MINUTE_MS)
    const stored = await Promise.all(ids.map(isStored))
    assert.deepEqual(stored, [false, false, false, true, true], 'the oldest ones that are finished are gone')
    assert.equal(await isStored(scheduled), true)

    await runAfter('inbox-retention', 11 * MINUTE_MS)
    assert.deepEqual(await captured(), ['mail 5'], '500,000 bytes are 700,000 in base64')

    clock.leap(DAY_MS)
    await eventually('the scheduled mail', async () => (await captured()).includes('scheduled'))
    await runAfter('inbox-retention', 31 * DAY_MS)
    assert.deepEqual(await captured(), [], 'older than 30 days')
  }),
)

const ATTEMPTS = 800

eachDatabase((database) =>
  test('space that attempts of webhooks and other records may take', async (t) => {
    const clock = createTestClock()
    const ticking = setInterval(() => void clock.advance(10), 5)
    t.after(() => clearInterval(ticking))
    const receiver = await createReceiver()
    t.after(() => receiver.close())
    receiver.answer = (response) => response.end('x'.repeat(1_024))
    const env = {
      SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8',
      SENDWRIGHT_WEBHOOK_RETENTION_MEGABYTES: '1',
      SENDWRIGHT_TRANSCRIPT_RETENTION_MEGABYTES: '2',
      SENDWRIGHT_AUDIT_RETENTION_MEGABYTES: '3',
      SENDWRIGHT_REPORT_RETENTION_MEGABYTES: '4',
    }
    const service = await startTestService(t, env, { clock, database, restingJobs: [] })
    const form = { id: 'accepted', url: `${receiver.url}/hook` }
    const made = await service.call('POST', `/v3/domains/${service.domain}/webhooks`, { form })
    assert.equal(made.status, 200, made.text)
    const to = Array.from({ length: ATTEMPTS }, (_, at) => `reader-${at}@example.org`)
    assert.equal((await service.send({ to, 'recipient-variables': '{}' })).status, 200)

    const attempts = async () => {
      const found: Json[] = []
      let url: string | undefined = '/sendwright/v1/webhooks/attempts?limit=300'
      while (url) {
        const { items, paging } = (await service.call('GET', url)).body as Json
        found.push(...items)
        url = items.length > 0 ? paging.next.slice(new URL(paging.next).origin.length) : undefined
      }
      return found
    }
    await eventually('all posts', async () => receiver.posts.length >= ATTEMPTS)
    await eventually('all attempts', async () => (await attempts()).length === ATTEMPTS)
    const before = await attempts()
    await runJobAfter(service, clock, 'webhook-attempt-retention', 11 * MINUTE_MS)
    const kept = await attempts()
    assert.ok(kept.length > 400 && kept.length < 800, `${kept.length} attempts of 1.6 KB are 1 MB`)
    assert.deepEqual(
      kept.map(({ id }) => id),
      before.slice(0, kept.length).map(({ id }) => id),
      'the newest stay',
    )
    const { jobs, storage } = (await service.call('GET', '/sendwright/v1/system')).body as Json
    const limitOf = (wanted: string) =>
      storage.kinds.find(({ kind }: Json) => kind === wanted)?.limit_bytes as number
    assert.deepEqual([limitOf('dialogues'), limitOf('audit')], [2_000_000, 3_000_000])
    for (const name of ['transcript-retention', 'audit-retention', 'domain-report-retention']) {
      const job = jobs.find((one: Json) => one.name === name)
      assert.deepEqual([typeof job.last_ended_at, job.last_error], ['string', null], name)
    }
  }),
)
