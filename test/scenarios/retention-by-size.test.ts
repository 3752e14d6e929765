/** Stored and captured mail within the space that it may take: the oldest goes first, and never mail still to be sent. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestClock } from '../support/clock.ts'
import { eachDatabase } from '../support/databases.ts'
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
    const service = await startTestService(t, env, { clock, database })

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
