/**
 * Calls of the API of Gmail Postmaster Tools, version 2: the domains that the login may see, figures of a domain, and
 * which of Gmail's requirements it meets. Responses are bounded; an access token is requested for each read, which is
 * once a day.
 */
import type { Clock } from '../../../base/time/clock.ts'
import { isPlainObject } from '../../../base/values.ts'
import type { HttpClient } from '../../../platform/posts/http-client.ts'
import { NoAccessToken, requestTokens } from '../../../platform/posts/oauth/token-request.ts'
import { answered, jsonIn, SourceFailure, type StatusWords } from '../source-failure.ts'
import type { GoogleCredentials } from '../sources.ts'
import {
  complianceIn,
  dateOf,
  daysOf,
  type GmailDay,
  loopIdsIn,
  loopMetrics,
  METRICS,
  type Requirement,
  type Stat,
  statsIn,
} from './figures.ts'

export interface ListedDomain {
  name: string
  /** Null: the login may read it. */
  fault: string | null
}

export type PostmasterTools = Awaited<ReturnType<typeof openPostmasterTools>>

/** Reads figures and compliance, and the list of domains. */
const SCOPE =
  'https://www.googleapis.com/auth/postmaster.traffic.readonly https://www.googleapis.com/auth/postmaster.domain'
/** The largest that the API gives. */
const PAGE_SIZE = 200
/** Pages of domains, and of figures: 120 days of all metrics are 11. */
const PAGES_MAX = 25
const RESPONSE_BYTES = 1024 * 1024
const NAME = /^domains\/([a-z0-9.-]{1,253})$/

const WORDS: StatusWords = {
  who: 'Google',
  login: 'Google does not accept the login: make a new key or refresh token, and store it here.',
  denied:
    'Google denies access: add the account to the users of the domain in Postmaster Tools, and see that the Postmaster Tools API is enabled in its project.',
  missing: 'Google knows no such thing: the domain was removed from Postmaster Tools, or `api_url` is wrong.',
}

/** @throws SourceFailure without an access token */
export async function openPostmasterTools(
  parts: { client: Pick<HttpClient, 'send'>; clock: Clock; signal: AbortSignal },
  { settings, secrets }: GoogleCredentials,
) {
  const { client, clock, signal } = parts
  const token = await accessToken()
  const root = `${settings.api_url.replace(/\/+$/, '')}/v2`

  async function accessToken(): Promise<string> {
    try {
      const { accessToken: text } = await requestTokens(client, clock, {
        ...{ tokenUrl: settings.token_url, clientId: settings.client_id, grant: settings.grant },
        ...{ scope: settings.grant === 'jwt_bearer' ? SCOPE : null, clientAuth: 'body' },
        ...{ clientSecret: secrets.client_secret, refreshToken: secrets.refresh_token },
        username: settings.subject,
      })
      return text
    } catch (error) {
      if (!(error instanceof NoAccessToken)) throw error
      throw new SourceFailure('login', `Google gives no access token: ${error.message}`, error.retryMs)
    }
  }

  async function call(path: string, body?: object): Promise<unknown> {
    signal.throwIfAborted()
    const outcome = await client.send({
      url: root + path,
      method: body === undefined ? 'GET' : 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        accept: 'application/json',
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: Buffer.from(JSON.stringify(body)) }),
      responseBytes: RESPONSE_BYTES,
    })
    return jsonIn(answered(outcome, WORDS, clock.now()).body)
  }

  async function stats(
    domain: string,
    from: number,
    to: number,
    metrics: readonly object[],
  ): Promise<Stat[]> {
    const all: Stat[] = []
    let pageToken = ''
    for (let page = 0; page < PAGES_MAX; page++) {
      const answer = statsIn(
        await call(`/domains/${domain}/domainStats:query`, {
          metricDefinitions: metrics,
          timeQuery: { dateRanges: { dateRanges: [{ start: dateOf(from), end: dateOf(to) }] } },
          ...{ pageSize: PAGE_SIZE, aggregationGranularity: 'DAILY' },
          ...(pageToken !== '' && { pageToken }),
        }),
      )
      if (answer === null) throw malformed('the figures of a domain')
      all.push(...answer.stats.filter(({ day }) => day >= from && day <= to))
      pageToken = answer.nextPageToken
      if (pageToken === '') break
    }
    return all
  }

  return {
    /** @throws SourceFailure */
    async domains(): Promise<ListedDomain[]> {
      const all: ListedDomain[] = []
      let pageToken = ''
      for (let page = 0; page < PAGES_MAX; page++) {
        const query = new URLSearchParams({
          pageSize: String(PAGE_SIZE),
          ...(pageToken !== '' && { pageToken }),
        })
        const answer = domainsIn(await call(`/domains?${query}`))
        if (answer === null) throw malformed('the list of domains')
        all.push(...answer.domains)
        pageToken = answer.nextPageToken
        if (pageToken === '') break
      }
      return all
    },
    /** Days from `from` to `to`, first milliseconds of days. @throws SourceFailure */
    async days(domain: string, from: number, to: number): Promise<GmailDay[]> {
      const figures = await stats(domain, from, to, METRICS)
      const ids = loopIdsIn(figures)
      const loops = ids.length === 0 ? [] : await stats(domain, from, to, loopMetrics(ids))
      return daysOf([...figures, ...loops], ids)
    },
    /** @throws SourceFailure */
    async compliance(domain: string): Promise<Requirement[]> {
      const found = complianceIn(await call(`/domains/${domain}/complianceStatus`))
      if (found === null) throw malformed('the compliance of a domain')
      return found
    },
  }
}

const malformed = (what: string) =>
  new SourceFailure(
    'malformed',
    `Google's answer about ${what} cannot be read: it is no JSON of API version 2.`,
  )

function domainsIn(value: unknown): { domains: ListedDomain[]; nextPageToken: string } | null {
  if (!isPlainObject(value)) return null
  const { domains = [], nextPageToken = '' } = value
  if (!Array.isArray(domains) || typeof nextPageToken !== 'string') return null
  return {
    nextPageToken,
    domains: domains.flatMap((item) => {
      if (!isPlainObject(item)) return []
      const name = NAME.exec(String(item['name']).toLowerCase())?.[1]
      return name === undefined ? [] : [{ name, fault: faultOf(item) }]
    }),
  }
}

function faultOf({ permission, verificationState }: Record<string, unknown>): string | null {
  if (verificationState === 'UNVERIFIED')
    return 'The domain is not verified in Postmaster Tools: publish the TXT record that it asks for.'
  return permission === 'NONE' ? WORDS.denied : null
}
