/** Mail that this server can no longer prepare ends like any other, and its events say why. */
import assert from 'node:assert/strict'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { eventually, startTestService, type TestService } from '../support/service.ts'
import { createSink } from '../support/smtp-sink.ts'

interface Status {
  code: number
  message: string
  'attempt-no': number
  'retry-seconds'?: number
  'last-code'?: number
  'last-message'?: string
}

async function rig(t: TestContext) {
  const sink = await createSink()
  t.after(() => sink.close())
  const service = await startTestService(t, {
    SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
    SENDWRIGHT_SANDBOX_RECIPIENTS: '*',
    SENDWRIGHT_RETRY_SCHEDULE: '1s,1s',
  })
  return { sink, service }
}

const inSeconds = (seconds: number) => new Date(Date.now() + seconds * 1_000).toUTCString()
/** Nothing is sent before `untilExpired` moves it. */
const later = () => inSeconds(3_600)

/**
 * Lets the scheduled message be sent; resolves its failed events, oldest first, once the last one exists. `found`: runs once the
 * message was listed.
 */
async function untilExpired(
  service: TestService,
  found: () => Promise<void> = async () => {},
): Promise<{ severity: string; status: Status }[]> {
  const { body } = await service.call('GET', '/sendwright/v1/scheduled')
  await found()
  const path = `/sendwright/v1/scheduled/${encodeURIComponent(body.items[0].message_id)}`
  const moved = await service.call('PATCH', path, { form: { deliverytime: inSeconds(2) } })
  assert.equal(moved.status, 200, moved.text)
  return eventually('the permanent failure', async () => {
    const events = await service.events('?event=failed')
    const failed = events.toReversed().map((event) => ({
      severity: event['severity'] as string,
      status: event['delivery-status'] as Status,
    }))
    return failed.at(-1)?.severity === 'permanent' ? failed : null
  })
}

function assertExpired(failed: { severity: string; status: Status }[], why: string): void {
  assert.deepEqual(
    failed.map(({ severity, status }) => [severity, status.code, status.message, status['attempt-no']]),
    [
      ['temporary', 690, why, 1],
      ['temporary', 690, why, 2],
      ['permanent', 602, 'Too old', 3],
    ],
  )
  assert.equal(failed[0]?.status['retry-seconds'], 1)
  const last = failed.at(-1)?.status
  assert.deepEqual([last?.['last-code'], last?.['last-message']], [690, why])
}

/** Changes what the service has stored. */
async function whileStopped(
  service: TestService,
  change: (folder: string) => void | Promise<void>,
): Promise<void> {
  await service.service.stop()
  await change(service.config.dataFolder)
  await service.restart()
}

async function removeBlobs(folder: string): Promise<void> {
  for (const name of await readdir(join(folder, 'blobs')))
    await rm(join(folder, 'blobs', name), { recursive: true })
}

test('a missing attachment: temporary failures, then a permanent one, which say that content is missing', async (t) => {
  const { sink, service } = await rig(t)
  const file = new File([Buffer.alloc(200_000, 'x')], 'large.txt')
  await service.send({ attachment: file, 'o:deliverytime': later() })
  await whileStopped(service, removeBlobs)
  assertExpired(await untilExpired(service), 'message content is missing on this server')
  assert.equal(sink.messages.length, 0)
  const { body } = await service.call('GET', `/v3/${service.domain}/bounces`)
  assert.deepEqual(body.items, [], 'the recipient did nothing wrong')
})

test('a large message whose file is missing', async (t) => {
  const { service } = await rig(t)
  const html = '<p>Hello</p>'.repeat(60_000)
  await service.send({ html, 'o:deliverytime': later() })
  await whileStopped(service, removeBlobs)
  assertExpired(await untilExpired(service), 'message content is missing on this server')
})

test('an attachment that disappears at run time is not reported as a refusal of the recipient', async (t) => {
  const { service } = await rig(t)
  const file = new File([Buffer.alloc(200_000, 'x')], 'large.txt')
  await service.send({ attachment: file, 'o:deliverytime': later() })
  await removeBlobs(service.config.dataFolder)
  assertExpired(await untilExpired(service), 'message content is missing on this server')
})

test('a signing key that cannot be decrypted', async (t) => {
  const { service } = await rig(t)
  await service.send({ 'o:deliverytime': later() })
  await whileStopped(service, (folder) => {
    const database = new DatabaseSync(join(folder, 'sendwright.db'))
    database.exec("UPDATE dkim_keys SET private_key_sealed = x'00'")
    database.close()
  })
  assertExpired(await untilExpired(service), 'a signing key of the domain cannot be read')
})

test('an unreadable stored message: an internal error counts like any other failure', async (t) => {
  const { service } = await rig(t)
  await service.send({ 'o:deliverytime': later() })
  await whileStopped(service, (folder) => {
    const database = new DatabaseSync(join(folder, 'sendwright.db'))
    database.exec("UPDATE messages SET content = x'00'")
    database.close()
  })
  assertExpired(await untilExpired(service), 'internal error')
})

test('a message of whose summary nothing is left ends like any other, and ends no process', async (t) => {
  const { service } = await rig(t)
  await service.send({ 'o:deliverytime': later() })
  const damage = (folder: string) => {
    const database = new DatabaseSync(join(folder, 'sendwright.db'))
    database.exec("UPDATE messages SET summary_json = '{}'")
    database.close()
  }
  assertExpired(await untilExpired(service, () => whileStopped(service, damage)), 'internal error')
})
