/** Signing in with an OpenID Connect provider, over HTTP (own-operations.md section 7). */
import { NotFound, Unavailable } from '../../base/process/errors.ts'
import { flag, media, message, nothing, nullable, object, text } from '../../base/shape.ts'
import { escapeHtml, PAGE_POLICY, smallPage } from '../../platform/http/answer/pages.ts'
import { htmlReply, jsonReply, redirectReply } from '../../platform/http/answer/reply.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import { flagParam, type InputOf, parsedParam } from '../../platform/http/request/inputs.ts'
import type { FailedSignIns } from '../sign-in/failed-sign-ins.ts'
import { type SessionOpening, type SignInContext, sessionCookie } from '../sign-in/session-opening.ts'
import type { Attempts } from './attempts.ts'
import { SignInRefused } from './refused.ts'
import type { OidcSignIn } from './sign-in.ts'

export const CALLBACK_PATH = '/sendwright/v1/oidc/callback'
const api = operationsOf({ tag: 'Users', auth: 'public' })
/** A repeated one stays repeated, and is refused. */
const OF_PROVIDER = parsedParam('Of the provider', (params, name) => params.texts(name))
/** The provider's answer (RFC 6749 §4.1.2, RFC 9207); other parameters are ignored. */
const ANSWER = {
  code: OF_PROVIDER,
  state: OF_PROVIDER,
  iss: OF_PROVIDER,
  error: OF_PROVIDER,
  error_description: OF_PROVIDER,
}
const RETRY_SECONDS = 10

interface OidcRouteParts {
  /** Null: the operator has named no provider. */
  signIn: OidcSignIn | null
  attempts: Attempts
  sessionOpening: SessionOpening
  failedSignIns: Pick<FailedSignIns, 'note'>
  publicUrl: string
  /** Null: passkeys do not work here. */
  passkeyOrigin: string | null
}

export function oidcRoutes({
  signIn,
  attempts,
  sessionOpening,
  failedSignIns,
  publicUrl,
  passkeyOrigin,
}: OidcRouteParts): Operation[] {
  const provided = () => {
    if (signIn === null) throw new NotFound('No OpenID Connect provider is configured')
    return signIn
  }

  async function complete(answer: InputOf<typeof ANSWER>, context: SignInContext) {
    const attempt = attempts.read(context.headers, context.isSecure)
    const { user, isFresh } = await provided().complete(queryOf(answer), attempt, context)
    const opened = await sessionOpening.openForUser(user, 'oidc', context, isFresh)
    if (opened === null) throw new SignInRefused('Your account is closed, or your user was changed meanwhile')
    const cookies = [
      sessionCookie(opened.secret, context.isSecure, opened.lifetimeMs),
      attempts.noCookie(context.isSecure),
    ]
    // Always there: nothing in the request names where to go.
    return redirectReply(`${publicUrl}/`, { headers: { 'set-cookie': cookies, 'cache-control': 'no-store' } })
  }

  return [
    api.get('/sendwright/v1/sign-in-methods', {
      id: 'readSignInMethods',
      summary: 'Ways to sign in to the dashboard',
      answers: {
        200: object('Ways to sign in', {
          password: flag('Always true'),
          oidc: nullable(object('The OpenID Connect provider; null: none', { label: text('Of its button') })),
          passkey: nullable(
            object('Passkeys; null: the public URL allows none', {
              origin: text('Of the pages where they work', { example: 'https://mail.example.com' }),
            }),
          ),
        }),
      },
      handler: async () => ({
        password: true,
        oidc: signIn === null ? null : { label: signIn.label },
        passkey: passkeyOrigin === null ? null : { origin: passkeyOrigin },
      }),
    }),
    api.post('/sendwright/v1/oidc/sign-ins', {
      id: 'beginOidcSignIn',
      audit: { exempt: 'changes nothing' },
      summary: 'Begin to sign in with the OpenID Connect provider',
      params: {
        proof: flagParam('true: the provider asks again who one is, which counts as proof (`/me/proof`)', {
          default: false,
        }),
      },
      answers: {
        200: object('Begun; the cookie binds the sign-in to the browser', {
          url: text('Where the browser goes on', { only: { format: 'uri' } }),
        }),
        404: 'No provider is configured',
        503: 'The provider does not answer',
      },
      async handler({ isSecure, input }) {
        try {
          const { url, attempt } = await provided().begin(input().proof)
          return jsonReply({ url }, { headers: { 'set-cookie': attempts.cookie(attempt, isSecure) } })
        } catch (error) {
          throw error instanceof SignInRefused ? new Unavailable(RETRY_SECONDS, {}, error.message) : error
        }
      },
    }),
    api.get(CALLBACK_PATH, {
      id: 'completeOidcSignIn',
      summary: 'Where the provider sends the browser back to: starts a browser session',
      opensByLink: true,
      params: ANSWER,
      answers: {
        302: nothing('Signed in; the cookie is set'),
        307: nothing('To https: over plain HTTP, with `SENDWRIGHT_ACME`'),
        400: media('text/html', 'A page: begun in another browser, or too long ago'),
        403: media('text/html', 'A page: refused, with the reason'),
        404: 'No provider is configured',
        503: [
          media('text/html', 'A page: the provider does not answer'),
          message('Service Unavailable', 'Unavailable'),
        ],
      },
      async handler(context) {
        try {
          return await complete(context.input(), context)
        } catch (error) {
          if (!(error instanceof SignInRefused)) throw error
          failedSignIns.note({ remoteAddress: context.remoteAddress, way: 'oidc' })
          return refusalPage(error, publicUrl)
        }
      },
    }),
  ]
}

const queryOf = (answer: InputOf<typeof ANSWER>) =>
  new URLSearchParams(
    Object.entries(answer).flatMap(([name, texts]) => texts.map((text): [string, string] => [name, text])),
  )

const refusalPage = ({ message, status }: SignInRefused, publicUrl: string) =>
  htmlReply(
    smallPage('You are not signed in', [
      `<p>${escapeHtml(message)}.</p>`,
      `<p><a href="${escapeHtml(publicUrl)}/">To the sign-in page</a></p>`,
    ]),
    { status, headers: { 'content-security-policy': PAGE_POLICY, 'cache-control': 'no-store' } },
  )
