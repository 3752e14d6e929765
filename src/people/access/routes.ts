/** Browser sign-in and login links (accounts.md section 9, own-operations.md section 7). */
import type { IncomingHttpHeaders } from 'node:http'
import { BadRequest, Forbidden, Unauthenticated } from '../../base/process/errors.ts'
import { described, flag, media, message, nothing, object, optional, text } from '../../base/shape.ts'
import { htmlReply, jsonReply } from '../../platform/http/answer/reply.ts'
import type { FailedAttempts } from '../../platform/http/limits/failed-attempts.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import { textParam } from '../../platform/http/request/inputs.ts'
import { type Caller, cookieValue, SESSION_COOKIE } from '../../platform/http/rights/auth.ts'
import type { AccountDirectory } from '../accounts/account-directory.ts'
import type { AuditLog } from '../accounts/audit-log.ts'
import type { AccountSettings } from '../accounts/settings.ts'
import type { UserDirectory } from '../accounts/user-directory.ts'
import { type Keys, LOCAL_KEY_ID } from '../keys/api-keys.ts'
import type { FailedSignIns } from '../sign-in/failed-sign-ins.ts'
import type { Passkeys } from '../sign-in/passkeys/passkeys.ts'
import { passkeyResponse, REQUEST_OPTIONS } from '../sign-in/passkeys/shapes.ts'
import type { GivenProof, PasswordSignIn } from '../sign-in/password-sign-in.ts'
import { secretParam } from '../sign-in/proof-params.ts'
import { type SessionOpening, type SignInContext, sessionCookie } from '../sign-in/session-opening.ts'
import { sessionRoutes } from '../sign-in/session-routes.ts'
import type { SessionSource, Sessions } from '../sign-in/sessions.ts'
import { type AllowedCallers, isBoundToAddresses } from './authenticator.ts'

const api = operationsOf({ tag: 'Account', auth: 'public' })
const NOT_SIGNED_IN = object('Not signed in', {
  message: text('What is wrong'),
  tfa_required: optional(flag('The password is right and a code or passkey is needed; absent otherwise')),
  passkey: optional(described('Present if the user has passkeys: one of them will do', REQUEST_OPTIONS)),
})
const SIGNED_OUT = object('Signed out', {
  message: text('What was done'),
  logout_redirect_url: optional(text('Where the browser goes next; present if the account has set it')),
})

interface AccountRouteParts {
  keys: Keys
  audit: Pick<AuditLog, 'record'>
  failedSignIns: Pick<FailedSignIns, 'note'>
  sessions: Sessions
  sessionOpening: SessionOpening
  passwordSignIn: PasswordSignIn
  passkeys: Pick<Passkeys, 'beginSignIn'>
  userDirectory: Pick<UserDirectory, 'byId'>
  settings: Pick<AccountSettings, 'logoutRedirectUrl'>
  allowedCallers: AllowedCallers
  failedAttempts: FailedAttempts
  publicUrl: string
  accounts: Pick<AccountDirectory, 'byId'>
  firstAccountId: string
}

export function accountRoutes(parts: AccountRouteParts): Operation[] {
  return [...signInRoutes(parts), passkeyRoute(parts.passkeys), ...sessionRoutes(parts)]
}

function passkeyRoute(passkeys: Pick<Passkeys, 'beginSignIn'>): Operation {
  return api.post('/sendwright/v1/passkeys/sign-ins', {
    id: 'beginPasskeySignIn',
    audit: { exempt: 'changes nothing' },
    summary: 'Begin to sign in with a passkey; what the browser returns goes to POST /session',
    answers: { 200: REQUEST_OPTIONS, 400: 'The public URL allows no passkeys' },
    handler: async () => passkeys.beginSignIn(),
  })
}

function signInRoutes(parts: AccountRouteParts): Operation[] {
  const { sessions, settings, publicUrl, audit } = parts
  const { redeem, signInByKey, signInByPasskey, signInUser } = createSignIn(parts)
  return [
    api.get('/login/{token}', {
      id: 'redeemLoginLink',
      audit: { by: 'operation' },
      summary: 'Open a one-time link: starts a browser session',
      description: 'HEAD, and a prefetching GET, do not use the link up.',
      opensByLink: true,
      answers: {
        200: media('text/html', 'Signed in; the cookie is set'),
        307: nothing('To https: over plain HTTP, with `SENDWRIGHT_ACME`'),
        404: media('text/html', 'Used, or too old'),
        503: [media('text/html', 'To a prefetching browser'), message('Service Unavailable', 'Unavailable')],
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
    api.post('/sendwright/v1/session', {
      id: 'signIn',
      audit: { by: 'operation' },
      summary: 'Start a browser session, as a user or with an API key',
      params: {
        email: secretParam('Of a user'),
        password: secretParam('Of the user'),
        code: secretParam('If the response has tfa_required: of the authenticator app, or a recovery code'),
        passkey: passkeyResponse('AuthenticationResponseJSON of the browser: alone, or in place of the code'),
        key: textParam('An API key that is not a sending key, instead of a user'),
      },
      answers: {
        200: message('Signed in', 'Signed in; the cookie is set'),
        401: NOT_SIGNED_IN,
        429: 'Too many attempts',
      },
      async handler(context) {
        const { email, password, code, passkey, key } = context.input()
        const opened =
          email !== undefined
            ? await signInUser(email, { password: password ?? missing('password'), code, passkey }, context)
            : passkey !== undefined
              ? await signInByPasskey(passkey, context)
              : await signInByKey(key ?? missing('key'), context)
        const cookie = sessionCookie(opened.secret, context.isSecure, opened.lifetimeMs)
        return jsonReply({ message: 'Signed in' }, { headers: { 'set-cookie': cookie } })
      },
    }),
    api.delete('/sendwright/v1/session', {
      id: 'signOut',
      audit: { by: 'operation' },
      summary: 'End the browser session',
      answers: { 200: SIGNED_OUT },
      async handler({ headers, isSecure, remoteAddress, requestId }) {
        const secret = cookieValue(headers, SESSION_COOKIE)
        const session = secret && (await sessions.find(secret))
        if (session) {
          const { accountId, id, user } = session
          const caller = { accountId, keyId: id, ...(user && { userId: user.id }) }
          const actor = { remoteAddress, requestId, caller }
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
    api.post('/sendwright/v1/login-links', {
      id: 'createLoginLink',
      summary: 'Create a one-time link that signs a browser in',
      auth: { area: 'keys', access: 'write', only: 'itself' },
      answers: { 200: object('The link', { url: text('Its address', { only: { format: 'uri' } }) }) },
      async handler({ caller }) {
        // Keys and users of a parent open no session in its subaccount.
        if (caller.parentAccountId !== undefined && caller.keyId !== LOCAL_KEY_ID)
          throw new Forbidden(undefined, { why: 'a parent account opens no session in its subaccount' })
        return { url: `${publicUrl}/login/${await sessions.createLink(sourceOf(caller))}` }
      },
    }),
  ]
}

/** The ways to open a session. */
function createSignIn(parts: AccountRouteParts) {
  const { keys, sessions, sessionOpening, passwordSignIn, allowedCallers } = parts
  const { failedAttempts, failedSignIns } = parts

  /** The session opened by a link; null for an invalid link. */
  async function redeem(token: string, context: SignInContext) {
    const source = await sessions.redeemLink(token)
    const opened = source && (await sessionOpening.open(source, 'link', context))
    if (!opened) failedSignIns.note({ remoteAddress: context.remoteAddress, way: 'link' })
    return opened
  }

  /** The session opened by a key. @throws Unauthenticated for a wrong key or a sending key; TooManyRequests */
  async function signInByKey(key: string, context: SignInContext) {
    const { remoteAddress } = context
    const holder = await keys.authenticate(key)
    const mayCall =
      holder !== null &&
      (!isBoundToAddresses(holder) || (await allowedCallers.allows(holder.accountId, remoteAddress)))
    if (!mayCall) {
      failedSignIns.note({ remoteAddress, way: 'session' })
      failedAttempts.wrongKey(remoteAddress)
      await failedAttempts.delay(remoteAddress)
      throw notSignedIn()
    }
    const source = { accountId: holder.accountId, keyId: holder.keyId }
    const opened = await sessionOpening.open(source, 'key', context)
    if (opened) return opened
    failedSignIns.note({ remoteAddress, way: 'session' })
    throw notSignedIn()
  }

  /** @throws as PasswordSignIn.authenticateByPasskey */
  async function signInByPasskey(response: string, context: SignInContext) {
    const user = await passwordSignIn.authenticateByPasskey(response, context.remoteAddress)
    const opened = await sessionOpening.openForUser(user, 'passkey', context)
    if (!opened) throw notSignedIn()
    return opened
  }

  /** The session of a user. @throws as PasswordSignIn.authenticate */
  async function signInUser(email: string, proof: GivenProof, context: SignInContext) {
    const user = await passwordSignIn.authenticate(email, proof, context.remoteAddress)
    const opened = await sessionOpening.openForUser(user, 'password', context)
    if (!opened) throw notSignedIn()
    return opened
  }

  return { redeem, signInByKey, signInByPasskey, signInUser }
}

/** One text for all causes: it tells nothing about the key or the user. */
const notSignedIn = () => new Unauthenticated(undefined, { why: 'nobody may sign in with this' })

function missing(name: string): never {
  throw new BadRequest(`Missing mandatory parameter: ${name}`)
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
