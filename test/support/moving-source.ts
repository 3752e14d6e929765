/** A source for imports: a service that is filled with data, behind a server that refuses, waits and drops as it is told. */
import assert from 'node:assert/strict'
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** The calls that filling takes; those of test services and of processes are alike. */
export type FillCall = (
  method: string,
  path: string,
  body: { form: Record<string, string> } | { json: unknown },
) => Promise<void>

export interface SourceSize {
  domains: number
  /** In all, over the four lists of some domains. */
  suppressions: number
  /** In all; each has two versions, the second one active. */
  templates: number
  members: number
}

/** What a source has, by kind, after `fillSource`. */
export interface Filled {
  domains: string[]
  /** Records by `kind domain`. */
  suppressions: Map<string, number>
  templates: number
  members: number
}

const SUPPRESSION_KINDS = ['bounces', 'complaints', 'unsubscribes', 'whitelists']
const RECORDS_PER_CALL = 1_000
const TEMPLATES_PER_DOMAIN = 100
/** Domains that have suppressions. */
const SUPPRESSING_DOMAINS_MAX = 10

export async function fillSource(call: FillCall, size: SourceSize): Promise<Filled> {
  const domains = Array.from({ length: size.domains }, (_, n) => `d${n}.moving.example`)
  for (const name of domains) await call('POST', '/v4/domains', { form: { name, web_prefix: 'links' } })
  const [first = ''] = domains
  await call('PUT', `/v3/domains/${first}/tracking/open`, { form: { active: 'yes' } })
  const suppressions = await fillSuppressions(
    call,
    domains.slice(0, SUPPRESSING_DOMAINS_MAX),
    size.suppressions,
  )
  for (let n = 0; n < size.templates; n++) {
    const path = `/v3/${domains[Math.floor(n / TEMPLATES_PER_DOMAIN)]}/templates`
    const name = `template-${n}`
    await call('POST', path, {
      form: { name, description: 'd', tag: 'one', template: `<p>{{name}} ${n}</p>` },
    })
    const second = {
      tag: 'two',
      template: `<b>{{name}} ${n}</b>`,
      active: 'yes',
      headers: '{"Subject":"Hi {{name}}"}',
      sample: '{"name":"Ada"}',
    }
    await call('POST', `${path}/${name}/versions`, { form: second })
  }
  const address = `news@${first}`
  await call('POST', '/v3/lists', { form: { address, name: 'News', access_level: 'everyone' } })
  for (let at = 0; at < size.members; at += 100) {
    const length = Math.min(100, size.members - at)
    const members = Array.from({ length }, (_, n) => ({
      address: `m${at + n}@people.example.org`,
      name: `=M ${at + n}`,
      vars: { n: at + n },
      subscribed: (at + n) % 10 !== 9,
    }))
    await call('POST', `/v3/lists/${address}/members.json`, { form: { members: JSON.stringify(members) } })
  }
  await call('POST', '/v3/routes', {
    form: { priority: '5', description: 'r', expression: `match_recipient("@${first}")`, action: 'store()' },
  })
  await call('POST', `/v3/domains/${first}/webhooks`, {
    form: { id: 'delivered', url: 'http://127.0.0.1:9/hook' },
  })
  await call('POST', '/v1/webhooks', { form: { url: 'http://127.0.0.1:9/all', event_types: 'clicked' } })
  return { domains, suppressions, templates: size.templates, members: size.members }
}

async function fillSuppressions(
  call: FillCall,
  domains: readonly string[],
  count: number,
): Promise<Map<string, number>> {
  const filled = new Map<string, number>()
  const each = Math.floor(count / domains.length / SUPPRESSION_KINDS.length)
  for (const domain of domains)
    for (const kind of SUPPRESSION_KINDS) {
      for (let at = 0; at < each; at += RECORDS_PER_CALL) {
        const length = Math.min(RECORDS_PER_CALL, each - at)
        const json = Array.from({ length }, (_, n) => recordOf(kind, at + n))
        await call('POST', `/v3/${domain}/${kind}`, { json })
      }
      filled.set(`${kind} ${domain}`, each)
    }
  return filled
}

function recordOf(kind: string, n: number): object {
  const address = `u${n}@people.example.org`
  const created_at = 1_600_000_000 + n
  if (kind === 'bounces') return { address, code: '550', error: `5.1.1 no such user ${n}`, created_at }
  if (kind === 'unsubscribes') return { address, tags: n % 3 === 0 ? ['news', 'offers'] : ['*'], created_at }
  return kind === 'whitelists' ? { address, reason: `r${n}` } : { address, created_at }
}

export interface FaultyProxy {
  url: string
  /** Requests so far, those that it refused included. */
  count(): number
  /** Resolves when so many requests have arrived. */
  reached(count: number): Promise<void>
  close(): Promise<void>
}

/** What happens to a request: it is passed on, answered by a status and headers, or its connection is cut. */
export type Fault = 'pass' | 'cut' | { status: number; headers: Record<string, string> }

/**
 * An HTTP server in front of `target`.
 * @param fault decides by the number of the request, from 1
 */
export async function createFaultyProxy(
  target: string,
  host: string,
  fault: (count: number, path: string) => Fault,
): Promise<FaultyProxy> {
  let count = 0
  const waiting = new Set<{ count: number; resolve: () => void }>()
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    count++
    for (const one of waiting) if (one.count <= count) one.resolve()
    const what = fault(count, request.url ?? '')
    if (what === 'cut') request.socket.destroy()
    else if (what === 'pass') pass(target, request, response)
    else response.writeHead(what.status, what.headers).end('{"message":"as told"}')
  })
  server.listen(0, host)
  await new Promise((resolve) => server.once('listening', resolve))
  return {
    url: `http://${host}:${(server.address() as AddressInfo).port}`,
    count: () => count,
    reached: (wanted) =>
      new Promise((resolve) => {
        waiting.add({ count: wanted, resolve })
      }),
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function pass(target: string, request: IncomingMessage, response: ServerResponse): void {
  const { method, headers } = request
  const onward = httpRequest(target + request.url, { method, headers }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers)
    answer.pipe(response)
  })
  onward.on('error', () => response.destroy())
  request.pipe(onward)
}

/** Everything that a service has, for comparing two of them. Times of making are left out where an import cannot keep them. */
export async function contentsOf(
  get: (path: string) => Promise<Record<string, unknown>>,
  domains: readonly string[],
): Promise<Record<string, unknown>> {
  const contents: Record<string, unknown> = {}
  const all = async (path: string, limit: number) => {
    const items: Record<string, unknown>[] = []
    for (let query = `?limit=${limit}`; ; ) {
      const page = await get(path + query)
      const found = page['items'] as Record<string, unknown>[]
      if (found.length === 0) return items
      items.push(...found)
      query = new URL((page['paging'] as { next: string }).next).search
    }
  }
  for (const domain of domains) {
    for (const kind of SUPPRESSION_KINDS)
      contents[`${kind} ${domain}`] = await all(`/v3/${domain}/${kind}`, 1_000)
    const templates = await all(`/v3/${domain}/templates`, 100)
    for (const { name } of templates) {
      const path = `/v3/${domain}/templates/${name}`
      const { template } = await get(`${path}?active=yes`)
      const { description, version } = template as { description: string; version: Record<string, unknown> }
      const { versions } = (await get(`${path}/versions?limit=100`))['template'] as {
        versions: { tag: string }[]
      }
      const { tag, template: content, headers, sample } = version
      contents[`template ${domain}/${name}`] = [
        description,
        tag,
        content,
        headers,
        sample,
        versions.map((one) => one.tag),
      ]
    }
    contents[`webhooks ${domain}`] = (await get(`/v3/domains/${domain}/webhooks`))['webhooks']
    contents[`tracking ${domain}`] = (await get(`/v3/domains/${domain}/tracking`))['tracking']
    contents[`domain ${domain}`] = (
      (await get(`/v4/domains/${domain}`))['domain'] as { web_prefix: string }
    ).web_prefix
  }
  for (const { address, members_count, access_level, name } of await all('/v3/lists/pages', 100)) {
    contents[`list ${address}`] = [members_count, access_level, name]
    contents[`members ${address}`] = await all(`/v3/lists/${address}/members/pages`, 100)
  }
  const { items } = await get('/v3/routes')
  contents['routes'] = (items as Record<string, unknown>[]).map(
    ({ priority, expression, actions, description }) => [priority, expression, actions, description],
  )
  const { webhooks } = await get('/v1/webhooks')
  contents['account webhooks'] = (webhooks as Record<string, unknown>[]).map(({ url, event_types }) => [
    url,
    event_types,
  ])
  assert.ok(Object.keys(contents).length > 0)
  return contents
}
