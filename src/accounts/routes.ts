/** Browser sign-in, API keys, and the description of the installation (accounts.md section 4, own-operations.md). */
import type { IncomingHttpHeaders } from 'node:http'
import { formatIsoLocal } from '../base/dates.ts'
import { BadRequest, Forbidden, NotFound, Unauthenticated } from '../base/errors.ts'
import { type Caller, cookieValue, type Role, SESSION_COOKIE } from '../http/auth.ts'
import type { FailedAttempts } from '../http/failed-attempts.ts'
import { type Operation, operation } from '../http/operation.ts'
import type { Params } from '../http/params.ts'
import { htmlReply, jsonReply } from '../http/reply.ts'
import type { ApiKeyRow } from '../store/schema.ts'
import { KEY_KINDS, KEY_ROLES, type KeyKind, type Keys } from './api-keys.ts'
import type { AuditLog } from './audit-log.ts'
import type { FailedSignIns } from './failed-sign-ins.ts'
import { LOCAL_KEY_ID } from './local-key.ts'
import { type SessionOpening, type SignInContext, sessionCookie } from './session-opening.ts'
import { sessionRoutes } from './session-routes.ts'
import type { SessionSource, Sessions } from './sessions.ts'
import { type AccountSettings, settingsRoutes } from './settings.ts'
import type { UserDirectory } from './users/directory.ts'
import type { PasswordSignIn } from './users/password-sign-in.ts'
import { CODE, PASSWORD, proofOf } from './users/proof-params.ts'

const TAG = 'Account'

export interface AccountRouteParts {
  keys: Keys
  audit: Pick<AuditLog, 'record'>
  failedSignIns: Pick<FailedSignIns, 'note'>
  sessions: Sessions
  sessionOpening: SessionOpening
  passwordSignIn: PasswordSignIn
  userDirectory: UserDirectory
  settings: AccountSettings
  failedAttempts: FailedAttempts
  publicUrl: string
  /** Whether a domain belongs to an account. */
  ownsDomain(accountId: string, domainName: string): Promise<boolean>
}

export function accountRoutes(parts: AccountRouteParts): Operation[] {
  return [
    ...signInRoutes(parts),
    ...sessionRoutes(parts.sessions),
    ...keyRoutes(parts),
    ...settingsRoutes(parts.settings),
  ]
}

function signInRoutes(parts: AccountRouteParts): Operation[] {
  const { keys, sessions, sessionOpening, passwordSignIn, settings } = parts
  const { failedAttempts, failedSignIns, publicUrl, audit } = parts
  return [
    operation({
      method: 'GET',
      path: '/login/{token}',
      id: 'redeemLoginLink',
      audit: { by: 'operation' },
      tag: TAG,
      summary: 'Open a one-time link: starts a browser session',
      description: 'HEAD, and a prefetching GET, do not use the link up.',
      auth: 'public',
      params: [],
      responses: {
        200: { description: 'Signed in; the cookie is set', contentType: 'text/html' },
        404: { description: 'Used, or too old', contentType: 'text/html' },
      },
      async handler(context) {
        const { path, isSecure, method, headers } = context
        if (method === 'HEAD') return htmlReply('', { headers: PAGE_POLICY })
        // A browser discards such a response and requests the link again when it is really opened.
        if (isPrefetch(headers)) return htmlReply(NOT_YET, { status: 503, headers: PAGE_POLICY })
        const opened = await redeem(path.token, context)
        if (!opened) return htmlReply(LINK_USED, { status: 404, headers: PAGE_POLICY })
        // A cookie set on a cross-site navigation is stored, but a redirect would not send it (SameSite=Strict):
        // the page navigates by itself, as a same-site request.
        const cookies = { 'set-cookie': sessionCookie(opened.secret, isSecure, opened.lifetimeMs) }
        return htmlReply(SIGNED_IN, { headers: { ...PAGE_POLICY, ...cookies } })
      },
    }),
    operation({
      method: 'POST',
      path: '/sendwright/v1/session',
      id: 'signIn',
      audit: { by: 'operation' },
      tag: TAG,
      summary: 'Start a browser session, as a user or with an API key',
      auth: 'public',
      params: [
        { name: 'email', type: 'string', description: 'Of a user' },
        { ...PASSWORD, required: false, description: 'Of the user' },
        { ...CODE, required: false, description: 'If the response has tfa_required; or a recovery code' },
        {
          name: 'key',
          type: 'string',
          description: 'An API key that is not a sending key, instead of a user',
        },
      ],
      responses: {
        200: { description: 'Signed in; the cookie is set' },
        401: { description: 'Not signed in; tfa_required: a code is needed' },
      },
      async handler(context) {
        const { params, isSecure } = context
        const email = params.bodyText('email')
        const opened =
          email === undefined
            ? await signIn(params.required('key'), context)
            : await signInUser(email, context)
        const headers = { 'set-cookie': sessionCookie(opened.secret, isSecure, opened.lifetimeMs) }
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
        const url = session ? await settings.logoutRedirectUrl(session.accountId) : null
        const cookies = { 'set-cookie': sessionCookie('', isSecure, 0) }
        return jsonReply(
          { message: 'Signed out', ...(url && { logout_redirect_url: url }) },
          { headers: cookies },
        )
      },
    }),
    operation({
      method: 'POST',
      path: '/sendwright/v1/login-links',
      id: 'createLoginLink',
      tag: TAG,
      summary: 'Create a one-time link that signs a browser in',
      auth: { area: 'keys', access: 'write' },
      params: [],
      responses: { 200: { description: 'The link' } },
      async handler({ caller }) {
        // Keys and users of a parent open no session in its subaccount.
        if (caller.parentAccountId !== undefined && caller.keyId !== LOCAL_KEY_ID) throw new Forbidden()
        return { url: `${publicUrl}/login/${await sessions.createLink(sourceOf(caller))}` }
      },
    }),
  ]

  /** The session opened by a link; null for an invalid link. */
  async function redeem(token: string, context: SignInContext) {
    const source = await sessions.redeemLink(token)
    const opened = source && (await sessionOpening.open(source, 'link', context))
    if (!opened) failedSignIns.note({ remoteAddress: context.remoteAddress, way: 'link' })
    return opened
  }

  /** The session opened by a key. @throws Unauthenticated for a wrong key or a sending key; TooManyRequests */
  async function signIn(key: string, context: SignInContext) {
    const { remoteAddress } = context
    const holder = await keys.authenticate(key)
    if (!holder) {
      failedSignIns.note({ remoteAddress, way: 'session' })
      failedAttempts.wrongKey(remoteAddress)
      await failedAttempts.delay(remoteAddress)
      throw new Unauthenticated()
    }
    const source = { accountId: holder.accountId, keyId: holder.keyId }
    const opened = await sessionOpening.open(source, 'key', context)
    if (opened) return opened
    failedSignIns.note({ remoteAddress, way: 'session' })
    throw new Unauthenticated()
  }

  /** The session of a user. @throws as PasswordSignIn.authenticate */
  async function signInUser(email: string, context: SignInContext & { params: Params }) {
    const { params, remoteAddress } = context
    const user = await passwordSignIn.authenticate(email, proofOf(params, 'password'), remoteAddress)
    const opened = await sessionOpening.openForUser(user, 'password', context)
    if (!opened) throw new Unauthenticated()
    return opened
  }
}

/** The source of a link that this caller creates, which decides its rights. */
function sourceOf({ accountId, kind, keyId, sessionKeyId, sessionUser }: Caller): SessionSource {
  if (sessionUser !== undefined) return { accountId, keyId: null, user: sessionUser }
  if (kind === 'session') return { accountId, keyId: sessionKeyId ?? null }
  return { accountId, keyId: keyId === LOCAL_KEY_ID ? null : keyId }
}

/** `Sec-Purpose: prefetch;prerender` (HTML standard), and its older names. */
const isPrefetch = (headers: IncomingHttpHeaders) =>
  [headers['sec-purpose'], headers['purpose'], headers['x-moz']].some((purpose) =>
    String(purpose ?? '').startsWith('prefetch'),
  )

/** No sandbox, which would keep the page from navigating by itself. */
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

function keyRoutes({ keys, ownsDomain, userDirectory }: AccountRouteParts): Operation[] {
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
      summary: 'Create an API key; its secret is shown once',
      auth: { area: 'keys', access: 'write' },
      params: [
        { name: 'role', type: 'string', required: true, description: 'Rights', values: KEY_ROLES },
        { name: 'kind', type: 'string', description: 'Default user', values: KEY_KINDS },
        { name: 'domain_name', type: 'string', description: 'For kind domain' },
        { name: 'description', type: 'string', description: 'Free text' },
        { name: 'expiration', type: 'integer', description: 'Lifetime in seconds' },
        { name: 'user_id', type: 'string', description: 'Owner of the key, a user of the account' },
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
        const userId = params.text('user_id') ?? null
        if (userId !== null) await userDirectory.read(caller.accountId, userId)
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
          userId,
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
