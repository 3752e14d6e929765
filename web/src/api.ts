import { ACTING_HEADER, actingHeaders } from './acting.ts'
import type * as Api from './api-types.ts'
import type { Answers } from './api-types.ts'

/**
 * The dashboard's only access to the service: its public HTTP API, same origin, session cookie. A failure is
 * a value of type `ApiFailure`, never an exception.
 *
 * Every request has `X-Requested-With`: it marks a request of a page, so that a 401 has no Basic challenge, which
 * would make the browser open its own password window.
 */

export type InboxItem = Api.CapturedMail

export type Attachment = Api.CapturedMessage['attachments'][number]

export type DkimResult = Api.CapturedMessage['authentication']['dkim'][number]

export type CapturedMessage = Api.CapturedMessage

export type Paging = Api.Paging

export interface Page<Item> {
  items: Item[]
  paging: Paging
}

/** The fields of an event that the dashboard shows; there are more (and a rejected one has no recipient). */
export interface MailEvent {
  event: string
  id: string
  /** Unix seconds with fraction. */
  timestamp: number
  'log-level': string
  recipient?: string
  severity?: 'temporary' | 'permanent'
  reason?: string
  url?: string
  ip?: string
  method?: string
  reject?: { reason: string; description: string }
  'delivery-status'?: {
    code: number
    message: string
    description: string
    'attempt-no': number
    'enhanced-code'?: string
    'mx-host'?: string
    'session-seconds'?: number
    'retry-seconds'?: number
    tls?: boolean
  }
}

export type Domain = Api.Answers['GET /v4/domains']['items'][number]

/** A refusal of the API, or `status` 0: no response. */
export interface ApiFailure {
  status: number
  message: string
  /** With 429: how long to wait. */
  retrySeconds?: number
  /** After a sign-in: the password is right, but a code of the authenticator app is needed. */
  codeNeeded?: boolean
  /** With `codeNeeded`: what a passkey would have to sign in place of the code. */
  passkey?: Api.PasskeyRequest
  /** The user has to show who they are, and may then do the same again. */
  proofNeeded?: boolean
}

export type Answer<T> = { ok: true; value: T } | { ok: false; failure: ApiFailure }

export interface InboxFilters {
  q?: string
  to?: string
  from?: string
  subject?: string
  body?: string
  tag?: string
  domain?: string
}

const OWN = '/sendwright/v1'
export const INBOX_STREAM_PATH = `${OWN}/inbox/stream`

const INBOX_PAGE_SIZE = 50 // about three screens
const EVENTS_MAX = 300 // the most one page of events may hold
const ANSWER_TIMEOUT_MS = 30_000 // a local service that has not responded by then will not
const SAVE_TIMEOUT_MS = 600_000 // a file of 100,000 events, read while it is sent

export const inboxPath = (filters: InboxFilters) => {
  const query = new URLSearchParams({ limit: String(INBOX_PAGE_SIZE) })
  for (const [name, value] of Object.entries(filters)) if (value) query.set(name, value)
  return `${OWN}/inbox?${query}`
}

export const rawPath = (id: string) => `${OWN}/inbox/${encodeURIComponent(id)}/raw`

export const attachmentPath = (id: string, n: number) =>
  `${OWN}/inbox/${encodeURIComponent(id)}/attachments/${n}`

/**
 * Path and query of a paging link. Links are absolute, with the configured public address; the page
 * may have been opened under another name, to which the cookie belongs.
 */
export const pathOfLink = (link: string) => {
  const { pathname, search } = new URL(link, window.location.origin)
  return pathname + search
}

export const listInbox = (path: string, signal?: AbortSignal) =>
  followJson<'GET /sendwright/v1/inbox'>(path, signal)

export const readMessage = (id: string, signal?: AbortSignal) =>
  getJson(`${OWN}/inbox/${encodeURIComponent(id)}`, signal)

export const deleteMessage = (id: string) => sendJson('DELETE', `${OWN}/inbox/${encodeURIComponent(id)}`)

export const deleteAllMessages = () => sendJson('DELETE', `${OWN}/inbox`)

export const readSystem = (signal?: AbortSignal) => getJson(`${OWN}/system`, signal)

export const signIn = (key: string) => sendJson('POST', `${OWN}/session`, { key })

/** `code` empty: none. `passkey`: in its place, what the browser returned. */
export const signInUser = (email: string, password: string, code: string, passkey?: string) =>
  sendJson('POST', `${OWN}/session`, { email, password, code, ...(passkey && { passkey }) })

export const beginPasskeySignIn = () => sendJson('POST', `${OWN}/passkeys/sign-ins`)

export const signInWithPasskey = (passkey: string) => sendJson('POST', `${OWN}/session`, { passkey })

export const readSignInMethods = () => getJson(`${OWN}/sign-in-methods`)

/** Where the browser goes on. `proof`: the provider asks again who is there. */
export const beginProviderSignIn = (proof: boolean) => sendJson('POST', `${OWN}/oidc/sign-ins`, { proof })

export const signOut = () => sendJson('DELETE', `${OWN}/session`)

export const acceptInvitation = (token: string, password: string) =>
  sendJson('POST', `${OWN}/invitations/accept`, { token, password })

export const requestPasswordReset = (email: string) => sendJson('POST', `${OWN}/password-resets`, { email })

export const resetPassword = (token: string, password: string) =>
  sendJson('POST', `${OWN}/password-resets/redeem`, { token, password })

/** Events of one message, newest first like the API's. */
export const listEvents = (domain: string, messageId: string, signal?: AbortSignal) => {
  const query = new URLSearchParams({ 'message-id': messageId, limit: String(EVENTS_MAX) })
  return getJson(`/v3/${encodeURIComponent(domain)}/events?${query}`, signal)
}

/** The first `bytesMax` bytes at `path`; `whole`: whether that was everything. */
export async function readBytes(
  path: string,
  bytesMax: number,
  signal?: AbortSignal,
): Promise<Answer<{ bytes: Uint8Array<ArrayBuffer>; whole: boolean }>> {
  const answer = await request(path, signal ? { signal } : {})
  if (!answer.ok) return answer
  const bytes = new Uint8Array(bytesMax)
  let length = 0
  try {
    for (const reader = answer.value.body?.getReader(); reader !== undefined; ) {
      const { done, value } = await reader.read()
      if (done) break
      const fits = value.subarray(0, bytesMax - length)
      bytes.set(fits, length)
      length += fits.length
      if (fits.length < value.length) {
        await reader.cancel()
        return { ok: true, value: { bytes, whole: false } }
      }
    }
  } catch (cause) {
    return noAnswer(cause)
  }
  return { ok: true, value: { bytes: bytes.subarray(0, length), whole: true } }
}

/** A path as `Answers` has it, with `{}` for each value and without its query: `/v3/ips/{}` of `/v3/ips/${ip}?limit=1`. */
type Plain<P extends string> = P extends `${infer Path}?${string}` ? Segments<Path> : Segments<P>
type Segments<P extends string> = P extends `${infer First}/${infer Rest}`
  ? `${Segment<First>}/${Segments<Rest>}`
  : Segment<P>
type Segment<S extends string> = `${number}` extends S ? '{}' : S
type Key<M extends string, P extends string> = Extract<`${M} ${Plain<P>}`, keyof Answers>
/** Only paths that the method has. */
type Path<M extends string, P extends string> = P & ([Key<M, P>] extends [never] ? never : unknown)
type Got<M extends string, P extends string> = Promise<Answer<Answers[Key<M, P>]>>

export const getJson = <const P extends string>(path: Path<'GET', P>, signal?: AbortSignal): Got<'GET', P> =>
  json(request(path, signal ? { signal } : {}))

/** The same for a path that is no literal, such as a link: `followJson<'GET /v3/lists/pages'>(link)`. */
export const followJson = <K extends keyof Answers>(
  path: string,
  signal?: AbortSignal,
): Promise<Answer<Answers[K]>> => json(request(path, signal ? { signal } : {}))

/** As the account of the session itself, whatever subaccount the pages act for. */
export const getOwnJson = <const P extends string>(
  path: Path<'GET', P>,
  signal?: AbortSignal,
): Got<'GET', P> => json(request(path, signal ? { signal } : {}, {}))

/** With a form, for the operations that take one. */
export const sendForm = <const M extends string, const P extends string>(
  method: M,
  path: Path<M, P>,
  fields: Readonly<Record<string, string>> | URLSearchParams,
): Got<M, P> => json(request(path, { method, body: new URLSearchParams(fields) }))

/** As a subaccount, whatever account the pages act for. */
export const sendAs = <const M extends string, const P extends string>(
  accountId: string,
  method: M,
  path: Path<M, P>,
): Got<M, P> => json(request(path, { method }, { [ACTING_HEADER]: accountId }))

/** With a form that has files. */
export const sendFiles = <const P extends string>(path: Path<'POST', P>, body: FormData): Got<'POST', P> =>
  json(request(path, { method: 'POST', body }, actingHeaders, SAVE_TIMEOUT_MS))

/**
 * Saves what a request returns as a file. A link with `download` would do for the own account, but a browser cannot add the
 * header of a subaccount to it, nor send a body.
 */
export async function saveFile(path: string, name: string, init: RequestInit = {}): Promise<Answer<null>> {
  const answer = await request(path, init, actingHeaders, SAVE_TIMEOUT_MS)
  if (!answer.ok) return answer
  try {
    const url = URL.createObjectURL(await answer.value.blob())
    const link = document.createElement('a')
    link.href = url
    link.download = name
    link.click()
    window.setTimeout(() => URL.revokeObjectURL(url), ANSWER_TIMEOUT_MS)
    return { ok: true, value: null }
  } catch (cause) {
    return noAnswer(cause)
  }
}

export const sendJson = <const M extends string, const P extends string>(
  method: M,
  path: Path<M, P>,
  body?: object,
  timeoutMs?: number,
): Got<M, P> =>
  json(
    request(
      path,
      {
        method,
        ...(body && { body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } }),
      },
      actingHeaders,
      timeoutMs,
    ),
  )

/** A question that takes a body. */
export const askJson = <const P extends string>(
  path: Path<'POST', P>,
  body: object,
  signal?: AbortSignal,
): Got<'POST', P> =>
  json(
    request(path, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { 'Content-Type': 'application/json' },
      ...(signal && { signal }),
    }),
  )

/** In the form that `accept` names. */
export const getJsonAs = <const P extends string>(
  path: Path<'GET', P>,
  accept: string,
  signal?: AbortSignal,
): Got<'GET', P> => json(request(path, { headers: { Accept: accept }, ...(signal && { signal }) }))

export async function getText(path: string, signal?: AbortSignal): Promise<Answer<string>> {
  const answer = await request(path, signal ? { signal } : {})
  if (!answer.ok) return answer
  try {
    return { ok: true, value: await answer.value.text() }
  } catch (cause) {
    return noAnswer(cause)
  }
}

async function request(
  path: string,
  init: RequestInit,
  ofAccount: Readonly<Record<string, string>> = actingHeaders,
  timeoutMs = ANSWER_TIMEOUT_MS,
): Promise<Answer<Response>> {
  const headers = new Headers(init.headers)
  for (const [name, value] of Object.entries(ofAccount)) headers.set(name, value)
  headers.set('X-Requested-With', 'XMLHttpRequest')
  const limit = AbortSignal.timeout(timeoutMs)
  const signal = init.signal ? AbortSignal.any([init.signal, limit]) : limit
  try {
    const response = await fetch(path, { ...init, headers, signal, credentials: 'same-origin' })
    if (response.ok) return { ok: true, value: response }
    return { ok: false, failure: await refusal(response) }
  } catch (cause) {
    return noAnswer(cause)
  }
}

async function json<T>(answer: Promise<Answer<Response>>): Promise<Answer<T>> {
  const response = await answer
  if (!response.ok) return response
  // Operations that answer so have no body, and no caller reads a value.
  if (response.value.status === 204) return { ok: true, value: undefined as T }
  try {
    // The contract defines the type, and the same service served this page.
    return { ok: true, value: (await response.value.json()) as T }
  } catch (cause) {
    return noAnswer(cause)
  }
}

/** With the API's own message if there is one. */
async function refusal(response: Response): Promise<ApiFailure> {
  const { status, statusText } = response
  const seconds = Number.parseInt(response.headers.get('retry-after') ?? '', 10)
  const wait = Number.isFinite(seconds) && seconds > 0 ? { retrySeconds: seconds } : {}
  const text = await response.text().catch(() => '')
  try {
    const body: unknown = JSON.parse(text)
    const sentence = typeof body === 'object' && body !== null ? sentenceOf(body) : undefined
    if (sentence !== undefined)
      return {
        status,
        message: sentence,
        ...wait,
        ...needsOf(body),
      }
  } catch {
    // Not JSON, for example a proxy's page: only its status can be shown.
  }
  return { status, message: `The service answered ${status} ${statusText}`.trim(), ...wait }
}

/** Some operations, such as those of webhooks, name the sentence otherwise. */
function sentenceOf(body: object): string | undefined {
  if ('message' in body) return String(body.message)
  if ('Reason' in body) return String(body.Reason)
  if ('Description' in body) return String(body.Description)
  return undefined
}

function needsOf(body: unknown): Pick<ApiFailure, 'codeNeeded' | 'passkey' | 'proofNeeded'> {
  const { tfa_required, passkey, proof_required } = body as {
    tfa_required?: true
    passkey?: Api.PasskeyRequest
    proof_required?: true
  }
  return {
    ...(tfa_required === true && { codeNeeded: true, ...(passkey && { passkey }) }),
    ...(proof_required === true && { proofNeeded: true }),
  }
}

const noAnswer = (cause: unknown): { ok: false; failure: ApiFailure } => ({
  ok: false,
  failure: { status: 0, message: `No usable answer from the service: ${String(cause)}` },
})
