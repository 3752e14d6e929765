/**
 * A stand-in for the service: the routes of the public HTTP API that the dashboard uses, over mail in memory,
 * and the built dashboard under the policy it has to live with. For development and for the browser tests.
 */
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join, normalize } from 'node:path'
import { rightsOf } from '../../src/platform/http/rights/rights.ts'
import type { InboxItem, MailEvent } from '../src/api.ts'
import type { Session } from '../src/session.ts'
import { DOMAIN, type StoredMail } from './sample-mail.ts'

const ACCOUNT_ID = 'a'.repeat(24)
/** An admin of the first account. */
const SESSION: Session = {
  kind: 'session',
  role: 'admin',
  rights: rightsOf('admin'),
  user_id: null,
  user: null,
  account: { id: ACCOUNT_ID, name: 'Default', parent_id: null, is_first: true, strict_parameters: false },
  acting_account_id: ACCOUNT_ID,
}

export const API_KEY = 'key-of-the-fake-service'

/** What the dashboard needs at most. Remote images are let through here and held back in the frame. */
const PAGE_POLICY = [
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'",
  "img-src 'self' data: https: http:; frame-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
].join('; ')

const TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
}

export interface FakeApi {
  origin: string
  mails: StoredMail[]
  /** Method and path of every API request so far. */
  requests: string[]
  signedIn: boolean
  /** With false the stream of arrivals is refused, and open streams are cut. */
  streaming: boolean
  deliver(mail: StoredMail): void
  cutStreams(): void
  close(): Promise<void>
}

export async function startFakeApi(dashboardFolder: string, port = 0): Promise<FakeApi> {
  const streams = new Set<ServerResponse>()
  const server = createServer((request, response) => {
    handle(request, response).catch((error: unknown) => response.destroy(error as Error))
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  const api: FakeApi = {
    origin,
    mails: [],
    requests: [],
    signedIn: true,
    streaming: true,
    deliver(mail) {
      api.mails.unshift(mail)
      for (const stream of streams) stream.write(`event: arrival\ndata: ${JSON.stringify(itemOf(mail))}\n\n`)
    },
    cutStreams() {
      for (const stream of streams) stream.destroy()
    },
    async close() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }

  async function handle(request: IncomingMessage, response: ServerResponse) {
    const url = new URL(request.url ?? '/', origin)
    if (!/^\/(sendwright|v[1-5])\//.test(url.pathname)) return serveFile(url.pathname, response)
    const route = `${request.method} ${url.pathname}`
    api.requests.push(route)
    if (route === 'POST /sendwright/v1/session') return startSession(await bodyOf(request), response)
    if (route === 'GET /sendwright/v1/sign-in-methods') return json(response, 200, { oidc: null })
    if (!api.signedIn) return refuse(request, response)
    if (route === 'DELETE /sendwright/v1/session') {
      api.signedIn = false
      return json(response, 200, { message: 'Signed out' })
    }
    if (route === 'GET /sendwright/v1/inbox/stream') return openStream(response)
    return answer(route, url, response)
  }

  function startSession(body: string, response: ServerResponse) {
    api.signedIn = (JSON.parse(body) as { key: string }).key === API_KEY
    if (api.signedIn) json(response, 200, { message: 'Signed in' })
    else json(response, 401, { message: 'Invalid private key' })
  }

  function openStream(response: ServerResponse) {
    if (!api.streaming) return json(response, 503, { message: 'Not now' })
    response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' })
    response.write(': open\n\n')
    streams.add(response)
    response.on('close', () => streams.delete(response))
  }

  function answer(route: string, url: URL, response: ServerResponse) {
    if (route === 'GET /sendwright/v1/system')
      return json(response, 200, { version: '0.1.0', mode: 'capture' })
    if (route === 'GET /sendwright/v1/session') return json(response, 200, SESSION)
    if (route === 'GET /v5/accounts/subaccounts') return json(response, 200, { subaccounts: [], total: 0 })
    if (route === 'GET /v4/domains') return json(response, 200, { total_count: 1, items: [SANDBOX] })
    if (route === `GET /v3/${DOMAIN}/events`) return json(response, 200, eventsPage(url))
    if (route === 'GET /sendwright/v1/inbox') return json(response, 200, inboxPage(url))
    if (route === 'DELETE /sendwright/v1/inbox') {
      api.mails = []
      return json(response, 200, { message: 'All captured messages have been deleted' })
    }
    return answerForOne(route, response)
  }

  function answerForOne(route: string, response: ServerResponse) {
    const [, method, id, rest = ''] = /^(\w+) \/sendwright\/v1\/inbox\/([^/]+)(\/.*)?$/.exec(route) ?? []
    const mail = api.mails.find(({ message }) => message.id === id)
    if (mail === undefined) return json(response, 404, { message: 'Not Found' })
    if (method === 'DELETE') {
      api.mails = api.mails.filter((other) => other !== mail)
      return json(response, 200, { message: 'Captured message has been deleted' })
    }
    if (rest === '') return json(response, 200, mail.message)
    const bytes = rest === '/raw' ? Buffer.from(mail.raw) : mail.parts.get(Number(rest.split('/').at(-1)))
    response.writeHead(200, {
      'Content-Type': 'application/octet-stream',
      'Content-Disposition': 'attachment',
    })
    response.end(bytes)
  }

  function inboxPage(url: URL) {
    const limit = Number(url.searchParams.get('limit') ?? 100)
    const found = api.mails.map(itemOf).filter((item) => matches(item, url.searchParams))
    const from = url.searchParams.get('page') ?? ''
    const start = from === '' ? 0 : found.findIndex((item) => item.id === from) + 1
    const items = found.slice(start, start + limit)
    const link = (page: string) => {
      const query = new URLSearchParams(url.searchParams)
      query.set('page', page)
      return `http://mail.invalid${url.pathname}?${query}` // the public address, not the one in use
    }
    const paging = {
      first: link(''),
      last: link(''),
      previous: link(''),
      next: link(items.at(-1)?.id ?? from),
    }
    return { items, paging }
  }

  function eventsPage(url: URL) {
    const mail = api.mails.find(({ message }) => message.message_id === url.searchParams.get('message-id'))
    return { items: mail === undefined ? [] : eventsOf(mail), paging: {} }
  }

  async function serveFile(path: string, response: ServerResponse) {
    const name = extname(path) === '' ? '/index.html' : normalize(path)
    const bytes = await readFile(join(dashboardFolder, name)).catch(() => undefined)
    response.writeHead(bytes === undefined ? 404 : 200, {
      'Content-Type': TYPES[extname(name)] ?? 'application/octet-stream',
      'Content-Security-Policy': PAGE_POLICY,
      'X-Content-Type-Options': 'nosniff',
      'Referrer-Policy': 'same-origin',
    })
    response.end(bytes)
  }

  return api
}

const SANDBOX = { name: DOMAIN, state: 'active', type: 'sandbox', is_disabled: false }

function itemOf({ message }: StoredMail): InboxItem {
  const { id, received_at, envelope, from, to, subject, size, tags, delivery_id } = message
  return { id, received_at, envelope, from, to, subject, size, tags, delivery_id }
}

function matches(item: InboxItem, query: URLSearchParams): boolean {
  const has = (text: string, name: string) =>
    text.toLowerCase().includes((query.get(name) ?? '').toLowerCase())
  const everything = `${item.from} ${item.to} ${item.subject}`
  return (
    has(everything, 'q') &&
    has(item.to, 'to') &&
    has(item.from, 'from') &&
    has(item.subject, 'subject') &&
    has(item.from, 'domain')
  )
}

/** Newest first, as the events operation answers; with a copy for somebody else on the same message. */
function eventsOf({ message }: StoredMail): MailEvent[] {
  const at = Date.parse(message.received_at) / 1000
  const recipient = message.envelope.to[0] ?? ''
  return [
    {
      event: 'delivered',
      id: `${message.id}-d`,
      timestamp: at,
      'log-level': 'info',
      recipient,
      'delivery-status': {
        code: 250,
        message: '2.0.0 captured <img src=x onerror="window.top.pwned=1">',
        description: '',
        'attempt-no': 2,
        'mx-host': 'localhost',
        'session-seconds': 0.012,
        tls: true,
      },
    },
    {
      event: 'failed',
      severity: 'temporary',
      reason: 'greylisted',
      id: `${message.id}-f`,
      timestamp: at - 600,
      'log-level': 'warn',
      recipient,
      'delivery-status': {
        code: 450,
        message: '4.2.0 greylisted, try later',
        description: '',
        'attempt-no': 1,
        'retry-seconds': 600,
        tls: true,
      },
    },
    {
      event: 'accepted',
      id: `${message.id}-a`,
      timestamp: at - 601,
      'log-level': 'info',
      recipient,
      method: 'http',
    },
    {
      event: 'accepted',
      id: `${message.id}-o`,
      timestamp: at - 601,
      'log-level': 'info',
      recipient: 'somebody-else@example.org',
    },
  ]
}

/** As the service: no challenge for a page, which would make the browser put up its password window. */
function refuse(request: IncomingMessage, response: ServerResponse) {
  if (request.headers['x-requested-with'] === undefined)
    response.setHeader('WWW-Authenticate', 'Basic realm="API"')
  json(response, 401, { message: 'Invalid private key' })
}

function json(response: ServerResponse, status: number, body: object) {
  response.writeHead(status, {
    'Content-Type': 'application/json; charset=utf-8',
    'Cache-Control': 'no-store',
  })
  response.end(JSON.stringify(body))
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request) text += chunk
  return text
}
