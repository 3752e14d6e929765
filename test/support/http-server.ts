/** For the tests of this folder: a listening server, callers of every role, a manual clock, plain requests. */

import { EventEmitter } from 'node:events'
import { createWriteStream } from 'node:fs'
import { mkdtemp, open, readdir, rm } from 'node:fs/promises'
import { createConnection } from 'node:net'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { pino } from 'pino'
import { createByteBudget } from '../../src/base/flow/byte-budget.ts'
import { anyJson } from '../../src/base/shape.ts'
import type { Clock } from '../../src/base/time/clock.ts'
import { systemClock } from '../../src/base/time/clock.ts'
import { createFailedAttempts } from '../../src/platform/http/limits/failed-attempts.ts'
import { createRateLimiter } from '../../src/platform/http/limits/rate-limit.ts'
import { type Operation, operation } from '../../src/platform/http/operation.ts'
import { filesParam } from '../../src/platform/http/request/inputs.ts'
import type { FileSpool } from '../../src/platform/http/request/uploads.ts'
import type { Authenticator, Caller } from '../../src/platform/http/rights/auth.ts'
import type { Role } from '../../src/platform/http/rights/rights.ts'
import { createHttpServer, type HttpServer, type HttpServerOptions } from '../../src/platform/http/server.ts'

/** Stands still until advanced; timers fire in order of their time. */
export class ManualClock implements Clock {
  private ms: number
  private readonly timers = new Set<{ atMs: number; run: () => void }>()

  constructor(startMs = Date.UTC(2026, 5, 1, 12)) {
    this.ms = startMs
  }

  now(): number {
    return this.ms
  }

  monotonic(): number {
    return this.ms
  }

  setTimer(delayMs: number, run: () => void): { cancel: () => void } {
    const timer = { atMs: this.ms + delayMs, run }
    this.timers.add(timer)
    return { cancel: () => this.timers.delete(timer) }
  }

  get waiting(): number {
    return this.timers.size
  }

  advance(byMs: number): void {
    const untilMs = this.ms + byMs
    for (;;) {
      const due = [...this.timers].filter(({ atMs }) => atMs <= untilMs).sort((a, b) => a.atMs - b.atMs)[0]
      if (due === undefined) break
      this.timers.delete(due)
      this.ms = due.atMs
      due.run()
    }
    this.ms = untilMs
  }
}

/** Keys are the role's name; `sending` is a domain key for example.com, `pubkey` the public one. */
export class TestAuthenticator implements Authenticator {
  readonly blocked = new Set<string>()

  async key(secret: string): Promise<Caller | null> {
    const base = { accountId: 'acc-1', keyId: `id-${secret}` }
    if (secret === 'sending') return { ...base, role: 'sending', kind: 'domain', domain: 'example.com' }
    if (secret === 'pubkey') return { ...base, role: 'basic', kind: 'public' }
    const roles: readonly string[] = ['admin', 'developer', 'support', 'basic', 'billing']
    return roles.includes(secret) ? { ...base, role: secret as Role, kind: 'user' } : null
  }

  async session(cookie: string): Promise<Caller | null> {
    if (cookie !== 'good') return null
    return { accountId: 'acc-1', keyId: 'web-1', role: 'admin', kind: 'session' }
  }

  async subaccount(caller: Caller, id: string): Promise<Caller | null> {
    return id === 'child' ? { ...caller, accountId: 'child', parentAccountId: caller.accountId } : null
  }

  async addressAllowed(caller: Caller): Promise<boolean> {
    return !this.blocked.has(caller.keyId)
  }
}

/** Spools into a fresh temporary folder. */
export class TestSpool implements FileSpool {
  /** `started`: the first bytes of a file are here; `removed`: a file is gone again. */
  readonly events = new EventEmitter()
  private count = 0
  private made: Promise<string> | undefined
  /** Highest resident memory seen while writing, for the test of flat memory. */
  rssPeakBytes = 0

  async spool(bytes: AsyncIterable<Uint8Array>) {
    this.count += 1
    const name = String(this.count)
    const path = join(await this.folder(), name)
    let sizeBytes = 0
    const counted = async function* (spool: TestSpool) {
      for await (const chunk of bytes) {
        if (sizeBytes === 0) spool.events.emit('started')
        sizeBytes += chunk.byteLength
        spool.rssPeakBytes = Math.max(spool.rssPeakBytes, process.memoryUsage.rss())
        yield chunk
      }
    }
    const discard = async () => {
      await rm(path, { force: true })
      this.events.emit('removed')
    }
    try {
      await pipeline(Readable.from(counted(this)), createWriteStream(path))
    } catch (error) {
      await discard()
      throw error
    }
    return { chunk: { sizeBytes, open: () => readFileChunks(path) }, discard }
  }

  private folder(): Promise<string> {
    this.made ??= mkdtemp(join(tmpdir(), 'spool-'))
    return this.made
  }

  async files(): Promise<string[]> {
    return readdir(await this.folder())
  }

  async remove(): Promise<void> {
    await rm(await this.folder(), { recursive: true })
  }
}

async function* readFileChunks(path: string): AsyncGenerator<Uint8Array> {
  const file = await open(path)
  for await (const chunk of file.createReadStream()) yield chunk as Buffer
}

export interface TestServer extends AsyncDisposable {
  url: string
  port: number
  tlsPort: number | undefined
  server: HttpServer
  spool: TestSpool
  authenticator: TestAuthenticator
  /** Log lines as objects. */
  lines: Array<Record<string, unknown>>
  fetch(path: string, init?: RequestInit & { key?: string }): Promise<Response>
  /** Writes bytes as they are and resolves with everything received until the end. */
  raw(bytes: string): Promise<string>
}

export async function startServer(
  operations: readonly Operation[],
  options: Partial<HttpServerOptions> = {},
): Promise<TestServer> {
  const lines: Array<Record<string, unknown>> = []
  const sink = { write: (line: string) => void lines.push(JSON.parse(line)) }
  const spool = new TestSpool()
  const authenticator = new TestAuthenticator()
  const clock = options.clock ?? systemClock
  const server = createHttpServer({
    host: '127.0.0.1',
    port: 0,
    logger: pino({ level: 'trace' }, sink),
    clock,
    tls: null,
    dataFolder: null,
    thread: availableParallelism() > 1,
    deadlines: {},
    connectionsPerClientMax: Number.POSITIVE_INFINITY,
    trustedProxies: [],
    balancers: [],
    baseUrl: 'https://mail.example.net',
    otherBaseUrls: [],
    corsOrigins: [],
    headerPrefix: 'X-Service-',
    headerPrefixAliases: ['X-Mailgun-'],
    authRealm: 'API',
    authenticator,
    failedAttempts: createFailedAttempts(clock),
    limiter: createRateLimiter({ clock, off: true }),
    spool,
    idempotency: { run: (_call, act) => act({ statements: () => [] }), sweep: async () => {} },
    largeBodies: createByteBudget(Number.POSITIVE_INFINITY, clock),
    audit: { open: async () => async () => {} },
    requestLog: { wants: () => false, note() {} },
    firstAccountId: 'first',
    applied: async () => {},
    tracing: undefined,
    isStrict: () => false,
    pages: new Map(),
    pagesPrefixes: [],
    strictTransport: async () => null,
    httpsOrigin: () => null,
    httpsOnly: false,
    isReady: async () => ({ ready: true }),
    observe() {},
    ...options,
  })
  server.register(operations)
  const { port, tlsPort } = await server.listen()
  const url = `http://127.0.0.1:${port}`
  return {
    url,
    port,
    tlsPort,
    server,
    spool,
    authenticator,
    lines,
    fetch: (path, { key = 'admin', headers, ...init } = {}) => {
      const merged = new Headers(headers)
      if (key !== '' && !merged.has('authorization')) merged.set('authorization', basic(key))
      return fetch(url + path, { redirect: 'manual', ...init, headers: merged })
    },
    raw: (bytes) => rawRequest(port, bytes),
    async [Symbol.asyncDispose]() {
      await server.close()
      await spool.remove()
    },
  }
}

export const basic = (key: string, user = 'api') =>
  `Basic ${Buffer.from(`${user}:${key}`).toString('base64')}`

function rawRequest(port: number, bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = createConnection({ host: '127.0.0.1', port }, () => socket.write(bytes))
    let text = ''
    socket.setEncoding('utf8')
    socket.on('data', (chunk) => {
      text += chunk
    })
    socket.on('end', () => resolve(text))
    socket.on('error', reject)
  })
}

/** Answers with its parameters. */
export const echo = operation({
  method: 'POST',
  path: '/v3/{domain_name}/echo',
  id: 'echo',
  tag: 'Test',
  summary: 'Answers with its parameters',
  auth: { area: 'domains', access: 'write' },
  bodyLimit: { bytes: 1024 * 1024, message: 'request size exceeds 1MiB limit' },
  params: { attachment: filesParam('Any files') },
  answers: { 200: anyJson('The parameters') },
  handler: async ({ params, path, caller, remoteAddress, isSecure }) => ({
    domain: path.domain_name,
    account: caller.accountId,
    remoteAddress,
    isSecure,
    values: Object.fromEntries(params.names().map((name) => [name, params.texts(name)])),
    files: params.files('attachment').map(({ filename, contentType, chunk }) => ({
      filename,
      contentType,
      size: chunk instanceof Uint8Array ? chunk.byteLength : chunk.sizeBytes,
    })),
    digest: await params.digest(),
  }),
})
