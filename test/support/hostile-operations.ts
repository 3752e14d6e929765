/**
 * Hostile bodies for every operation of the OpenAPI description: without a key, with a sending key, with an admin's. None
 * may cause a 5xx, block the main thread or leave memory behind. New operations are included automatically.
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, type TestContext, test } from 'node:test'
import { longestBlock } from './block-probe.ts'
import { COLLECTING, collectedBytes } from './collect-on-signal.ts'
import { type RawCall, rawCall } from './raw-call.ts'
import { eventually, ownAddress, TEST_KEY } from './service.ts'
import { AUTHORIZATION, type ServiceProcess, startProcess } from './service-process.ts'
import { temporaryFolder } from './stores.ts'

/** One method on one path. */
export interface Target {
  method: string
  path: string
  /** Names of all inputs of the operation: query, form, members of its document. */
  names: string[]
  /** Those of them that are JSON. */
  jsonNames: string[]
  /** Requires no login. */
  isPublic: boolean
}

/** What is sent to a target. */
export interface Shape {
  type: string
  headers?: string[]
  body: Buffer
  /** Default: the length of the body. */
  length?: number | 'chunked'
  /** What follows the body; default `wait`. `cut`: the connection ends during the body. */
  after?: 'wait' | 'close' | 'cut'
  /** Appended to the last variable part of the path. */
  pathEnd?: string
}

export const FORM = 'application/x-www-form-urlencoded'
export const JSON_TYPE = 'application/json'

const BLOCK_MAX_MS = 200
const GROWTH_MAX_BYTES = 100 * 2 ** 20
/** Those that are read in one turn of the event loop count as one block: all, where other load lets them pile up. Each alone takes 60 ms at most. */
const CALLS_AT_A_TIME = 2
const MESSAGES_AT_A_TIME = 6
const FAULTS_SHOWN = 20
/** There are more; fewer mean that the description was not understood. */
const TARGETS_MIN = 150

/** A test per shape, all on one service, and one for the memory. */
export function testEveryOperation(shapes: Record<string, (target: Target) => Shape>): void {
  let service: HostileService
  const ends: (() => Promise<unknown>)[] = []
  before(async (t) => {
    const context = Object.assign(Object.create(t as TestContext), {
      after: (end: () => Promise<unknown>) => ends.unshift(end),
    })
    service = await HostileService.start(context)
  })
  after(async () => {
    for (const end of ends) await end()
  })
  for (const [name, shape] of Object.entries(shapes)) {
    test(name, () => service.withstands(shape))
  }
  test('the memory is returned', () => service.hasGivenMemoryBack())
}

type Form = Record<string, string>

class HostileService {
  readonly #service: ServiceProcess
  readonly #host: string
  readonly #probe: string
  #targets: Target[] = []
  #callers: Record<string, string[]> = {}
  /** Names in paths and their values. */
  #places: Record<string, string> = {}
  #restBytes = 0

  private constructor(service: ServiceProcess, host: string, probe: string) {
    this.#service = service
    this.#host = host
    this.#probe = probe
  }

  static async start(t: TestContext): Promise<HostileService> {
    const folder = await temporaryFolder(t)
    const probe = join(folder, 'blocks')
    const host = ownAddress()
    // Nothing listens there: no lookup leaves this machine.
    const env = { ...COLLECTING, SENDWRIGHT_DATA: join(folder, 'data'), SENDWRIGHT_DNS: `${host}:53` }
    const child = await startProcess(host, env, { probe })
    t.after(() => child.end('SIGKILL'))
    const service = new HostileService(child, host, probe)
    await service.#prepare()
    return service
  }

  async #prepare(): Promise<void> {
    const key = { role: 'sending', kind: 'domain', domain_name: this.#service.domain }
    const made = (await this.#call('POST', '/v1/keys', key)) as { key: { secret: string } }
    this.#callers = {
      'no key': [],
      'a sending key': [authorization(made.key.secret)],
      'an admin key': [authorization(TEST_KEY)],
    }
    this.#targets = targetsOf((await this.#call('GET', '/openapi.json')) as Description)
    assert.ok(this.#targets.length >= TARGETS_MIN)
    await this.#workOrdinarily()
    await this.#plant()
    // Modules loaded by each operation's first call stay in memory.
    await this.#callAll(() => ({ type: FORM, body: Buffer.from('a=b') }))
    this.#restBytes = await this.#collectedBytes(Number.POSITIVE_INFINITY)
  }

  /** Calls every operation with the shape. */
  async withstands(shape: (target: Target) => Shape): Promise<void> {
    const { child } = this.#service
    await this.#plant()
    const process = { pid: child.pid as number, probe: this.#probe }
    const longestMs = await longestBlock(process, BLOCK_MAX_MS, async () => {
      const faults = await this.#callAll(shape)
      assert.deepEqual(faults.slice(0, FAULTS_SHOWN), [])
      assert.equal(child.exitCode, null, this.#service.output())
    })
    assert.ok(longestMs < BLOCK_MAX_MS, `the main thread was busy for ${longestMs} ms`)
    assert.doesNotMatch(this.#service.output(), /"level":(50|60)/)
  }

  async hasGivenMemoryBack(): Promise<void> {
    const growth = (await this.#collectedBytes(this.#restBytes + GROWTH_MAX_BYTES)) - this.#restBytes
    assert.ok(growth < GROWTH_MAX_BYTES, `${growth / 2 ** 20} MiB are still held`)
  }

  #collectedBytes(maxBytes: number): Promise<number> {
    return collectedBytes(this.#service.child.pid as number, maxBytes)
  }

  /** Every operation as every caller. Returns the responses that are not allowed. */
  async #callAll(shape: (target: Target) => Shape): Promise<string[]> {
    const faults: string[] = []
    const calls = this.#targets.flatMap((target) => {
      const sent = shape(target)
      return Object.entries(this.#callers).map(([caller, credentials]) => async () => {
        const status = await rawCall(this.#callOf(target, sent, credentials)).catch(String)
        const isFault = typeof status === 'string' || (status !== null && (status < 200 || status >= 500))
        const isOpen = caller === 'no key' && status === 200 && !target.isPublic
        if (isFault || isOpen) faults.push(`${target.method} ${target.path} with ${caller}: ${status}`)
      })
    })
    const work = async () => {
      for (let next = calls.shift(); next; next = calls.shift()) await next()
    }
    await Promise.all(Array.from({ length: CALLS_AT_A_TIME }, work))
    return faults
  }

  #callOf({ method, path }: Target, shape: Shape, credentials: readonly string[]): RawCall {
    const { type, headers = [], body, length = body.byteLength, after: afterwards = 'wait', pathEnd } = shape
    const line = `${method} ${this.#filled(path, pathEnd)} HTTP/1.1`
    const framing = length === 'chunked' ? 'Transfer-Encoding: chunked' : `Content-Length: ${length}`
    const head = [
      line,
      `Host: ${this.#host}:8080`,
      `Content-Type: ${type}`,
      framing,
      ...headers,
      ...credentials,
    ]
    // Another client's response, requested after the body: the service has read it by then.
    const cut = () => this.#call('GET', '/health/live')
    return { host: this.#host, port: 8080, head, body, after: afterwards === 'cut' ? { cut } : afterwards }
  }

  /** With an existing or new object for each name. */
  #filled(path: string, end = ''): string {
    const last = path.lastIndexOf('{')
    return path.replaceAll(/\{([^}]+)\}/g, (_, name: string, at: number) => {
      const value = encodeURIComponent(this.#place(name, path))
      return at === last ? value + end : value
    })
  }

  #place(name: string, path: string): string {
    if (name === 'name' && path.includes('/templates/')) return TEMPLATE
    const isDomain = /^(name|domain|domain_name|authority_name)$/.test(name)
    return this.#places[name] ?? (isDomain ? this.#service.domain : 'other')
  }

  /** The objects that paths name; an earlier shape may have deleted them. */
  async #plant(): Promise<void> {
    const { domain } = this.#service
    const list = `list@${domain}`
    const mail = { from: `a@${domain}`, to: 'b@example.org', subject: 'S', text: 'T' }
    const template = { name: TEMPLATE, template: 'Hello', tag: 'planted' }
    await this.#call('POST', `/sendwright/v1/domains/${domain}/enable`)
    const sent = (await this.#call('POST', `/v3/${domain}/messages`, mail)) as { id: string }
    await this.#call('POST', '/v4/templates', template)
    await this.#call('POST', `/v3/${domain}/templates`, template)
    await this.#call('POST', '/v3/lists', { address: list })
    await this.#call('POST', `/v3/lists/${list}/members`, { address: MEMBER })
    const webhook = { id: 'delivered', url: 'http://127.0.0.1:9/' }
    await this.#call('POST', `/v3/domains/${domain}/webhooks`, webhook)
    await this.#call('POST', `/v3/domains/${domain}/credentials`, { login: 'user', password: 'password-123' })
    for (const kind of ['bounces', 'complaints', 'unsubscribes', 'whitelists']) {
      await this.#call('POST', `/v3/${domain}/${kind}`, { address: SUPPRESSED })
    }
    const captured = await eventually('the message in the inbox', () =>
      this.#first<{ id: string }>('/sendwright/v1/inbox?limit=1'),
    )
    const accepted = await this.#first<{ storage: { key: string } }>(
      `/v3/${domain}/events?event=accepted&limit=1`,
    )
    this.#places = {
      storage_key: accepted?.storage.key ?? '',
      message_id: sent.id.slice(1, -1),
      id: captured.id,
      n: '0',
      type: 'delivered',
      list,
      member: MEMBER,
      address: SUPPRESSED,
      spec: 'user',
      tag: 'planted',
    }
  }

  async #first<T>(path: string): Promise<T | undefined> {
    return ((await this.#call('GET', path)) as { items: T[] }).items[0]
  }

  /** Large messages, some at a time: malloc keeps what it took for ordinary work. */
  async #workOrdinarily(): Promise<void> {
    const text = 'A line of text. '.repeat(12_000)
    const mail = { from: 'a@example.com', to: 'b@example.org', subject: 'S', text }
    const send = async () => {
      for (let sent = 0; sent < 10; sent++)
        await this.#call('POST', `/v3/${this.#service.domain}/messages`, mail)
    }
    await Promise.all(Array.from({ length: MESSAGES_AT_A_TIME }, send))
    await eventually('the messages are delivered', async () => {
      const system = (await this.#call('GET', '/sendwright/v1/system')) as { queue: Record<string, number> }
      return Object.values(system.queue).every((count) => count === 0)
    })
  }

  async #call(method: string, path: string, form?: Form): Promise<unknown> {
    const body = form && new URLSearchParams(form)
    const headers = { authorization: AUTHORIZATION }
    const answer = await fetch(this.#service.url + path, { method, headers, ...(body && { body }) })
    return answer.json()
  }
}

const TEMPLATE = 'planted'
const MEMBER = 'member@example.org'
const SUPPRESSED = 'suppressed@example.org'

const authorization = (secret: string) =>
  `Authorization: Basic ${Buffer.from(`api:${secret}`).toString('base64')}`

interface Schema {
  contentMediaType?: string
  properties?: Record<string, Schema>
}

interface Description {
  paths: Record<string, Record<string, DescribedOperation>>
}

interface DescribedOperation {
  parameters: { name: string; in: string; schema: Schema }[]
  requestBody?: { content: Record<string, { schema: Schema }> }
  security?: unknown[]
}

/** Deletions are last, and the domain itself is kept: the others need their objects. */
function targetsOf({ paths }: Description): Target[] {
  const targets = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, described]) => targetOf(method.toUpperCase(), path, described)),
  )
  const isLast = ({ method }: Target) => (method === 'DELETE' ? 1 : 0)
  return targets.sort((one, other) => isLast(one) - isLast(other))
}

function targetOf(
  method: string,
  path: string,
  { parameters, requestBody, security }: DescribedOperation,
): Target {
  const [media] = Object.entries(requestBody?.content ?? {})
  const members = Object.entries(media?.[1].schema.properties ?? {})
  const query = parameters
    .filter((one) => one.in === 'query')
    .map(({ name, schema }) => [name, schema] as const)
  const all = [...members, ...query]
  const isJson = ({ contentMediaType }: Schema) => media?.[0] === JSON_TYPE || contentMediaType === JSON_TYPE
  const deletesDomain = method === 'DELETE' && /\/domains\/\{name\}$/.test(path)
  return {
    method,
    path: deletesDomain ? path.replace('{name}', 'absent.example') : path,
    names: all.map(([name]) => name),
    jsonNames: all.filter(([, schema]) => isJson(schema)).map(([name]) => name),
    isPublic: security?.length === 0,
  }
}
