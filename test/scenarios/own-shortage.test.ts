/** The machine runs out of open files: mail waits until they are free, and no destination is blamed. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createInternet } from '../support/internet.ts'
import { eventually, ownAddress } from '../support/service.ts'
import { AUTHORIZATION, type ServiceProcess, startProcess } from '../support/service-process.ts'
import { temporaryFolder } from '../support/stores.ts'

const RECIPIENTS = 60
/** Enough for a start, too few for the connections that the mail needs. */
const OPEN_FILES = 64

test('more connections than open files: nothing bounces, no attempt is counted, all mail arrives once files are free', async (t) => {
  const internet = await createInternet(t)
  const held = Promise.withResolvers<void>()
  t.after(() => held.resolve())
  const domains = Array.from({ length: RECIPIENTS }, (_, n) => `d${n}.example`)
  const sink = await internet.site(['mx.example'])
  // Each domain is a separate site, so that no lane's limit keeps the number of connections low.
  for (const domain of domains) internet.host(domain, `mx.${domain}`, sink.host)
  sink.on('DATA-DOT', async (session) => {
    await held.promise
    session.accept()
    return '250 2.0.0 Ok'
  })
  const service = await startProcess(
    ownAddress(),
    {
      ...internet.env,
      SENDWRIGHT_DATA: await temporaryFolder(t),
      SENDWRIGHT_RETRY_SCHEDULE: '1s,1s',
    },
    { openFiles: OPEN_FILES },
  )
  t.after(() => service.end('SIGKILL'))
  await send(service, domains)
  // Longer than the whole retry schedule: a delivery with a counted attempt would be too old now.
  await sleep(4_000)
  held.resolve()
  await eventually(
    'all delivered',
    async () => new Set(sink.messages.map(({ envelope }) => envelope.to[0])).size === RECIPIENTS,
  )
  assert.equal(sink.messages.length, RECIPIENTS, 'none twice')
  const failed = await eventually('events', () => events(service, '?event=failed&limit=300'))
  assert.deepEqual(failed, [])
  const delivered = await eventually('delivered events', async () => {
    const found = await events(service, '?event=delivered&limit=300')
    return found?.length === RECIPIENTS ? found : null
  })
  for (const event of delivered) assert.equal(event['delivery-status']['attempt-no'], 1)
  await eventually('a line about the shortage', async () =>
    /the limit of open files of this process is reached \(EMFILE\)/.test(service.output()),
  )
  assert.match(service.output(), /The limit of open files is 64; all connections .* take \d+/)
  const warnedAt = service
    .output()
    .split('\n')
    .filter((line) => line.includes('this machine keeps deliveries waiting'))
    .map((line) => Date.parse(JSON.parse(line).time))
  assert.ok(warnedAt.length > 0)
  for (const [index, at] of warnedAt.entries())
    assert.ok(index === 0 || at - (warnedAt[index - 1] as number) > 59_000, 'one warning a minute')
})

async function send(service: ServiceProcess, domains: readonly string[]): Promise<void> {
  const form = new FormData()
  form.append('from', `Sender <sender@${service.domain}>`)
  for (const domain of domains) form.append('to', `user@${domain}`)
  form.append('subject', 'Hello')
  form.append('text', 'Hi.')
  const url = `${service.url}/v3/${service.domain}/messages`
  const answer = await fetch(url, { method: 'POST', headers: { authorization: AUTHORIZATION }, body: form })
  assert.equal(answer.status, 200, await answer.text())
}

/** Null: the service could not be reached, having no file for the connection. */
// biome-ignore lint/suspicious/noExplicitAny: a test reaches into bodies freely
async function events(service: ServiceProcess, query: string): Promise<any[] | null> {
  const url = `${service.url}/v3/${service.domain}/events${query}`
  const answer = await fetch(url, { headers: { authorization: AUTHORIZATION } }).catch(() => null)
  return answer?.ok ? ((await answer.json()) as { items: unknown[] }).items : null
}
