/**
 * A small certificate authority that speaks ACME (RFC 8555) on loopback: directory, nonces, signed requests,
 * accounts, orders, one authorization each with an HTTP-01 challenge that is really fetched, and a chain of leaf
 * and intermediate under its own root. It refuses what the standard requires a server to refuse. No revocation,
 * no key change, no wildcard names.
 */
import {
  createHash,
  createPublicKey,
  generateKeyPairSync,
  type JsonWebKey,
  type KeyObject,
  randomBytes,
  verify,
} from 'node:crypto'
import { once } from 'node:events'
import {
  createServer,
  type IncomingMessage,
  type RequestOptions,
  request as requestHttp,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  authorityCertificate,
  certifiedKey,
  signingKeyOf,
  type Validity,
} from '../../src/base/net/certificate.ts'

export interface AcmeServer {
  /** URL for SENDWRIGHT_ACME_DIRECTORY. */
  directory: string
  /** PEM of the root, for clients that trust the issued certificates. */
  root: string
  /** Hosts of all orders, in sequence. */
  readonly orders: string[]
  /** Tokens of the challenges that it was asked to validate, in sequence. */
  readonly tokens: string[]
  /** Contacts of all accounts. */
  readonly contacts: string[][]
  /** Issued chains, newest last. */
  readonly issued: string[]
  /** The fault from now on; null: none. */
  fault: AcmeFault | null
  /** The next signed request is refused because its nonce was used. */
  badNonces: number
  /** Lifetime of certificates from now on. */
  lifetimeMs: number
  /** Forgets every account, like a reinstalled authority. */
  forgetAccounts(): void
  close(): Promise<void>
}

export type AcmeFault =
  | { kind: 'hang-up' }
  | { kind: 'rate-limited'; retryAfter: string }
  | { kind: 'unavailable' }
  /** Not a problem document at all. */
  | { kind: 'garbage' }
  /** Orders are accepted and never processed. */
  | { kind: 'silent' }
  /** The certificate is for another key than the request's. */
  | { kind: 'other-key' }
  /** The challenge's token is not base64url. */
  | { kind: 'odd-token' }

interface Order {
  id: string
  host: string
  account: string
  status: 'pending' | 'ready' | 'valid' | 'invalid'
  token: string
  /** The error of the validation. */
  error?: string
  chain?: string
}

interface Account {
  id: string
  key: JsonWebKey
  thumbprint: string
}

interface Signed {
  payload: Record<string, unknown> | null
  account: Account | null
  key: JsonWebKey
}

class Problem extends Error {
  readonly status: number
  readonly type: string
  readonly headers: Record<string, string>
  constructor(status: number, type: string, detail: string, headers: Record<string, string> = {}) {
    super(detail)
    this.status = status
    this.type = `urn:ietf:params:acme:error:${type}`
    this.headers = headers
  }
}

const DAY_MS = 86_400_000
/** `reach`: address of the listener for a host, in place of DNS and port 80. `now`: Unix milliseconds. */
export async function createAcmeServer(options: {
  reach(host: string): { address: string; port: number }
  now(): number
}): Promise<AcmeServer> {
  const authority = createAuthorities()
  const nonces = new Set<string>()
  const accounts = new Map<string, Account>()
  const orders = new Map<string, Order>()
  const server = createServer((incoming, reply) => {
    if (acme.fault?.kind === 'hang-up') return void incoming.socket.destroy()
    answer(incoming, reply).catch((error: unknown) => {
      const problem = error instanceof Problem ? error : new Problem(500, 'serverInternal', String(error))
      reply.writeHead(problem.status, { 'content-type': 'application/problem+json', ...problem.headers })
      reply.end(JSON.stringify({ type: problem.type, detail: problem.message, status: problem.status }))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  const acme: AcmeServer = {
    directory: `${base}/directory`,
    root: authority.root,
    orders: [],
    tokens: [],
    contacts: [],
    issued: [],
    fault: null,
    badNonces: 0,
    lifetimeMs: 90 * DAY_MS,
    forgetAccounts: () => accounts.clear(),
    async close() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }

  async function answer(incoming: IncomingMessage, reply: ServerResponse): Promise<void> {
    const path = incoming.url ?? ''
    const nonce = randomBytes(16).toString('base64url')
    nonces.add(nonce)
    reply.setHeader('replay-nonce', nonce)
    reply.setHeader('cache-control', 'no-store')
    if (path === '/directory') {
      const names = { newNonce: 'new-nonce', newAccount: 'new-account', newOrder: 'new-order' }
      const urls = Object.entries(names).map(([name, part]) => [name, `${base}/${part}`])
      return send(reply, 200, Object.fromEntries(urls))
    }
    if (path === '/new-nonce') return void reply.writeHead(incoming.method === 'HEAD' ? 200 : 204).end()
    if (incoming.method !== 'POST') throw new Problem(405, 'malformed', 'POST-as-GET only')
    const signed = readSigned(incoming, await readBody(incoming), path)
    if (acme.fault?.kind === 'unavailable') throw new Problem(503, 'serverInternal', 'Down for maintenance')
    if (acme.fault?.kind === 'garbage') return void reply.writeHead(500).end('<html>\u0000oops')
    if (path === '/new-account') return newAccount(signed, reply)
    if (signed.account === null) throw new Problem(400, 'malformed', 'This resource needs a kid')
    if (path === '/new-order') return newOrder(signed.payload, signed.account, reply)
    const [, kind, id = ''] = path.split('/')
    if (kind === 'account') return send(reply, 200, { status: 'valid' })
    const order = orders.get(id)
    if (!order || order.account !== signed.account.id) throw new Problem(404, 'malformed', 'No such resource')
    if (kind === 'order') return send(reply, 200, orderView(order))
    if (kind === 'authorization') return send(reply, 200, authorizationView(order))
    if (kind === 'challenge') {
      if (signed.payload !== null && order.status === 'pending') void validate(order, signed.account)
      return send(reply, 200, challengeView(order))
    }
    if (kind === 'finalize') return finalize(order, signed.payload, reply)
    if (kind === 'certificate' && order.chain !== undefined) {
      reply.writeHead(200, { 'content-type': 'application/pem-certificate-chain' }).end(order.chain)
      return
    }
    throw new Problem(404, 'malformed', 'No such resource')
  }

  /** RFC 8555 §6.2-6.5: the envelope of every request. */
  function readSigned(incoming: IncomingMessage, body: string, path: string): Signed {
    if (incoming.headers['content-type'] !== 'application/jose+json')
      throw new Problem(415, 'malformed', 'Content-Type must be application/jose+json')
    const envelope = JSON.parse(body) as Record<'protected' | 'payload' | 'signature', string>
    const header = JSON.parse(decode(envelope.protected)) as Record<string, unknown>
    if (header['alg'] !== 'ES256') throw new Problem(400, 'badSignatureAlgorithm', 'ES256 only')
    if (header['url'] !== `${base}${path}`) throw new Problem(401, 'unauthorized', 'The URL differs')
    if (acme.badNonces > 0 || !nonces.delete(String(header['nonce']))) {
      acme.badNonces = Math.max(0, acme.badNonces - 1)
      throw new Problem(400, 'badNonce', 'The nonce is not known')
    }
    if ('jwk' in header === 'kid' in header) throw new Problem(400, 'malformed', 'Either jwk or kid')
    const account = 'kid' in header ? accountOf(String(header['kid'])) : null
    const key = account?.key ?? (header['jwk'] as JsonWebKey)
    const isRight = verify(
      'sha256',
      Buffer.from(`${envelope.protected}.${envelope.payload}`),
      { key: createPublicKey({ key, format: 'jwk' }), dsaEncoding: 'ieee-p1363' },
      Buffer.from(envelope.signature, 'base64url'),
    )
    if (!isRight) throw new Problem(400, 'malformed', 'The signature is wrong')
    const payload = envelope.payload === '' ? null : JSON.parse(decode(envelope.payload))
    return { payload, account, key }
  }

  function accountOf(url: string): Account {
    const account = accounts.get(url.slice(`${base}/account/`.length))
    if (!account) throw new Problem(400, 'accountDoesNotExist', 'No such account')
    return account
  }

  function newAccount({ payload, key, account }: Signed, reply: ServerResponse): void {
    if (account !== null) throw new Problem(400, 'malformed', 'A new account is signed with its key')
    if (payload?.['termsOfServiceAgreed'] !== true)
      throw new Problem(403, 'userActionRequired', 'Agree to the terms of service')
    const thumbprint = thumbprintOf(key)
    const known = [...accounts.values()].find((one) => one.thumbprint === thumbprint)
    const id = known?.id ?? randomBytes(6).toString('hex')
    accounts.set(id, { id, key, thumbprint })
    acme.contacts.push((payload['contact'] ?? []) as string[])
    reply.setHeader('location', `${base}/account/${id}`)
    send(reply, known ? 200 : 201, { status: 'valid', contact: payload['contact'] })
  }

  function newOrder(payload: Signed['payload'], account: Account, reply: ServerResponse): void {
    const identifiers = payload?.['identifiers'] as { type: string; value: string }[]
    const [identifier] = identifiers
    if (!identifier || identifiers.length !== 1 || identifier.type !== 'dns')
      throw new Problem(400, 'unsupportedIdentifier', 'One DNS name, please')
    acme.orders.push(identifier.value)
    if (acme.fault?.kind === 'rate-limited')
      throw new Problem(429, 'rateLimited', 'too many new orders\nrecently', {
        'retry-after': acme.fault.retryAfter,
      })
    if (identifier.value.includes('_'))
      throw new Problem(400, 'rejectedIdentifier', 'Domain name contains an invalid character')
    const id = randomBytes(6).toString('hex')
    const token =
      acme.fault?.kind === 'odd-token' ? '../../etc/passwd' : randomBytes(24).toString('base64url')
    const order: Order = { id, host: identifier.value, account: account.id, status: 'pending', token }
    orders.set(id, order)
    reply.setHeader('location', `${base}/order/${id}`)
    send(reply, 201, orderView(order))
  }

  /** RFC 8555 §8.3, with a real request. */
  async function validate(order: Order, account: Account): Promise<void> {
    acme.tokens.push(order.token)
    if (acme.fault?.kind === 'silent') return
    const { address, port } = options.reach(order.host)
    const path = `/.well-known/acme-challenge/${order.token}`
    const got = await fetchText({ host: address, port, path, headers: { host: order.host } })
    const wanted = `${order.token}.${account.thumbprint}`
    order.status = got === wanted ? 'ready' : 'invalid'
    if (got !== wanted)
      order.error = `Invalid response from http://${order.host}${path}: ${got.slice(0, 100)}`
  }

  function finalize(order: Order, payload: Signed['payload'], reply: ServerResponse): void {
    if (order.status !== 'ready') throw new Problem(403, 'orderNotReady', `The order is ${order.status}`)
    const request = readRequest(Buffer.from(String(payload?.['csr']), 'base64url'))
    if (request?.names.join() !== order.host) throw new Problem(400, 'badCSR', 'The request does not fit')
    const publicKey = acme.fault?.kind === 'other-key' ? newKeys().publicKey : request.publicKey
    order.chain = authority.issue(order.host, publicKey, {
      // A clock that tests advance may be far ahead of the one that their TLS clients use.
      from: new Date(Math.min(options.now(), Date.now()) - DAY_MS),
      to: new Date(options.now() + acme.lifetimeMs),
    })
    acme.issued.push(order.chain)
    order.status = 'valid'
    reply.setHeader('location', `${base}/order/${order.id}`)
    send(reply, 200, orderView(order))
  }

  const orderView = ({ id, host, status, chain }: Order) => ({
    status,
    identifiers: [{ type: 'dns', value: host }],
    authorizations: [`${base}/authorization/${id}`],
    finalize: `${base}/finalize/${id}`,
    ...(chain !== undefined && { certificate: `${base}/certificate/${id}` }),
  })
  const stateOf = ({ status }: Order) => (status === 'ready' ? 'valid' : status)
  const challengeView = (order: Order) => ({
    type: 'http-01',
    url: `${base}/challenge/${order.id}`,
    status: stateOf(order),
    token: order.token,
    ...(order.error !== undefined && { error: { detail: order.error } }),
  })
  const authorizationView = (order: Order) => ({
    status: stateOf(order),
    identifier: { type: 'dns', value: order.host },
    challenges: [
      { type: 'dns-01', url: `${base}/nowhere`, status: 'pending', token: 'x'.repeat(32) },
      challengeView(order),
    ],
  })
  return acme
}

const decode = (text: string) => Buffer.from(text, 'base64url').toString('utf8')

function send(reply: ServerResponse, status: number, body: unknown): void {
  reply.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

async function readBody(incoming: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of incoming) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}

/** RFC 7638 §3. */
function thumbprintOf({ crv, kty, x, y }: JsonWebKey): string {
  return createHash('sha256').update(JSON.stringify({ crv, kty, x, y })).digest('base64url')
}

/** The body of a response, or the error. */
function fetchText(options: RequestOptions): Promise<string> {
  return new Promise((resolve) => {
    const outgoing = requestHttp({ ...options, agent: false }, (response) => {
      void readBody(response).then((text) =>
        resolve(response.statusCode === 200 ? text : `${response.statusCode}`),
      )
    })
    outgoing.on('error', (error) => resolve(error.message))
    outgoing.end()
  })
}

const newKeys = () => generateKeyPairSync('ec', { namedCurve: 'P-256' })

/** A root, and an intermediate that signs. */
function createAuthorities() {
  const validity = { from: new Date(Date.now() - 30 * DAY_MS), to: new Date(Date.now() + 3650 * DAY_MS) }
  const root = authorityCertificate('Test root', validity)
  const signer = { commonName: 'Test root', key: signingKeyOf(root) }
  const own = authorityCertificate('Test intermediate', validity, signer)
  const issuer = {
    commonName: 'Test intermediate',
    key: signingKeyOf(own),
    publicKey: createPublicKey(own.key),
  }
  return {
    root: root.cert,
    issue: (host: string, publicKey: KeyObject, until: Validity) =>
      certifiedKey([host], publicKey, issuer, until) + own.cert,
  }
}

/** Names and key of a certificate request (RFC 2986 §4); null unless it is signed with that key. */
function readRequest(der: Buffer): { names: string[]; publicKey: KeyObject } | null {
  const [body, , signature] = partsOf(contentOf(der))
  const [, , key, attributes] = partsOf(contentOf(body as Buffer))
  const publicKey = createPublicKey({ key: key as Buffer, format: 'der', type: 'spki' })
  // A BIT STRING begins with the number of unused bits.
  const bits = contentOf(signature as Buffer).subarray(1)
  if (!verify('sha256', body as Buffer, publicKey, bits)) return null
  const [attribute] = partsOf(contentOf(attributes as Buffer))
  const [, values] = partsOf(contentOf(attribute as Buffer))
  const [extensions] = partsOf(contentOf(values as Buffer))
  const names = partsOf(contentOf(extensions as Buffer)).flatMap((extension) => {
    const [name, value] = partsOf(contentOf(extension))
    const isAltName = contentOf(name as Buffer).toString('hex') === '551d11'
    const list = isAltName ? partsOf(contentOf(contentOf(value as Buffer))) : []
    return list.map((one) => contentOf(one).toString('ascii'))
  })
  return { names, publicKey }
}

/** Where the content of the first DER element begins, and where it ends (X.690 §8.1). */
function bounds(der: Buffer): { from: number; to: number } {
  const short = der[1] as number
  const from = short < 0x80 ? 2 : 2 + (short & 0x7f)
  const length = short < 0x80 ? short : der.readUIntBE(2, short & 0x7f)
  return { from, to: from + length }
}

function contentOf(der: Buffer): Buffer {
  const { from, to } = bounds(der)
  return der.subarray(from, to)
}

function partsOf(content: Buffer): Buffer[] {
  const parts: Buffer[] = []
  for (let rest = content; rest.length > 0; ) {
    const { to } = bounds(rest)
    parts.push(rest.subarray(0, to))
    rest = rest.subarray(to)
  }
  return parts
}
