/** A zone in memory, behind each interface that records are written through: the HTTP interfaces of DNS providers, in short. */
import type { ServerResponse } from 'node:http'
import type { TestContext } from 'node:test'
import { createReceiver, type ReceivedPost } from './http-receiver.ts'

interface FakeSet {
  name: string
  type: string
  ttl: number
  /** As a zone file has them, without final dots. */
  values: string[]
}

export type FakeZone = ReturnType<typeof createFakeZone>

/** @param records `name type value`, by line; a name is relative to the zone, `@` the zone itself */
export function createFakeZone(name: string, records: readonly string[] = []) {
  const sets = new Map<string, FakeSet>()
  const full = (own: string) => (own === '@' || own === '' ? name : `${own}.${name}`)
  const zone = {
    name,
    sets,
    find: (at: string, type: string) => sets.get(`${type} ${at}`),
    at: (at: string) => [...sets.values()].filter((set) => set.name === at),
    put(at: string, type: string, ttl: number, values: readonly string[]) {
      if (values.length === 0) sets.delete(`${type} ${at}`)
      else sets.set(`${type} ${at}`, { name: at, type, ttl, values: [...values] })
    },
    add(own: string, type: string, ...values: string[]) {
      const set = zone.find(full(own), type)
      zone.put(full(own), type, set?.ttl ?? 300, [...(set?.values ?? []), ...values])
    },
    /** All records, sorted; the order of a set means nothing. */
    lines: () =>
      [...sets.values()]
        .flatMap((set) => set.values.map((value) => `${set.name} ${set.ttl} ${set.type} ${value}`))
        .sort(),
  }
  for (const record of records) {
    const [own = '', type = '', ...rest] = record.split(' ')
    zone.add(own, type, rest.join(' '))
  }
  return zone
}

export interface Fault {
  status: number
  body?: unknown
  headers?: Record<string, string>
}

/** Response to a request: JSON, or a text. */
type Handler = (post: ReceivedPost, url: URL) => unknown

/** Thrown by handlers. */
class Refused extends Error {
  readonly fault: Fault
  constructor(status: number, body: unknown) {
    super(String(status))
    this.fault = { status, body }
  }
}

export const TOKEN = 'secret-token-0123456789'
export const ACCESS_KEY = 'AKIDEXAMPLE1234'

export type HttpKind = 'cloudflare' | 'desec' | 'hetzner' | 'route53'

export async function startProviderApi(t: Pick<TestContext, 'after'>, kind: HttpKind, zone: FakeZone) {
  const receiver = await createReceiver()
  t.after(() => receiver.close())
  const api = {
    url: receiver.url,
    requests: [] as string[],
    /** A response in place of the right one; null: the right one. */
    fault: (_method: string, _path: string): Fault | null => null,
    /** The change is made, and then the connection breaks. */
    breaksAfter: (_method: string, _path: string) => false,
  }
  const handle = HANDLERS[kind](zone)
  receiver.answer = (response, post) => {
    const { method, path } = post
    api.requests.push(`${method} ${path}`)
    const fault = isAuthorized(kind, post) ? api.fault(method, path) : DENIED[kind]
    if (fault) return respond(response, fault)
    try {
      const body = handle(post, new URL(path, receiver.url))
      if (api.breaksAfter(method, path)) response.destroy()
      else respond(response, { status: method === 'POST' && kind !== 'cloudflare' ? 201 : 200, body })
    } catch (error) {
      if (!(error instanceof Refused)) throw error
      respond(response, error.fault)
    }
  }
  return api
}

function respond(response: ServerResponse, { status, body, headers }: Fault): void {
  response.writeHead(status, headers).end(typeof body === 'string' ? body : JSON.stringify(body ?? {}))
}

function isAuthorized(kind: HttpKind, { headers: { authorization = '' } }: ReceivedPost): boolean {
  if (kind === 'route53')
    return new RegExp(
      `^AWS4-HMAC-SHA256 Credential=${ACCESS_KEY}/\\d{8}/us-east-1/route53/aws4_request, SignedHeaders=\\S+, Signature=[0-9a-f]{64}$`,
    ).test(authorization)
  return authorization === `${kind === 'desec' ? 'Token' : 'Bearer'} ${TOKEN}`
}

const xmlError = (code: string, message: string) =>
  `<?xml version="1.0"?><ErrorResponse><Error><Type>Sender</Type><Code>${code}</Code><Message>${message}</Message></Error></ErrorResponse>`

/** What each says to wrong credentials. */
const DENIED: Record<HttpKind, Fault> = {
  cloudflare: {
    status: 403,
    body: { success: false, errors: [{ code: 10000, message: 'Authentication error' }] },
  },
  desec: { status: 401, body: { detail: 'Invalid token.' } },
  hetzner: { status: 401, body: { error: { code: 'unauthorized', message: 'unable to authenticate' } } },
  route53: {
    status: 403,
    body: xmlError('SignatureDoesNotMatch', 'The request signature does not match.'),
  },
}

const dotted = (type: string, value: string) => (type === 'CNAME' || type === 'MX' ? `${value}.` : value)
const undotted = (type: string, value: string) =>
  type === 'CNAME' || type === 'MX' ? value.replace(/\.$/, '') : value

const HANDLERS: Record<HttpKind, (zone: FakeZone) => Handler> = {
  cloudflare: cloudflareHandler,
  desec: desecHandler,
  hetzner: hetznerHandler,
  route53: route53Handler,
}

function cloudflareHandler(zone: FakeZone): Handler {
  const idOf = (type: string, name: string, value: string) =>
    Buffer.from(`${type} ${name} ${value}`).toString('base64url')
  const partsOf = (id: string) => {
    const [type = '', name = '', ...value] = Buffer.from(id, 'base64url').toString().split(' ')
    return { type, name, value: value.join(' ') }
  }
  const valueIn = ({ type, content, priority }: Record<string, string>) =>
    type === 'MX' ? `${priority} ${content}` : (content ?? '')
  const remove = (id: string) => {
    const { type, name, value } = partsOf(id)
    const set = zone.find(name, type)
    if (!set?.values.includes(value))
      throw new Refused(404, { success: false, errors: [{ code: 81044, message: 'Record does not exist.' }] })
    zone.put(
      name,
      type,
      set.ttl,
      set.values.filter((one) => one !== value),
    )
  }
  const create = (record: Record<string, string>) => {
    const [name, type] = [record['name'] as string, record['type'] ?? '']
    const value = valueIn(record)
    const set = zone.find(name, type)
    if (set?.values.includes(value))
      throw new Refused(400, {
        success: false,
        errors: [{ code: 81058, message: 'An identical record already exists.' }],
      })
    zone.put(name, type, set?.ttl ?? Number(record['ttl']), [...(set?.values ?? []), value])
  }
  return ({ method, body }, { pathname, searchParams }) => {
    if (pathname === '/zones') {
      const isIt = searchParams.get('name') === zone.name
      return { success: true, result: isIt ? [{ id: 'zone-1', name: zone.name }] : [] }
    }
    if (method === 'GET')
      return {
        success: true,
        result: zone.at(searchParams.get('name') ?? '').flatMap(({ name, type, ttl, values }) =>
          values.map((value) => {
            const [priority, host] = value.split(' ')
            const content = type === 'MX' ? { content: host, priority: Number(priority) } : { content: value }
            return { id: idOf(type, name, value), name, type, ttl, ...content }
          }),
        ),
      }
    // In one transaction: a refusal leaves all as it was.
    const before = structuredClone([...zone.sets])
    try {
      for (const { id } of body.deletes) remove(id)
      for (const { id, ...record } of body.patches) {
        remove(id)
        create({ ...partsOf(id), ...record })
      }
      for (const record of body.posts) create(record)
    } catch (error) {
      zone.sets.clear()
      for (const [key, set] of before) zone.sets.set(key, set)
      throw error
    }
    return { success: true, result: {} }
  }
}

const relative = (name: string, zone: FakeZone, apex: string) =>
  name === zone.name ? apex : name.slice(0, -zone.name.length - 1)
const absolute = (own: string, zone: FakeZone) =>
  own === '' || own === '@' ? zone.name : `${own}.${zone.name}`

function desecHandler(zone: FakeZone): Handler {
  return ({ method, body }, { pathname, searchParams }) => {
    if (pathname === '/domains/') {
      const name = searchParams.get('owns_qname') ?? ''
      const isIt = name === zone.name || name.endsWith(`.${zone.name}`)
      return isIt ? [{ name: zone.name, minimum_ttl: 3600 }] : []
    }
    if (method === 'GET')
      return zone
        .at(absolute(searchParams.get('subname') ?? '', zone))
        .map(({ name, type, ttl, values }) => ({
          ...{ subname: relative(name, zone, ''), name: `${name}.`, type, ttl },
          records: values.map((value) => dotted(type, value)),
        }))
    for (const { subname, type, ttl, records } of body)
      zone.put(
        absolute(subname, zone),
        type,
        ttl,
        records.map((value: string) => undotted(type, value)),
      )
    return []
  }
}

function hetznerHandler(zone: FakeZone): Handler {
  const action = { action: { id: 7, status: 'running' } }
  return ({ method, body }, { pathname, searchParams }) => {
    if (pathname === '/zones') {
      const isIt = searchParams.get('name') === zone.name
      return { zones: isIt ? [{ id: 42, name: zone.name, mode: 'primary' }] : [] }
    }
    if (pathname === '/actions/7') return { action: { id: 7, status: 'success', error: null } }
    const valuesOf = (type: string) =>
      body.records.map(({ value }: { value: string }) => undotted(type, value)) as string[]
    if (pathname === '/zones/42/rrsets') {
      if (method === 'GET')
        return {
          rrsets: zone.at(absolute(searchParams.get('name') ?? '', zone)).map((set) => ({
            ...{ name: relative(set.name, zone, '@'), type: set.type, ttl: set.ttl },
            records: set.values.map((value) => ({ value: dotted(set.type, value), comment: null })),
            protection: { change: false },
          })),
        }
      const name = absolute(body.name, zone)
      if (zone.find(name, body.type))
        throw new Refused(409, { error: { code: 'uniqueness_error', message: 'RRSet already exists' } })
      zone.put(name, body.type, body.ttl ?? 86_400, valuesOf(body.type))
      return action
    }
    const [, , , , own = '', type = ''] = pathname.split('/').map(decodeURIComponent)
    const set = zone.find(absolute(own, zone), type)
    if (!set) throw new Refused(404, { error: { code: 'not_found', message: 'RRSet not found' } })
    zone.put(set.name, type, set.ttl, method === 'DELETE' ? [] : valuesOf(type))
    return action
  }
}

const escapeXml = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;')
const unescapeXml = (text: string) =>
  text.replaceAll(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code)))

function route53Handler(zone: FakeZone): Handler {
  return ({ method, raw }, { pathname, searchParams }) => {
    if (pathname === '/2013-04-01/hostedzonesbyname')
      return `<ListHostedZonesByNameResponse><HostedZones><HostedZone><Id>/hostedzone/Z1</Id><Name>${zone.name}.</Name><Config><PrivateZone>true</PrivateZone></Config></HostedZone><HostedZone><Id>/hostedzone/Z2</Id><Name>${zone.name}.</Name><Config><PrivateZone>false</PrivateZone></Config></HostedZone></HostedZones></ListHostedZonesByNameResponse>`
    if (method === 'GET') {
      const sets = zone.at(searchParams.get('name') ?? '').map(({ name, type, ttl, values }) => {
        const records = values.map(
          (value) => `<ResourceRecord><Value>${escapeXml(dotted(type, value))}</Value></ResourceRecord>`,
        )
        return `<ResourceRecordSet><Name>${name}.</Name><Type>${type}</Type><TTL>${ttl}</TTL><ResourceRecords>${records.join('')}</ResourceRecords></ResourceRecordSet>`
      })
      return `<ListResourceRecordSetsResponse><ResourceRecordSets>${sets.join('')}<ResourceRecordSet><Name>zzz.${zone.name}.</Name><Type>A</Type></ResourceRecordSet></ResourceRecordSets></ListResourceRecordSetsResponse>`
    }
    const changes = [...raw.toString().matchAll(/<Change>(.*?)<\/Change>/g)].map(([, xml = '']) => ({
      action: /<Action>(\w+)/.exec(xml)?.[1],
      name: (/<Name>([^<]+)\.</.exec(xml)?.[1] ?? '') as string,
      type: /<Type>(\w+)/.exec(xml)?.[1] ?? '',
      ttl: Number(/<TTL>(\d+)/.exec(xml)?.[1]),
      values: [...xml.matchAll(/<Value>(.*?)<\/Value>/g)].map((match) => unescapeXml(match[1] as string)),
    }))
    const next = createFakeZone(zone.name)
    for (const set of zone.sets.values()) next.put(set.name, set.type, set.ttl, set.values)
    for (const { action, name, type, ttl, values } of changes) {
      const plain = values.map((value) => undotted(type, value))
      const set = next.find(name, type)
      const isSame = set?.ttl === ttl && JSON.stringify(set.values) === JSON.stringify(plain)
      if (action === 'DELETE' ? !isSame : set !== undefined)
        throw new Refused(400, xmlError('InvalidChangeBatch', `Tried to ${action} ${name} ${type}`))
      next.put(name, type, ttl, action === 'DELETE' ? [] : plain)
    }
    zone.sets.clear()
    for (const [key, set] of next.sets) zone.sets.set(key, set)
    return '<ChangeResourceRecordSetsResponse><ChangeInfo><Status>PENDING</Status></ChangeInfo></ChangeResourceRecordSetsResponse>'
  }
}
