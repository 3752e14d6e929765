import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { eachDatabase } from '../../../test/support/databases.ts'
import { eventually, startTestService } from '../../../test/support/service.ts'
import { temporaryFolder } from '../../../test/support/stores.ts'
import { selfSignedCertificate } from '../../base/net/certificate.ts'

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

test('docs/api/own-operations.md names the metrics that are served', async (t) => {
  const { call } = await startTestService(t)
  const { text } = await call('GET', '/metrics')
  const served = [...text.matchAll(/^# TYPE (sendwright_\w+) /gm)].map(([, name]) => name as string)
  const page = readFileSync(join(import.meta.dirname, '../../../docs/api/own-operations.md'), 'utf8')
  const documented = new Set([...page.matchAll(/`(sendwright_\w+)`/g)].map(([, name]) => name as string))
  const missing = served.filter((name) => !documented.has(name))
  const gone = [...documented].filter((name) => !served.includes(name) && !ON_DEMAND.includes(name))
  assert.deepEqual({ missing, gone }, { missing: [], gone: [] })
})

/** Served only where there is something to count: with traces, relays, a check of content. */
const ON_DEMAND = [
  'sendwright_trace_spans_total',
  'sendwright_relay_open',
  'sendwright_relay_messages_total',
  'sendwright_content_checks_total',
  'sendwright_scanner_answers_total',
]

eachDatabase((database) =>
  test('figures of mail, requests, queue and jobs', async (t) => {
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
    // Such names are for counters.
    assert.doesNotMatch((await call('GET', '/metrics')).text, /^# TYPE \w+_total (?!counter$)/m)
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
  }),
)

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

const DEPLOY = join(import.meta.dirname, '../../../deploy')
const FIGURE = /\b((?:sendwright|process|nodejs)_\w+)(?:\{([^}]*)\})?/g
/** Added by Prometheus when it scrapes. */
const SCRAPED = ['job', 'instance']

interface Rule {
  alert: string
  expr: string
  severity: string
  texts: string
}

/** The rules, read by the form that the file has; a line that has another one fails. */
function rulesOf(text: string): Rule[] {
  const [head = '', ...parts] = text.split(/^ {6}- alert: /m)
  assert.match(head, /^(?:#.*\n)*groups:\n {2}- name: sendwright\n {4}rules:\n$/)
  return parts.map((part) => {
    const found =
      /^(\w+)\n {8}expr: (?:\|\n((?: {10}.+\n)+)|(.+)\n)(?: {8}for: \d+[mh]\n)? {8}labels: \{ severity: (critical|warning) \}\n {8}annotations:\n {10}summary: (.+)\n {10}description: (.+)\n$/.exec(
        part,
      )
    assert.ok(found, `a rule of another form: ${part}`)
    const [, alert = '', long, short, severity = '', summary, description] = found
    return { alert, expr: long ?? short ?? '', severity, texts: `${summary} ${description}` }
  })
}

/** Labels that an expression selects or groups by, for each figure that it names. */
function usedLabels(expr: string): [figure: string, labels: string[]][] {
  const grouped = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = '']) => list.split(/,\s*/))
  return [...expr.matchAll(FIGURE)].map(([, figure = '', selector = '']) => {
    const selected = [...selector.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)].map(([, label = '']) => label)
    return [figure, [...selected, ...grouped]]
  })
}

test('the files for Prometheus and Grafana name figures and labels that are there', async (t) => {
  const folder = await temporaryFolder(t)
  const to = new Date(Date.now() + 5 * 86_400_000)
  const { cert, key } = selfSignedCertificate(['mail.test.example'], { from: new Date(0), to })
  await writeFile(join(folder, 'a.crt'), cert)
  await writeFile(join(folder, 'a.key'), key)
  // An alert and a POST that waits: without them those figures have no series.
  const { call, send, domain } = await startTestService(t, {
    SENDWRIGHT_TLS_CERT: join(folder, 'a.crt'),
    SENDWRIGHT_TLS_KEY: join(folder, 'a.key'),
    SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8',
  })
  const hook = { id: 'accepted', url: 'http://127.0.0.1:9/' }
  assert.equal((await call('POST', `/v3/domains/${domain}/webhooks`, { form: hook })).status, 200)
  const known = new Map<string, Set<string>>()
  const series = await eventually('every figure has a series', async () => {
    // The lane of a message is gone soon after it: what was seen once counts.
    assert.equal((await send({})).status, 200)
    const { text } = await call('GET', '/metrics')
    for (const [, name = '', labels = ''] of text.matchAll(/^(\w+)(?:\{(.*)\})? \S+$/gm)) {
      const names = [...labels.matchAll(/(\w+)="/g)].map(([, label = '']) => label)
      known.set(name, new Set([...(known.get(name) ?? []), ...names]))
    }
    return (
      [
        'alerts_active',
        'posts_waiting',
        'job_failed',
        'lane_connections',
        'smtp_attempt_duration_seconds_bucket',
      ].every((name) => known.get(`sendwright_${name}`)?.size) && known
    )
  })

  const rules = rulesOf(readFileSync(join(DEPLOY, 'prometheus/alerts.yml'), 'utf8'))
  const board = JSON.parse(readFileSync(join(DEPLOY, 'grafana/sendwright.json'), 'utf8')) as {
    panels: { id: number; targets: { expr: string; legendFormat?: string }[] }[]
  }
  assert.equal(new Set(board.panels.map(({ id }) => id)).size, board.panels.length)
  assert.equal(new Set(rules.map(({ alert }) => alert)).size, rules.length)
  const shown = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([, label = '']) => label)
  const uses = [
    ...rules.map(({ expr, texts }) => ({ expr, named: shown(texts, /\{\{ \$labels\.(\w+)/g) })),
    ...board.panels.flatMap(({ targets }) =>
      targets.map(({ expr, legendFormat = '' }) => ({ expr, named: shown(legendFormat, /\{\{\s*(\w+)/g) })),
    ),
  ]
  assert.ok(uses.length > 20)
  for (const { expr, named } of uses) {
    assert.equal(expr.split('(').length, expr.split(')').length, expr)
    for (const [figure, labels] of usedLabels(expr)) {
      const known = series.get(figure)
      assert.ok(known, `${figure} of ${expr}`)
      for (const label of [...labels, ...named])
        assert.ok(known.has(label) || SCRAPED.includes(label), `${label} of ${figure} in ${expr}`)
    }
  }
})
