/** The whole service inside a test: real HTTP, SMTP and database, with its own folder and address. */
import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import pino, { type Logger } from 'pino'
import { type Config, readConfig } from '../../src/platform/config/config.ts'
import { type Service, type ServiceOverrides, startService } from '../../src/service.ts'
import { readingDeclaredNames } from './declared-names.ts'
import { HANG_MS } from './hang.ts'
import { connectInProcess } from './in-process-sqlite.ts'
import { createMigratedDatabase, prepareDataFolder } from './migrated.ts'
import { temporaryFolder } from './stores.ts'

export interface Answer {
  status: number
  headers: Headers
  text: string
  /** The parsed JSON body; null if it is none. */
  // biome-ignore lint/suspicious/noExplicitAny: a test reaches into bodies freely and asserts on what it finds
  body: any
}

export interface CallOptions {
  /** Form fields; an array repeats the name. Sent as multipart. */
  form?: Record<string, string | readonly string[] | File | readonly File[]>
  json?: unknown
  body?: RequestInit['body']
  headers?: Record<string, string>
  /** API key; default the service's admin key, null: none. */
  key?: string | null
}

export interface TestService {
  url: string
  /** The sandbox domain, active. */
  domain: string
  key: string
  config: Config
  service: Service
  call(method: string, path: string, options?: CallOptions): Promise<Answer>
  /** Sends from the sandbox domain; asserts nothing. */
  send(form: NonNullable<CallOptions['form']>): Promise<Answer>
  /** The events of a domain (default: the sandbox), newest first. */
  events(query?: string, domain?: string): Promise<Record<string, unknown>[]>
  /** Stops the service and starts it on the same data. */
  restart(): Promise<void>
}

export const TEST_KEY = 'test-key-0123456789abcdef'

let started = 0

/** No file needs as many at a time; files that share a process come round to those of files that have ended. */
const ADDRESSES_MAX = 250

/** An address in 127.0.0.0/8 that no other test uses, so that fixed ports never collide. */
export function ownAddress(): string {
  started = (started % ADDRESSES_MAX) + 1
  const { pid } = process
  return `127.${1 + (pid % 200)}.${Math.floor(pid / 200) % 250}.${started}`
}

/**
 * Starts a service that stops when the test ends, without measuring how large its tables are. `env`: settings in addition to the tests' own. With PostgreSQL it has the
 * listening thread of a machine with several processors. With SQLite it has no thread: starting one takes a third of a start.
 */
export async function startTestService(
  t: Pick<TestContext, 'after'>,
  env: Record<string, string> = {},
  overrides: ServiceOverrides & { database?: 'sqlite' | 'postgres'; log?: Logger } = {},
): Promise<TestService> {
  const host = ownAddress()
  const database = overrides.database === 'postgres' ? await createMigratedDatabase() : null
  const dataFolder = await temporaryFolder(t)
  if (database === null) await prepareDataFolder(dataFolder)
  const config = readConfig({
    SENDWRIGHT_HOST: host,
    SENDWRIGHT_PORT: '8080',
    SENDWRIGHT_DATA: dataFolder,
    SENDWRIGHT_API_KEY: TEST_KEY,
    SENDWRIGHT_HOSTNAME: 'mail.test.example',
    SENDWRIGHT_RATE_LIMIT: 'off',
    ...(database && { SENDWRIGHT_DATABASE_URL: database.url }),
    ...env,
  })
  const log = overrides.log ?? pino({ level: process.env['TEST_LOG'] ?? 'silent' })
  const all = {
    operation: readingDeclaredNames,
    listeningThread: database !== null,
    connectSqlite: connectInProcess,
    restingJobs: ['sizes'],
    ...overrides,
  }
  let service = await startService(config, log, all)
  t.after(async () => {
    await service.stop()
    await database?.drop()
  })
  const url = `http://${host}:${service.port}`

  const call: TestService['call'] = async (method, path, options = {}) => {
    const { status, headers, text } = await exchange(url + path, requestOf(method, options))
    return { status, headers, text, body: jsonOf(text) }
  }
  const domain = service.first.sandboxDomain
  return {
    url,
    domain,
    key: TEST_KEY,
    config,
    get service() {
      return service
    },
    call,
    send: (form) =>
      call('POST', `/v3/${domain}/messages`, {
        form: {
          from: `Sender <sender@${domain}>`,
          to: 'alice@example.org',
          subject: 'Hello',
          text: 'Hi.',
          ...form,
        },
      }),
    async events(query = '', of = domain) {
      const answer = await call('GET', `/v3/${of}/events${query}`)
      return (answer.body as { items: Record<string, unknown>[] }).items
    },
    async restart() {
      await service.stop()
      service = await startService(config, log, all)
    },
  }
}

/** A connection for each call costs no more, and none is found closed that was kept. */
const agent = new Agent({ keepAlive: false })
/** Leaves out a mark of byte order, as `fetch` does. */
const UTF8 = new TextDecoder()
/** What `fetch` sends besides, but for compression. */
const FETCH_HEADERS = {
  accept: '*/*',
  'accept-language': '*',
  'sec-fetch-mode': 'cors',
  'user-agent': 'node',
}

interface Call extends Omit<RequestInit, 'headers'> {
  method: string
  headers: Record<string, string>
}

/**
 * Like `fetch`, which takes three times the processor time of both sides for a call: a run makes tens of thousands. What has
 * parts, or comes as a stream, is left to it.
 */
async function exchange(url: string, call: Call): Promise<Pick<Answer, 'status' | 'headers' | 'text'>> {
  const { method, headers, body } = call
  if (body !== undefined && typeof body !== 'string' && !(body instanceof Uint8Array)) {
    const response = await fetch(url, call)
    return { status: response.status, headers: response.headers, text: await response.text() }
  }
  const sent = request(url, { method, agent, headers: { ...FETCH_HEADERS, ...headers } })
  if (typeof body === 'string' && !sent.hasHeader('content-type'))
    sent.setHeader('content-type', 'text/plain;charset=UTF-8')
  if (body !== undefined) sent.setHeader('content-length', Buffer.byteLength(body))
  // One that comes after the answer has begun, such as that the rest of a body is not read, is no matter.
  sent.on('error', () => {})
  sent.end(body)
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  const parts: Buffer[] = []
  response.on('data', (part: Buffer) => parts.push(part))
  await once(response, 'end')
  const received = new Headers()
  for (let at = 0; at < response.rawHeaders.length; at += 2)
    received.append(response.rawHeaders[at] as string, response.rawHeaders[at + 1] as string)
  return { status: response.statusCode as number, headers: received, text: UTF8.decode(Buffer.concat(parts)) }
}

function requestOf(method: string, { form, json, body, headers = {}, key = TEST_KEY }: CallOptions): Call {
  const all: Record<string, string> = { ...headers }
  if (key !== null) all['authorization'] = `Basic ${Buffer.from(`api:${key}`).toString('base64')}`
  if (json !== undefined) {
    return { method, headers: { 'content-type': 'application/json', ...all }, body: JSON.stringify(json) }
  }
  if (form) return { method, headers: all, body: formData(form) }
  return { method, headers: all, redirect: 'manual', ...(body !== undefined && { body }) }
}

function formData(fields: NonNullable<CallOptions['form']>): FormData {
  const form = new FormData()
  for (const [name, value] of Object.entries(fields)) {
    for (const one of Array.isArray(value) ? value : [value]) form.append(name, one as string)
  }
  return form
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** A look costs a few milliseconds of processor time: what is awaited for seconds is looked at less often. */
const LOOK_AFTER_MS = { first: 10, times: 1.2, most: 100 }
/** On a busy machine a look takes long, and time from what it waits for: no more than a fifth of the time is spent on looks. */
const REST_AFTER_LOOK = { times: 4, mostMs: 500 }

/** Polls until `look` returns a value, and returns it. @throws after HANG_MS, naming what was awaited */
export async function eventually<T>(
  what: string,
  look: () => Promise<T | null | undefined | false>,
): Promise<T> {
  const until = performance.now() + HANG_MS
  for (let { first: waitMs, times, most } = LOOK_AFTER_MS; ; waitMs = Math.min(most, waitMs * times)) {
    const begun = performance.now()
    const found = await look()
    if (found) return found
    const now = performance.now()
    if (now > until) throw new Error(`waited ${HANG_MS} ms in vain: ${what}`)
    await sleep(Math.max(waitMs, Math.min(REST_AFTER_LOOK.mostMs, REST_AFTER_LOOK.times * (now - begun))))
  }
}
