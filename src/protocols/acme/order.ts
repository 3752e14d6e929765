/**
 * Orders a certificate for one host by ACME (RFC 8555) with the HTTP-01 challenge:
 *
 *  1. an account with the authority, registered at the first order (§7.3)
 *  2. an order for the host (§7.4)
 *  3. the response to its challenge is published, and the authority notified (§8.3, §7.5.1)
 *  4. once it has fetched the response: a new key, a request signed with it, the certificate (§7.4, §7.4.2)
 *  5. the certificate must match key and host before it is used
 *
 * Failures of the authority or the network are returned, not thrown. Left out: other challenges, several names in
 * one certificate, external account binding, revocation.
 */

import { createPrivateKey, generateKeyPairSync, X509Certificate } from 'node:crypto'
import { createSecureContext } from 'node:tls'
import { pause } from '../../base/flow/pause.ts'
import { certificateRequest } from '../../base/net/certificate.ts'
import type { Clock } from '../../base/time/clock.ts'
import { MINUTE_MS } from '../../base/time/durations.ts'
import { type AcmeClient, AcmeProblem, createAcmeClient, plainText, urlIn } from './client.ts'
import { type AcmeExchange, AuthorityUnreachable, exchangeOverHttp } from './http.ts'

export type IssueOutcome =
  /** `chain` and `key` in PEM, `expiresAt` in Unix milliseconds. */
  | { kind: 'issued'; chain: string; key: string; expiresAt: number }
  /** `why`: for the owner of the host. `retryAfterMs`: what the authority asked for, 0 if nothing. */
  | { kind: 'failed'; why: string; retryAfterMs: number }

/** The account with one authority, stored by the caller. */
interface AcmeAccount {
  /** PKCS #8, PEM, P-256. */
  key: string
  /** Null: not registered with the authority yet. */
  url: string | null
  /** `mailto:` addresses for its notices. */
  contact: readonly string[]
  /** The authority still has another contact. */
  contactChanged: boolean
}

export interface AcmeAccounts {
  /** The account with this authority; its key is created and stored at the first call. */
  get(directory: string): Promise<AcmeAccount>
  /** The authority has registered the account under `url`, with the present contact. */
  registered(directory: string, url: string): Promise<void>
  /** The authority no longer knows the account: it is registered again at the next order. */
  forgotten(directory: string): Promise<void>
}

/** Publishes the token's response at /.well-known/acme-challenge/{token}. */
type Publish = (token: string, answer: string) => Promise<void>

export type Issuer = ReturnType<typeof createIssuer>

/** Authorities answer within seconds; a validation may take a minute. */
const ORDER_MAX_MS = 5 * MINUTE_MS
const POLL_MIN_MS = 500
const POLL_MAX_MS = 10_000
/** Base64url with at least 128 bits of entropy (§8.3); used in a path and as a key in the store. */
export const TOKEN = /^[A-Za-z0-9_-]{16,128}$/
/** One host has one authorization with a handful of challenges. */
const CHALLENGES_MAX = 20

/** The order cannot be fulfilled; the text says why. */
class OrderFailed extends Error {}

export function createIssuer(options: {
  directory: string
  accounts: AcmeAccounts
  clock: Clock
  exchange?: AcmeExchange
}) {
  const { directory, accounts, clock, exchange = exchangeOverHttp } = options

  async function order(host: string, publish: Publish, signal: AbortSignal): Promise<IssueOutcome> {
    const account = await accounts.get(directory)
    const client = createAcmeClient({
      directory,
      key: createPrivateKey(account.key),
      accountUrl: account.url,
      exchange,
      signal,
      now: () => clock.now(),
    })
    if (account.url === null || account.contactChanged)
      await accounts.registered(directory, await client.register(account.contact))
    const poll: Poll = (url, isPending) => pollUntil({ client, clock, signal }, url, isPending)
    const identifiers = [{ type: 'dns', value: host }]
    const created = await client.post({ resource: 'newOrder' }, { identifiers })
    await authorize(client, created.fields, { host, publish, poll })
    const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const csr = certificateRequest([host], keys).toString('base64url')
    await client.post(urlIn(created.fields, 'finalize'), { csr })
    const done = await poll(
      urlIn({ location: created.location }, 'location'),
      ({ status }) => status !== 'valid' && status !== 'invalid',
    )
    if (done['status'] === 'invalid')
      throw new OrderFailed(`The certificate authority gave the order up: ${detailIn(done)}`)
    const { text: chain } = await client.post(urlIn(done, 'certificate'))
    const key = keys.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
    return { kind: 'issued', chain, key, expiresAt: checkedExpiry(chain, key, host, clock.now()) }
  }

  return {
    /**
     * Orders a certificate; `publish` is awaited before the authority is notified. Does not reject for failures of
     * the authority or the network. @throws when `signal` aborts, and what `publish` or the accounts throw
     */
    async issue(host: string, publish: Publish, signal: AbortSignal): Promise<IssueOutcome> {
      const deadline = new AbortController()
      const timer = clock.setTimer(ORDER_MAX_MS, () => deadline.abort())
      try {
        return await order(host, publish, AbortSignal.any([signal, deadline.signal]))
      } catch (error) {
        signal.throwIfAborted()
        if (error instanceof AcmeProblem && error.type === 'accountDoesNotExist')
          await accounts.forgotten(directory)
        if (deadline.signal.aborted)
          return failed(`The certificate authority was not done after ${MINUTES} minutes.`)
        if (error instanceof AcmeProblem) return failed(error.message, error.retryAfterMs)
        if (error instanceof OrderFailed || error instanceof AuthorityUnreachable)
          return failed(error.message)
        throw error
      } finally {
        timer.cancel()
      }
    },
  }
}

const MINUTES = ORDER_MAX_MS / MINUTE_MS
const failed = (why: string, retryAfterMs = 0): IssueOutcome => ({ kind: 'failed', why, retryAfterMs })

type Fields = Readonly<Record<string, unknown>>
type Poll = (url: string, isPending: (fields: Fields) => boolean) => Promise<Fields>

/** Proves control of the host: publishes the challenge response and waits for the validation. */
async function authorize(
  client: AcmeClient,
  order: Fields,
  { host, publish, poll }: { host: string; publish: Publish; poll: Poll },
): Promise<void> {
  const urls = listIn(order, 'authorizations')
  const url = urls.length === 1 ? urlIn({ authorization: urls[0] }, 'authorization') : ''
  const fields: Fields = url === '' ? {} : (await client.post(url)).fields
  if (fieldsIn(fields, 'identifier')['value'] !== host)
    throw new OrderFailed('The certificate authority asks about another host than the ordered one.')
  if (fields['status'] === 'valid') return // validated recently
  const challenge = challengesIn(fields).find(({ type }) => type === 'http-01')
  const token = challenge?.['token']
  if (challenge === undefined || typeof token !== 'string' || !TOKEN.test(token))
    throw new OrderFailed('The certificate authority offers no usable http-01 challenge.')
  await publish(token, client.keyAuthorization(token))
  await client.post(urlIn(challenge, 'url'), {})
  const result = await poll(url, ({ status }) => status === 'pending')
  if (result['status'] === 'valid') return
  const faults = challengesIn(result).map(detailIn).filter(Boolean)
  throw new OrderFailed(
    `The certificate authority could not validate ${host}: ${faults[0] ?? 'it does not say why.'}`,
  )
}

const challengesIn = (authorization: Fields): Fields[] =>
  listIn(authorization, 'challenges').map((challenge) => fieldsIn({ challenge }, 'challenge'))

function listIn(fields: Fields, name: string): unknown[] {
  const list = fields[name]
  return Array.isArray(list) ? list.slice(0, CHALLENGES_MAX) : []
}

function fieldsIn(fields: Fields, name: string): Fields {
  const value = fields[name]
  return typeof value === 'object' && value !== null ? (value as Fields) : {}
}

/** Text of the problem in a resource, '' without one. */
function detailIn(fields: Fields): string {
  const { detail } = fieldsIn(fields, 'error')
  return detail === undefined ? '' : plainText(detail)
}

/** Polls with growing intervals until the order's deadline. */
async function pollUntil(
  { client, clock, signal }: { client: AcmeClient; clock: Clock; signal: AbortSignal },
  url: string,
  isPending: (fields: Fields) => boolean,
): Promise<Fields> {
  for (let wait = POLL_MIN_MS; ; wait = Math.min(wait * 2, POLL_MAX_MS)) {
    const { fields } = await client.post(url)
    if (!isPending(fields)) return fields
    await pause(clock, wait, signal)
    signal.throwIfAborted()
  }
}

/** Returns its expiry. @throws OrderFailed unless the chain begins with a valid certificate for this key and host */
function checkedExpiry(chain: string, key: string, host: string, now: number): number {
  try {
    createSecureContext({ cert: chain, key })
    const leaf = new X509Certificate(chain)
    const expiresAt = Date.parse(leaf.validTo)
    if (leaf.checkHost(host) === undefined || !(expiresAt > now)) throw new Error('other host, or ended')
    return expiresAt
  } catch (error) {
    throw new OrderFailed('The certificate authority gave a certificate that is of no use here.', {
      cause: error,
    })
  }
}
