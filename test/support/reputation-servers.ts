/**
 * Fake servers of Gmail Postmaster Tools (API version 2, with its token server) and of Microsoft SNDS (automated data access):
 * documented answers, errors and quotas, over real HTTP on 127.0.0.1. Requests that the documentation forbids are refused.
 */
import type { ServerResponse } from 'node:http'
import type { TestContext } from 'node:test'
import { createReceiver, type ReceivedPost } from './http-receiver.ts'

export const DAY_MS = 86_400_000

export const dateText = (day: number) => new Date(day).toISOString().slice(0, 10)

interface GoogleDay {
  spam?: number
  /** By feedback loop. */
  loops?: Record<string, number>
  /** By `type reason`. */
  errors?: Record<string, number>
}

interface GoogleDomain {
  /** By date, `2026-11-26`. */
  days: Record<string, GoogleDay>
  compliance?: Record<string, 'COMPLIANT' | 'NEEDS_WORK'>
  verificationState?: string
  permission?: string
  /** Status of all requests about it. */
  status?: number
}

export type GoogleServer = Awaited<ReturnType<typeof startGoogle>>

const STATUS_WORDS: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  503: 'UNAVAILABLE',
}

export async function startGoogle(t: Pick<TestContext, 'after'>) {
  const receiver = await createReceiver()
  t.after(() => receiver.close())
  const server = {
    tokenUrl: `${receiver.url}/token`,
    apiUrl: receiver.url,
    domains: {} as Record<string, GoogleDomain>,
    /** Requests of the API that are answered before the quota is used up. */
    quota: Number.POSITIVE_INFINITY,
    retryAfter: '120',
    /** Response to all requests of the API. */
    fault: null as { status: number; body?: string } | null,
    tokenFault: null as { status: number; body: object } | null,
    /** Paths of the API that were asked for, with the range of days of queries. */
    asked: [] as string[],
    tokens: [] as URLSearchParams[],
  }

  function fail(response: ServerResponse, status: number, message: string): void {
    response
      .writeHead(status, {
        'content-type': 'application/json',
        ...(status === 429 && { 'retry-after': server.retryAfter }),
      })
      .end(JSON.stringify({ error: { code: status, message, status: STATUS_WORDS[status] } }))
  }

  const ok = (response: ServerResponse, value: object) => void response.end(JSON.stringify(value))

  function token(response: ServerResponse, { raw }: ReceivedPost): void {
    server.tokens.push(new URLSearchParams(raw.toString()))
    if (server.tokenFault) {
      response.writeHead(server.tokenFault.status).end(JSON.stringify(server.tokenFault.body))
      return
    }
    ok(response, { access_token: 'google-access', token_type: 'Bearer', expires_in: 3_599 })
  }

  function domainList(response: ServerResponse, url: URL) {
    const names = Object.keys(server.domains)
    const size = Number(url.searchParams.get('pageSize') ?? 10)
    const at = Number(url.searchParams.get('pageToken') ?? 0)
    if (size > 200) return fail(response, 400, 'pageSize is too large')
    const domains = names.slice(at, at + size).map((name) => ({
      name: `domains/${name}`,
      createTime: '2026-01-01T00:00:00Z',
      permission: server.domains[name]?.permission ?? 'OWNER',
      verificationState: server.domains[name]?.verificationState ?? 'VERIFIED',
    }))
    ok(response, { domains, ...(at + size < names.length && { nextPageToken: String(at + size) }) })
  }

  function query(response: ServerResponse, name: string, domain: GoogleDomain, { body }: ReceivedPost) {
    const {
      metricDefinitions = [],
      timeQuery,
      pageSize = 10,
      pageToken = '0',
      aggregationGranularity,
    } = body ?? {}
    const [range] = timeQuery?.dateRanges?.dateRanges ?? []
    if (metricDefinitions.length === 0 || !range || pageSize > 200 || aggregationGranularity !== 'DAILY')
      return fail(response, 400, 'Request contains an invalid argument.')
    const [from, to] = [range.start, range.end].map(({ year, month, day }) =>
      dateText(Date.UTC(year, month - 1, day)),
    )
    server.asked.push(`query ${name} ${from} ${to}`)
    const stats = Object.entries(domain.days)
      .filter(([date]) => date >= (from as string) && date <= (to as string))
      .flatMap(([date, day]) =>
        metricDefinitions.flatMap((definition: Definition) => {
          const value = valueFor(definition, day)
          return value === null
            ? []
            : [{ name: 'domains/x/domainStats/y', metric: definition.name, date: partsOf(date), value }]
        }),
      )
    const at = Number(pageToken)
    const more = at + pageSize < stats.length
    ok(response, {
      domainStats: stats.slice(at, at + pageSize),
      ...(more && { nextPageToken: String(at + pageSize) }),
    })
  }

  function compliance(response: ServerResponse, name: string, { compliance: rows = {} }: GoogleDomain): void {
    const rowData = Object.entries(rows).map(([requirement, status]) => ({ requirement, status: { status } }))
    ok(response, { name: `domains/${name}/complianceStatus`, complianceData: { domainId: name, rowData } })
  }

  receiver.answer = (response, post) => {
    const url = new URL(post.path, receiver.url)
    if (url.pathname === '/token') return token(response, post)
    server.asked.push(`${post.method} ${url.pathname}`)
    if (post.headers.authorization !== 'Bearer google-access')
      return fail(response, 401, 'Request had invalid authentication credentials.')
    if (server.fault) {
      const { status, body } = server.fault
      if (body === undefined) return fail(response, status, 'Something is wrong.')
      response.writeHead(status).end(body)
      return
    }
    if (server.quota-- <= 0) return fail(response, 429, "Quota exceeded for quota metric 'Queries'.")
    if (url.pathname === '/v2/domains') return domainList(response, url)
    const [, name = '', rest] = /^\/v2\/domains\/([^/]+)\/(.+)$/.exec(url.pathname) ?? []
    const domain = server.domains[name]
    if (!domain) return fail(response, 404, 'Requested entity was not found.')
    if (domain.status !== undefined)
      return fail(response, domain.status, 'The caller does not have permission')
    if (rest === 'domainStats:query' && post.method === 'POST') return query(response, name, domain, post)
    if (rest === 'complianceStatus') return compliance(response, name, domain)
    fail(response, 404, 'Not found')
  }
  return server
}

interface Definition {
  name: string
  baseMetric: { standardMetric: string }
  filter?: string
}

/** The value of a metric on a day; null: Google leaves it out. */
function valueFor(
  { baseMetric: { standardMetric }, filter = '' }: Definition,
  day: GoogleDay,
): object | null {
  const { spam, loops = {}, errors = {} } = day
  const quoted = [...filter.matchAll(/"([^"]*)"/g)].map(([, text]) => text as string)
  const number = (value: number | undefined) => (value === undefined ? null : { doubleValue: value })
  switch (standardMetric) {
    case 'SPAM_RATE':
      return number(spam)
    case 'AUTH_SUCCESS_RATE':
      return ['spf', 'dkim', 'dmarc'].includes(quoted[0] ?? '') ? number(1) : null
    case 'TLS_ENCRYPTION_RATE':
      return quoted[0] === 'inbound' ? number(0.98) : null
    case 'DELIVERY_ERROR_RATE':
      return number(filter === '' ? 0.01 : (errors[quoted.join(' ')] ?? 0))
    case 'FEEDBACK_LOOP_ID':
      return Object.keys(loops).length === 0 ? null : { stringList: { values: Object.keys(loops) } }
    case 'FEEDBACK_LOOP_SPAM_RATE':
      return number(loops[quoted[0] ?? ''])
    default:
      return null
  }
}

function partsOf(date: string) {
  const [year, month, day] = date.split('-').map(Number)
  return { year, month, day }
}

export const googleBody = ({ tokenUrl, apiUrl }: GoogleServer) => ({
  ...{ grant: 'refresh_token', client_id: 'client', client_secret: 'planted-google-secret' },
  ...{ refresh_token: 'planted-google-refresh', token_url: tokenUrl, api_url: apiUrl },
})

interface SndsLine {
  ip: string
  recipients?: number
  filter?: 'GREEN' | 'YELLOW' | 'RED'
  complaints?: string
  traps?: number
}

export type SndsServer = Awaited<ReturnType<typeof startSnds>>

export const SNDS_KEY = 'planted-snds-key'

export async function startSnds(t: Pick<TestContext, 'after'>) {
  const receiver = await createReceiver()
  t.after(() => receiver.close())
  const server = {
    url: `${receiver.url}/snds`,
    /** By date, `2026-11-26`. */
    days: {} as Record<string, SndsLine[]>,
    /** Lines of ipStatus.aspx. */
    states: [] as string[],
    fault: null as { status: number; body?: string; type?: string } | null,
    /** Dates whose data were asked for, and `status`. */
    asked: [] as string[],
  }
  receiver.answer = (response, { path, method }) => {
    const url = new URL(path, receiver.url)
    const date = url.searchParams.get('date') ?? ''
    const isState = url.pathname === '/snds/ipStatus.aspx'
    const [, month, day, year] = /^(\d\d)(\d\d)(\d\d)$/.exec(date) ?? []
    const shown = `20${year}-${month}-${day}`
    server.asked.push(isState ? 'status' : shown)
    const reply = (status: number, text: string, type = 'text/csv') =>
      void response.writeHead(status, { 'content-type': type }).end(text)
    if (server.fault) return reply(server.fault.status, server.fault.body ?? '', server.fault.type)
    if (method !== 'GET' || url.searchParams.get('key') !== SNDS_KEY)
      return reply(403, 'Forbidden', 'text/html')
    if (isState) return reply(200, server.states.map((line) => `${line}\r\n`).join(''))
    if (url.pathname !== '/snds/data.aspx' || year === undefined) return reply(404, '')
    reply(200, (server.days[shown] ?? []).map((line) => sndsLine(shown, line)).join(''))
  }
  return server
}

function sndsLine(
  date: string,
  { ip, recipients = 1_000, filter = 'GREEN', complaints = '< 0.1%', traps = 0 }: SndsLine,
) {
  const [year, month, day] = date.split('-').map(Number)
  const at = (time: string) => `${month}/${day}/${year} ${time}`
  const period = traps === 0 ? ['', ''] : [at('1:00 PM'), at('2:00 PM')]
  const fields = [
    ...[ip, at('10:00 AM'), at('7:00 PM'), recipients + 1, recipients, recipients, filter, complaints],
    ...[...period, traps, 'mail.sender.example', 'planted@other-tenant.example', ''],
  ]
  return `${fields.join(',')}\r\n`
}
