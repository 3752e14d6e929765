/** Signing in from a browser, API keys, and what the installation is (accounts.md section 4, own-operations.md). */
import type { IncomingHttpHeaders } from 'node:http'
import { BadRequest, Forbidden, NotFound, Unauthenticated } from '../base/errors.ts'
import { type Caller, cookieValue, type Role, SESSION_COOKIE } from '../http/auth.ts'
import { formatIsoLocal } from '../http/dates.ts'
import type { FailedAttempts } from '../http/failed-attempts.ts'
import { type Context, type Operation, operation } from '../http/operation.ts'
import { htmlReply, jsonReply } from '../http/reply.ts'
import type { ApiKeyRow } from '../store/schema.ts'
import type { AuditLog } from './audit.ts'
import type { FailedSignIns } from './failed-sign-ins.ts'
import { KEY_KINDS, KEY_ROLES, type KeyKind, type Keys } from './keys.ts'
import { LOCAL_KEY_ID } from './local-key.ts'
import { sessionRoutes } from './session-routes.ts'
import type { Browser, SessionSource, Sessions } from './sessions.ts'

const TAG = 'Account'

export interface AccountRouteParts {
  keys: Keys
  audit: Pick<AuditLog, 'record'>
  failedSignIns: Pick<FailedSignIns, 'note'>
  sessions: Sessions
  failedAttempts: FailedAttempts
  publicUrl: string
  /** Whether a domain belongs to an account. */
  ownsDomain(accountId: string, domainName: string): Promise<boolean>
  describeSystem(): Promise<Record<string, unknown>>
}

export function accountRoutes(parts: AccountRouteParts): Operation[] {
  return [...signInRoutes(parts), ...sessionRoutes(parts.sessions), ...keyRoutes(parts)]
}

function signInRoutes(parts: AccountRouteParts): Operation[] {
  const { keys, sessions, failedAttempts, publicUrl, describeSystem, audit, failedSignIns } = parts
  const cookie = (secret: string, isSecure: boolean, maxAgeMs: number) =>
    `${SESSION_COOKIE}=${secret}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${maxAgeMs / 1000}${isSecure ? '; Secure' : ''}`
  return [
    operation({
      method: 'GET',
      path: '/login/{token}',
      id: 'redeemLoginLink',
      audit: { by: 'operation' },
      tag: TAG,
      summary: 'Open a one-time link: starts a browser session',
      description: 'HEAD, and GET by a browser that only fetches ahead, leave the link as it is.',
      auth: 'public',
      params: [],
      responses: {
        200: { description: 'Signed in; the cookie is set', contentType: 'text/html' },
        404: { description: 'Used, or too old', contentType: 'text/html' },
      },
      async handler(context) {
        const { path, isSecure, method, headers } = context
        if (method === 'HEAD') return htmlReply('', { headers: PAGE_POLICY })
        // A browser drops an answer like this, and asks again when somebody really opens the link.
        if (isPrefetch(headers)) return htmlReply(NOT_YET, { status: 503, headers: PAGE_POLICY })
        const opened = await redeem(path.token, context)
        if (!opened) return htmlReply(LINK_USED, { status: 404, headers: PAGE_POLICY })
        // A cookie set on a cross-site navigation is kept, but a redirect would not send it (SameSite=Strict):
        // the page goes on by itself, as a navigation of our own site.
        const cookies = { 'set-cookie': cookie(opened.secret, isSecure, opened.lifetimeMs) }
        return htmlReply(SIGNED_IN, { headers: { ...PAGE_POLICY, ...cookies } })
      },
    }),
    operation({
      method: 'POST',
      path: '/sendwright/v1/session',
      id: 'signIn',
      audit: { by: 'operation' },
      tag: TAG,
      summary: 'Start a browser session with an API key',
      auth: 'public',
      params: [
        { name: 'key', type: 'string', required: true, description: 'An API key that is not a sending key' },
      ],
      responses: { 200: { description: 'Signed in; the cookie is set' } },
      async handler(context) {
        const { params, isSecure } = context
        const opened = await signIn(params.required('key'), context)
        const headers = { 'set-cookie': cookie(opened.secret, isSecure, opened.lifetimeMs) }
        return jsonReply({ message: 'Signed in' }, { headers })
      },
    }),
    operation({
      method: 'DELETE',
      path: '/sendwright/v1/session',
      id: 'signOut',
      audit: { by: 'operation' },
      tag: TAG,
      summary: 'End the browser session',
      auth: 'public',
      params: [],
      responses: { 200: { description: 'Signed out' } },
      async handler({ headers, isSecure, remoteAddress, requestId }) {
        const secret = cookieValue(headers, SESSION_COOKIE)
        const session = secret && (await sessions.find(secret))
        if (session) {
          const { accountId, id } = session
          const actor = { remoteAddress, requestId, caller: { accountId, keyId: id } }
          await audit.record(actor, { action: 'session.close', subject: id, detail: {} })
        }
        if (secret) await sessions.close(secret)
        return jsonReply({ message: 'Signed out' }, { headers: { 'set-cookie': cookie('', isSecure, 0) } })
      },
    }),
    operation({
      method: 'POST',
      path: '/sendwright/v1/login-links',
      id: 'createLoginLink',
      tag: TAG,
      summary: 'Make a one-time link that signs a browser in',
      auth: { area: 'keys', access: 'write' },
      params: [],
      responses: { 200: { description: 'The link' } },
      async handler({ caller }) {
        return { url: `${publicUrl}/login/${await sessions.createLink(sourceOf(caller))}` }
      },
    }),
    operation({
      method: 'GET',
      path: '/sendwright/v1/system',
      id: 'readSystem',
      tag: TAG,
      summary: 'Version, mode, database, uptime, queue totals',
      auth: { area: 'domains', access: 'read' },
      params: [],
      responses: { 200: { description: 'The installation' } },
      handler: async () => describeSystem(),
    }),
  ]

  /** The session that a link opens; null for a link that counts no more. */
  async function redeem(token: string, context: SignInContext) {
    const source = await sessions.redeemLink(token)
    const opened = source && (await open(source, 'link', context))
    if (!opened) failedSignIns.note({ remoteAddress: context.remoteAddress, way: 'link' })
    return opened
  }

  /** The session that a key opens. @throws Unauthenticated for a wrong key and one that only sends; TooManyRequests */
  async function signIn(key: string, context: SignInContext) {
    const { remoteAddress } = context
    const holder = await keys.authenticate(key)
    if (!holder) {
      failedSignIns.note({ remoteAddress, way: 'session' })
      failedAttempts.wrongKey(remoteAddress)
      await failedAttempts.delay(remoteAddress)
      throw new Unauthenticated()
    }
    const opened = await open({ accountId: holder.accountId, keyId: holder.keyId }, 'key', context)
    if (opened) return opened
    failedSignIns.note({ remoteAddress, way: 'session' })
    throw new Unauthenticated()
  }

  /** The new session, once the sign-in is in the audit log: without a row nobody gets in. Null: no rights to sign in. */
  async function open(source: SessionSource, by: 'link' | 'key', context: SignInContext) {
    const opened = await sessions.open(source, browserOf(context))
    if (!opened) return null
    const { id, role, secret } = opened
    const { remoteAddress, requestId } = context
    const caller = { accountId: source.accountId, keyId: by === 'key' ? (source.keyId ?? id) : id }
    try {
      const change = { action: 'session.open', subject: id, detail: { by, role } }
      await audit.record({ caller, remoteAddress, requestId }, change)
    } catch (error) {
      await sessions.close(secret).catch(() => {})
      throw error
    }
    return opened
  }
}

type SignInContext = Context<string, Caller | null>

/** Whose rights a link has that this caller makes. */
function sourceOf({ accountId, kind, keyId, sessionKeyId }: Caller): SessionSource {
  if (kind === 'session') return { accountId, keyId: sessionKeyId ?? null }
  return { accountId, keyId: keyId === LOCAL_KEY_ID ? null : keyId }
}

const browserOf = ({ remoteAddress, headers }: SignInContext): Browser => ({
  remoteAddress,
  userAgent: headers['user-agent'] ?? '',
})

/** `Sec-Purpose: prefetch;prerender` (HTML standard), and its older names. */
const isPrefetch = (headers: IncomingHttpHeaders) =>
  [headers['sec-purpose'], headers['purpose'], headers['x-moz']].some((purpose) =>
    String(purpose ?? '').startsWith('prefetch'),
  )

/** No sandbox, which would keep the page from going on by itself. */
const PAGE_POLICY = { 'content-security-policy': "default-src 'none'; frame-ancestors 'none'" }

const page = (title: string, body: string, head = '') => `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>${title}</title>${head}
<meta name="viewport" content="width=device-width, initial-scale=1"></head>
<body><p>${body}</p></body></html>
`

const SIGNED_IN = page(
  'Signed in',
  '<a href="/">Continue</a>',
  '<meta http-equiv="refresh" content="0; url=/">',
)
const NOT_YET = page('Sign in', 'Open this link to sign in.')
const LINK_USED = page(
  'Link used',
  'This link has been used or is too old. Run <code>sendwright login-link</code> for a new one.',
)

function keyRoutes({ keys, ownsDomain }: AccountRouteParts): Operation[] {
  const kinds = KEY_KINDS.join(' ')
  return [
    operation({
      method: 'GET',
      path: '/v1/keys',
      id: 'listKeys',
      tag: TAG,
      summary: 'List API keys',
      auth: { area: 'keys', access: 'read' },
      params: [
        { name: 'domain_name', type: 'string', description: 'Only keys of this domain' },
        { name: 'kind', type: 'string', description: 'Only keys of this kind', values: KEY_KINDS },
      ],
      responses: { 200: { description: 'Keys without their secrets' } },
      async handler({ params, caller }) {
        const filter = { domainName: params.text('domain_name'), kind: params.text('kind') }
        const rows = await keys.list(caller.accountId, filter)
        return { total_count: rows.length, items: rows.map(keyView) }
      },
    }),
    operation({
      method: 'POST',
      path: '/v1/keys',
      id: 'createKey',
      audit: { given: ['role', 'kind', 'domain_name', 'user_id', 'email'], made: ['key.id'] },
      tag: TAG,
      summary: 'Make an API key; its secret is shown once',
      auth: { area: 'keys', access: 'write' },
      params: [
        { name: 'role', type: 'string', required: true, description: 'Rights', values: KEY_ROLES },
        { name: 'kind', type: 'string', description: 'Default user', values: KEY_KINDS },
        { name: 'domain_name', type: 'string', description: 'For kind domain' },
        { name: 'description', type: 'string', description: 'Free text' },
        { name: 'expiration', type: 'integer', description: 'Lifetime in seconds' },
        { name: 'user_id', type: 'string', description: 'For kind web' },
        { name: 'user_name', type: 'string', description: 'Free text' },
        { name: 'email', type: 'string', description: 'For kind web' },
      ],
      responses: { 200: { description: 'The key with its secret' } },
      async handler({ params, caller }) {
        const kind = (params.text('kind') ?? 'user') as KeyKind
        if (!KEY_KINDS.includes(kind))
          throw new BadRequest(`expected \`kind\` param to be one of [${kinds}] or absent`)
        const role = params.required('role') as Role
        if (!KEY_ROLES.includes(role))
          throw new BadRequest(`expected \`role\` param to be one of [${KEY_ROLES.join(' ')}]`)
        const domainName = params.text('domain_name')?.toLowerCase() ?? null
        await checkKind(kind, role, domainName, caller)
        const seconds = params.integer('expiration', { min: 1 })
        const lifetime = kind === 'web' ? Math.min(seconds ?? DAY_SECONDS, DAY_SECONDS) : seconds
        const { row, secret } = await keys.create({
          accountId: caller.accountId,
          kind,
          role,
          description: params.text('description') ?? '',
          domainName,
          requestor: params.text('email') ?? null,
          userName: params.text('user_name') ?? null,
          expiresAt: lifetime === undefined ? null : Date.now() + lifetime * 1000,
        })
        return { message: 'great success', key: { ...keyView(row), secret } }
      },
    }),
    operation({
      method: 'DELETE',
      path: '/v1/keys/{key_id}',
      id: 'deleteKey',
      tag: TAG,
      summary: 'Delete an API key',
      auth: { area: 'keys', access: 'write' },
      params: [],
      responses: { 200: { description: 'Deleted' } },
      async handler({ path, caller }) {
        await keys.remove(caller.accountId, path.key_id)
        return { message: 'key deleted' }
      },
    }),
  ]

  /** accounts.md section 4 rules 2 to 4. */
  async function checkKind(
    kind: KeyKind,
    role: Role,
    domainName: string | null,
    caller: Caller,
  ): Promise<void> {
    if (kind === 'domain') {
      if (!domainName) throw new BadRequest('Missing mandatory parameter: domain_name')
      if (!(await ownsDomain(caller.accountId, domainName))) throw new NotFound('Domain not found')
      if (role !== 'sending') throw new BadRequest('a key of kind domain must have the role sending')
    } else if (role === 'sending') {
      throw new BadRequest('the role sending is for keys of kind domain')
    }
    if (caller.role !== 'admin') throw new Forbidden()
  }
}

const DAY_SECONDS = 86_400

function keyView(row: ApiKeyRow): Record<string, unknown> {
  return {
    id: row.id,
    description: row.description,
    kind: row.kind,
    role: row.role,
    created_at: formatIsoLocal(new Date(row.created_at)),
    updated_at: formatIsoLocal(new Date(row.updated_at)),
    ...(row.expires_at !== null && { expires_at: formatIsoLocal(new Date(row.expires_at)) }),
    is_disabled: row.disabled_reason !== null || (row.expires_at !== null && row.expires_at <= Date.now()),
    ...(row.disabled_reason && { disabled_reason: row.disabled_reason }),
    domain_name: row.domain_name,
    requestor: row.requestor,
    user_name: row.user_name,
  }
}
