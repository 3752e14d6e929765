/**
 * `npm run interop -- clickhouse`: the tables of `deploy/clickhouse` in ClickHouse's engine get all events of a service over an HTTP sink, some
 * batches twice. Their counts must equal the metrics of the service, and each query of the board must run.
 * `INTEROP_CHDB` is a folder in which `npm install chdb` ran.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { gunzipSync } from 'node:zlib'
import { post } from '../../support/crash-rig.ts'
import { eventually, ownAddress } from '../../support/service.ts'
import { AUTHORIZATION, type ServiceProcess, startProcess } from '../../support/service-process.ts'
import { temporaryFolder } from '../../support/stores.ts'

const DEPLOY = join(import.meta.dirname, '../../../deploy/clickhouse')
const SINK = '/sendwright/v1/event-sinks/clickhouse'
const INSERT = 'INSERT INTO incoming FORMAT JSONAsString'
const MESSAGES = 300
const METRICS = { accepted: 'accepted_count', delivered: 'delivered_count', failed: 'failed_count' } as const

/** The calls of chdb that are made here. */
interface Engine {
  query(sql: string, format?: string): string
  close(): void
}

export async function runClickHouse(): Promise<void> {
  const home = process.env['INTEROP_CHDB']
  assert.ok(home, 'INTEROP_CHDB is not set: a folder in which `npm install chdb` ran')
  const { Session } = createRequire(join(home, 'package.json'))('chdb') as { Session: new () => Engine }
  const engine = new Session()
  engine.query('CREATE DATABASE mail')
  engine.query('USE mail')
  for (const statement of statementsOf(readFileSync(join(DEPLOY, 'events.sql'), 'utf8')))
    engine.query(statement)
  const host = ownAddress()
  const target = await startTarget(host, engine)
  const folder = await temporaryFolder({ after() {} })
  const service = await startProcess(host, {
    SENDWRIGHT_DATA: folder,
    SENDWRIGHT_SMTP_PORT: '0',
    SENDWRIGHT_DELIVERY: 'capture',
    SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8',
  })
  try {
    await call(service, 'PUT', SINK, {
      kind: 'http',
      gzip: true,
      from: 'oldest',
      url: `${target.url}/?query=${encodeURIComponent(INSERT)}`,
    })
    await call(service, 'PUT', '/sendwright/v1/inbox/faults', [
      { recipient: 'refused*@example.org', stage: 'rcpt', reply: '550 5.1.1 no such user' },
    ])
    for (let from = 0; from < MESSAGES; from += 20)
      await Promise.all(
        Array.from({ length: 20 }, (_, at) => {
          const to = `${at === 0 ? 'refused' : 'user'}${from + at}@example.org`
          const fields = { to, subject: 'Hello', text: 'Hi.', 'o:tag': `t${at % 3}` }
          return post(service, fields)
        }),
      )
    console.log(await compared(service, engine, target.repeated))
  } finally {
    await service.end('SIGTERM')
    await target.close()
    engine.close()
  }
}

/** Takes batches as ClickHouse does. Each third one it takes and then fails, so that it comes again. */
async function startTarget(host: string, engine: Engine) {
  let batches = 0
  let repeated = 0
  const server = createServer(async (request, response) => {
    const sql = new URL(request.url ?? '', 'http://localhost').searchParams.get('query')
    engine.query(`${sql}\n${gunzipSync(await buffer(request))}`)
    const isLost = batches++ % 3 === 0
    if (isLost) repeated++
    response.writeHead(isLost ? 500 : 200).end()
  })
  await once(server.listen(0, host), 'listening')
  const address = server.address()
  assert.ok(address !== null && typeof address === 'object')
  return {
    url: `http://${host}:${address.port}`,
    repeated: () => repeated,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

async function compared(service: ServiceProcess, engine: Engine, repeated: () => number): Promise<string> {
  const failedOnes = MESSAGES / 20
  const counts = (sql: string): Record<string, number> =>
    Object.fromEntries(rowsOf(engine.query(sql, 'JSONEachRow')).map(({ event, n }) => [event, Number(n)]))
  const byHours = () => counts('SELECT event, uniqExactMerge(events) AS n FROM hours GROUP BY event')
  const all = { accepted: MESSAGES, delivered: MESSAGES - failedOnes, failed: failedOnes }
  await eventually('all events are there', async () => {
    const found = byHours()
    return Object.entries(all).every(([event, count]) => found[event] === count)
  })
  await eventually('the sink has sent all', async () => {
    const { behind_seconds, failing_since, sent } = await call(service, 'GET', SINK)
    return behind_seconds === 0 && failing_since === null && sent >= 2 * MESSAGES
  })
  assert.deepEqual(counts('SELECT event, count() AS n FROM events FINAL GROUP BY event'), byHours())
  const names = Object.values(METRICS)
  await eventually('metrics have them', async () => {
    const { aggregates } = await call(service, 'POST', '/v1/analytics/metrics', {
      ...{ duration: '1d', resolution: 'hour', metrics: names, include_aggregates: true },
    })
    const figures = aggregates.metrics as Record<string, number>
    return Object.entries(METRICS).every(([event, name]) => figures[name] === byHours()[event])
  })
  const queries = boardQueries()
  for (const sql of queries) {
    const rows = rowsOf(engine.query(sql, 'JSONEachRow'))
    assert.ok(rows.length > 0, `no rows: ${sql}`)
  }
  const rows = Number(rowsOf(engine.query('SELECT count() AS n FROM events', 'JSONEachRow'))[0]?.['n'])
  return `clickhouse: ${JSON.stringify(byHours())} as the metrics say, ${repeated()} batches came twice (${rows} rows unmerged), ${queries.length} queries of the board run`
}

/** With what Grafana puts in the place of its variables. */
function boardQueries(): string[] {
  const board = JSON.parse(readFileSync(join(DEPLOY, 'board.json'), 'utf8'))
  const texts: string[] = [
    ...board.templating.list.map(({ query }: { query: string }) => query),
    ...board.panels.flatMap(({ targets }: { targets: { rawSql: string }[] }) =>
      targets.map(({ rawSql }) => rawSql),
    ),
  ]
  return texts.map((sql) =>
    sql
      .replaceAll(/\$__timeFilter\((\w+)\)/g, '$1 >= now() - INTERVAL 7 DAY')
      .replaceAll(/\$\{domain:singlequote\}/g, 'SELECT domain FROM hours'),
  )
}

const statementsOf = (sql: string) =>
  sql
    .split(';\n')
    .map((statement) => statement.trim())
    .filter((statement) => statement !== '')

const rowsOf = (text: string): Record<string, string>[] =>
  text
    .trim()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))

// biome-ignore lint/suspicious/noExplicitAny: answers of several operations
async function call(service: ServiceProcess, method: string, path: string, json?: object): Promise<any> {
  const answer = await fetch(service.url + path, {
    method,
    headers: { authorization: AUTHORIZATION, 'content-type': 'application/json' },
    ...(json && { body: JSON.stringify(json) }),
  })
  const text = await answer.text()
  assert.equal(answer.status, 200, text)
  return JSON.parse(text)
}
