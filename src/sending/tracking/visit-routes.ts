/**
 * What a recipient's mail program or browser fetches: pixel, links, unsubscribe pages (tracking.md, public tracking
 * host). Public under any host name: the token alone authorises a request. Nothing here reads or sets a cookie.
 *
 * GET and HEAD change nothing except statistics. Of the two kinds of POST, a mail program's (RFC 8058) gets an
 * empty response, the button's a page.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { media, nothing } from '../../base/shape.ts'
import type { Clock } from '../../base/time/clock.ts'
import { bytesReply, htmlReply, Reply, redirectReply, textReply } from '../../platform/http/answer/reply.ts'
import { type Context, type Operation, operationsOf } from '../../platform/http/operation.ts'
import type { BodyLimit } from '../../platform/http/request/body.ts'
import { otherParam } from '../../platform/http/request/inputs.ts'
import { createMinuteCounts } from './counts.ts'
import { locationOf } from './links/target.ts'
import type { ClickTarget, Tokens, Unsubscription } from './links/tokens.ts'
import type { Page, PageOwner, PageTemplates } from './page-template.ts'
import { pageLanguage } from './page-texts.ts'
import type { Choice, PreferencePages } from './preferences.ts'
import type { Unsubscriber } from './unsubscribe.ts'
import { PAGES, preferencePage, type Subject } from './unsubscribe-pages.ts'
import type { Caller, Visits } from './visits.ts'

interface VisitRoutesParts {
  tokens: Tokens
  visits: Visits
  unsubscriber: Unsubscriber
  preferences: PreferencePages
  /** The URL of a stored link; null: unknown. */
  urlOf(linkId: string): Promise<string | null>
  /** Name of the domain or address of the list that a page names; null: it no longer exists. */
  senderOf(from: Unsubscription): Promise<string | null>
  /** Whose template the pages have. */
  ownerOf(from: Unsubscription): Promise<PageOwner>
  pageTemplates: Pick<PageTemplates, 'show'>
  clock: Clock
}

/** One pixel, 8 bits of grey with alpha, all transparent: 68 bytes. */
const PIXEL = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNgYAAAAAMAASsJTYQAAAAASUVORK5CYII=',
  'base64',
)

/** The longest of the three forms, as multipart, has about 200 bytes. */
const BODY_LIMIT: BodyLimit = { bytes: 4 * 1024, message: 'Request body is too large' }
/** Each changes a record, and the next unsubscribe writes an event again. */
const RESUBSCRIBES_PER_TOKEN_PER_MINUTE = 5
/** Tokens counted at a time. */
const COUNTED_MAX = 10_000
/** A year: a host that has used https once stays on it. */
const HSTS = 'max-age=31536000'
/** Requests come from webmail pages, mail programs and proxies; none carries an authority of the caller's. */
const api = operationsOf({ tag: 'Tracking host', auth: 'public', crossSite: true })

const COMMON = {
  'referrer-policy': 'no-referrer',
  'x-robots-tag': 'noindex, nofollow',
  'x-frame-options': 'DENY',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'; base-uri 'none'",
  'cache-control': 'no-store',
}

type Visited = Context<'token', null>

export function visitRoutes(parts: VisitRoutesParts): Operation[] {
  return [...measuringRoutes(parts), ...unsubscribeRoutes(parts)]
}

/** The pixel and the links of mails. */
function measuringRoutes(parts: VisitRoutesParts): Operation[] {
  const { tokens, visits } = parts

  async function urlOf(target: ClickTarget): Promise<string | null> {
    return 'url' in target ? target.url : parts.urlOf(target.linkId)
  }

  return [
    api.get('/o/{token}', {
      id: 'openPixel',
      summary: 'The pixel of a mail: each GET is an open',
      params: TOKEN,
      answers: { 200: media('image/png', 'A transparent pixel, also for a bad token') },
      handler: async (context) => {
        const { token } = context.path
        const deliveryId = tokens.readOpen(token)
        if (deliveryId !== null) {
          if (context.method === 'HEAD') visits.headRequested(token)
          else visits.opened({ token, deliveryId, caller: callerOf(context) })
        }
        const headers = { ...headersOf(context), 'cache-control': 'no-store, no-cache, must-revalidate' }
        return bytesReply(PIXEL, 'image/png', { headers })
      },
    }),
    api.get('/c/{token}', {
      id: 'followLink',
      summary: 'A link of a mail: each GET is a click, and leads to its target',
      params: TOKEN,
      answers: { 302: nothing('Location is the original link'), 404: BAD_TOKEN },
      handler: async (context) => {
        const { token } = context.path
        const read = tokens.readClick(token)
        const url = read && (await urlOf(read.target))
        const location = url === null ? null : locationOf(url)
        if (read === null || url === null || location === null) return badToken(context)
        if (context.method === 'HEAD') visits.headRequested(token)
        else visits.clicked({ token, deliveryId: read.deliveryId, url, caller: callerOf(context) })
        return redirectReply(location, { headers: headersOf(context) })
      },
    }),
  ]
}

/** The page of an unsubscribe link, and what it and mail programs send. */
function unsubscribeRoutes(parts: VisitRoutesParts): Operation[] {
  const { tokens, visits, unsubscriber, preferences } = parts
  const resubscribes = createMinuteCounts(parts.clock, RESUBSCRIBES_PER_TOKEN_PER_MINUTE, COUNTED_MAX)

  async function subjectOf(from: Unsubscription): Promise<Subject> {
    return {
      recipient: from.recipient,
      scope: from.scope === 'tags' && from.tags.length === 0 ? 'domain' : from.scope,
      sender: await parts.senderOf(from),
    }
  }

  async function html(context: Visited, from: Unsubscription, page: Page): Promise<Reply> {
    const { html, policy } = await parts.pageTemplates.show(await parts.ownerOf(from), page)
    const headers = { ...headersOf(context), 'content-security-policy': policy }
    return htmlReply(html, { headers: { ...headers, vary: 'Accept-Language' } })
  }

  async function pageReply(context: Visited, from: Unsubscription, name: keyof typeof PAGES): Promise<Reply> {
    return html(context, from, PAGES[name](await subjectOf(from), languageOf(context)))
  }

  const stateReply = async (context: Visited, from: Unsubscription) =>
    pageReply(context, from, (await unsubscriber.isUnsubscribed(from)) ? 'done' : 'ask')

  /** The page of topics; null where the domain has none, or nothing to choose from. */
  async function topicsReply(context: Visited, from: Unsubscription, isSaved: boolean) {
    const choice = await preferences.of(from)
    if (choice === null) return null
    const subject = await subjectOf({ ...from, scope: 'domain' })
    return html(context, from, preferencePage(subject, { ...choice, isSaved }, languageOf(context)))
  }

  async function resubscribe(context: Visited, from: Unsubscription): Promise<Reply> {
    if (!resubscribes.take(context.path.token)) return tooMany(context)
    await unsubscriber.resubscribe(from, visits.visitorOf(callerOf(context)), 'unsubscribe_link')
    return pageReply(context, from, (await unsubscriber.isUnsubscribed(from)) ? 'kept' : 'undone')
  }

  return [
    api.get('/u/{token}', {
      id: 'showUnsubscribe',
      summary: 'The page of an unsubscribe link; changes nothing',
      params: TOKEN,
      answers: { 200: PAGE, 404: BAD_TOKEN },
      handler: async (context) => {
        const from = tokens.readUnsubscribe(context.path.token)
        if (from === null) return badToken(context)
        const topics = await topicsReply(context, from, false)
        return topics ?? stateReply(context, from)
      },
    }),
    api.post('/u/{token}', {
      id: 'unsubscribe',
      audit: { exempt: 'what recipients do is an event' },
      summary: "Unsubscribe, by a mail program (RFC 8058) or by the page's button; or undo that",
      params: {
        ...TOKEN,
        'List-Unsubscribe': otherParam('Sent by mail programs; answered with an empty body', {
          values: ['One-Click'],
        }),
        action: otherParam('Sent by the page; answered with a page', {
          values: ['unsubscribe', 'resubscribe', 'preferences', 'unsubscribe-all', 'resubscribe-all'],
        }),
        shown: otherParam('Topics that the page of topics showed', { repeated: true }),
        on: otherParam('Those of them that the person wants', { repeated: true }),
      },
      bodyLimit: BODY_LIMIT,
      answers: {
        200: [PAGE, nothing('For a mail program')],
        400: media('text/plain', 'Neither of the two'),
        404: BAD_TOKEN,
        429: media('text/plain', 'More than five changes a minute, or 60 topics switched on within an hour'),
      },
      handler: async (context) => {
        const from = tokens.readUnsubscribe(context.path.token)
        if (from === null) return badToken(context)
        const oneClick = context.params.bodyText('List-Unsubscribe') === 'One-Click'
        const action = context.params.bodyText('action')
        if (!oneClick && action === 'resubscribe') return resubscribe(context, from)
        const choice = oneClick ? null : choiceOf(action, context.params)
        if (choice !== null) {
          // Leaving everything is never refused.
          if (choice !== 'unsubscribe-all' && !resubscribes.take(context.path.token)) return tooMany(context)
          const isWhole = await preferences.change(from, choice, visits.visitorOf(callerOf(context)))
          if (!isWhole) return tooMany(context)
          return (await topicsReply(context, from, true)) ?? stateReply(context, from)
        }
        if (!oneClick && action !== 'unsubscribe') {
          return textReply('Nothing to do.\n', { status: 400, headers: headersOf(context) })
        }
        const visitor = visits.visitorOf(callerOf(context))
        await unsubscriber.unsubscribe(from, visitor, oneClick ? 'one_click' : 'unsubscribe_link')
        return oneClick
          ? new Reply({ kind: 'none' }, { status: 200, headers: headersOf(context) })
          : pageReply(context, from, 'done')
      },
    }),
  ]
}

const TOKEN = { token: otherParam('From the link in the mail') }
const PAGE = media('text/html', 'A page')
const BAD_TOKEN = media('text/plain', 'A bad token')

function headersOf({ isSecure }: Visited): Record<string, string> {
  return isSecure ? { ...COMMON, 'strict-transport-security': HSTS } : COMMON
}

/** What the page of topics sent; null: another page sent it. */
function choiceOf(action: string | undefined, params: Visited['params']): Choice | null {
  if (action === 'unsubscribe-all' || action === 'resubscribe-all') return action
  return action === 'preferences' ? { shown: params.texts('shown'), on: params.texts('on') } : null
}

const languageOf = ({ headers }: Visited) => pageLanguage(headers['accept-language'])

const tooMany = (context: Visited) => {
  const headers = { ...headersOf(context), 'retry-after': '60' }
  return textReply('Too many changes. Try again in a minute.\n', { status: 429, headers })
}

const badToken = (context: Visited) =>
  textReply('This link is not valid. It may have been cut off: try to copy it as a whole.\n', {
    status: 404,
    headers: headersOf(context),
  })

const callerOf = ({ remoteAddress, headers }: Visited): Caller => ({
  address: remoteAddress,
  userAgent: userAgentOf(headers),
})

const userAgentOf = (headers: IncomingHttpHeaders) => headers['user-agent'] ?? ''
