import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { eventually, startTestService } from '../../test/support/service.ts'

/** Values by name with labels, as the text has them. */
function samplesOf(text: string): Map<string, number> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(
    lines.map((line) => {
      const end = line.lastIndexOf(' ')
      return [line.slice(0, end), Number(line.slice(end + 1))]
    }),
  )
}

/** Sum over all series of a name whose labels contain `labels`. */
function sumOf(
  samples: ReadonlyMap<string, number>,
  name: string,
  labels: Record<string, string> = {},
): number {
  const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`)
  return [...samples]
    .filter(([series]) => series === name || series.startsWith(`${name}{`))
    .filter(([series]) => wanted.every((one) => series.includes(one)))
    .reduce((sum, [, value]) => sum + value, 0)
}

for (const database of ['sqlite', 'postgres'] as const)
  test(`figures of mail, requests, queue and jobs on ${database}`, async (t) => {
    const { call, send } = await startTestService(t, {}, { database })
    const scrape = async () => samplesOf((await call('GET', '/metrics')).text)
    assert.equal((await send({})).status, 200)
    const before = await eventually('the delivery', async () => {
      const samples = await scrape()
      return sumOf(samples, 'sendwright_events_total', { event: 'delivered' }) === 1 && samples
    })
    assert.equal(sumOf(before, 'sendwright_events_total', { event: 'accepted' }), 1)
    assert.equal(sumOf(before, 'sendwright_smtp_attempt_duration_seconds_count', { event: 'delivered' }), 1)
    const accepted = { operation: 'sendMessage', method: 'POST', status: '200' }
    assert.equal(sumOf(before, 'sendwright_http_request_duration_seconds_count', accepted), 1)
    assert.equal(sumOf(before, 'sendwright_build_info', { database }), 1)
    assert.equal(sumOf(before, 'sendwright_accepting_mail'), 1)
    assert.ok(sumOf(before, 'sendwright_disk_free_bytes') > 0)
    assert.ok(sumOf(before, 'process_resident_memory_bytes') > 0)

    const far = new Date(Date.now() + 3_600_000).toUTCString()
    assert.equal((await send({ 'o:deliverytime': far })).status, 200)
    await eventually('the scheduled one', async () => {
      return sumOf(await scrape(), 'sendwright_queue_deliveries', { state: 'scheduled' }) === 1
    })
    await eventually('a run of a job', async () => {
      return (
        sumOf(await scrape(), 'sendwright_job_last_run_timestamp_seconds', { name: 'link-retention' }) > 0
      )
    })
  })

test('keys that may read the domains of the first account, no others', async (t) => {
  const { call } = await startTestService(t)
  assert.equal((await call('GET', '/metrics', { key: null })).status, 401)
  const made = await call('POST', '/v5/accounts/subaccounts', { form: { name: 'Child' } })
  assert.equal(made.status, 200, made.text)
  const headers = { 'X-Service-On-Behalf-Of': made.body.subaccount.id as string }
  assert.equal((await call('GET', '/metrics', { headers })).status, 403)
  const found = await call('GET', '/metrics')
  assert.equal(found.status, 200)
  assert.match(found.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/)
})

test('the files for Prometheus and Grafana name figures and labels that are there', async (t) => {
  const { call, send } = await startTestService(t)
  assert.equal((await send({})).status, 200)
  const deploy = join(import.meta.dirname, '../../deploy')
  const rules = readFileSync(join(deploy, 'prometheus/alerts.yml'), 'utf8')
  const board = readFileSync(join(deploy, 'grafana/sendwright.json'), 'utf8')
  const { panels } = JSON.parse(board) as { panels: { targets: { expr: string }[] }[] }
  const expressions = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)).join('\n')
  const named = new Set(`${rules}${expressions}`.match(/\b(?:sendwright|process|nodejs)_\w+/g))
  assert.ok(named.size > 12)
  const text = (await call('GET', '/metrics')).text
  const known = new Set(
    [...text.matchAll(/^# TYPE (\w+) (\w+)/gm)].flatMap(([, name = '', type]) =>
      type === 'histogram' ? [`${name}_bucket`, `${name}_count`, `${name}_sum`] : [name],
    ),
  )
  assert.deepEqual(
    [...named].filter((name) => !known.has(name)),
    [],
  )
})
