/**
 * The public pages of lists: the form to join one, and the link of the confirmation mail. Public under any host name;
 * nothing here reads or sets a cookie. GET and HEAD change nothing: programs open links before people do.
 */
import { media, nothing } from '../../base/shape.ts'
import type { Clock } from '../../base/time/clock.ts'
import { PAGE_POLICY } from '../../platform/http/answer/pages.ts'
import { htmlReply, type Reply, redirectReply } from '../../platform/http/answer/reply.ts'
import { createClientLimit } from '../../platform/http/limits/client-limit.ts'
import { TOO_MANY } from '../../platform/http/openapi.ts'
import { type Context, type Operation, operationsOf } from '../../platform/http/operation.ts'
import { otherParam } from '../../platform/http/request/inputs.ts'
import { withoutPod } from '../../platform/store/pods/pod.ts'
import { type List, readAddress } from '../lists/list.ts'
import type { ListStore } from '../lists/store.ts'
import type { Page, PageTemplates } from '../tracking/page-template.ts'
import { type PageLanguage, pageLanguage } from '../tracking/page-texts.ts'
import type { Asked, Confirmations, Visitor } from './confirmations.ts'
import { confirmedPage, confirmPage, declinedPage, formPage, pageOwner, sentPage, voidPage } from './pages.ts'

interface PageRouteParts {
  confirmations: Confirmations
  lists: Pick<ListStore, 'byId'>
  pageTemplates: Pick<PageTemplates, 'show'>
  clock: Clock
}

/** By an address, and more by the networks around it: whole companies share one. */
const FORMS_PER_MINUTE = 10
/** What is shown again of a text that is no address. */
const GIVEN_LENGTH_MAX = 254
const api = operationsOf({ tag: 'Mailing lists', auth: 'public', crossSite: true })
const PAGE = media('text/html', 'A page')
const VOID = media('text/html', 'A page: no such link, or no such form')

type Visited = Context<string, null>

export function pageRoutes({ confirmations, lists, pageTemplates, clock }: PageRouteParts): Operation[] {
  async function openList(id: string): Promise<List | null> {
    const list = await lists.byId(withoutPod(id))
    return list?.isFormOpen ? list : null
  }

  /** A page of the list, by its template if it has one. */
  async function listReply(list: List, page: Page, status = 200): Promise<Reply> {
    const { html, policy } = await pageTemplates.show(pageOwner(list), page, originOf(list))
    return reply(html, status, policy)
  }

  /** What was asked, on a page; the same page for every link that asks nothing. */
  const shown = async (
    context: Visited,
    asked: Asked | null,
    page: (asked: Asked, language: PageLanguage) => Page,
    status = 200,
  ): Promise<Reply> =>
    asked === null
      ? voidReply(context)
      : listReply(asked.list, page(asked, languageOf(context, asked.list)), status)

  async function join(context: Visited, list: List): Promise<Reply> {
    const language = languageOf(context, list)
    const given = context.params.bodyText('email') ?? ''
    const address = readAddress(given)
    if (address === null) {
      const page = formPage(list, language, { given: given.slice(0, GIVEN_LENGTH_MAX).toWellFormed() })
      return listReply(list, page, 400)
    }
    await confirmations.join(list, address, visitorOf(context))
    return list.formRedirect === null
      ? listReply(list, sentPage(list, language))
      : redirectReply(list.formRedirect, { status: 303, headers: HEADERS })
  }

  async function answer(context: Visited, token: string): Promise<Reply> {
    const action = context.params.bodyText('action')
    const asked = await confirmations.find(token)
    if (asked === null) return voidReply(context)
    if (action !== 'confirm' && action !== 'decline') return shown(context, asked, confirmPage, 400)
    const agrees = action === 'confirm'
    const done = await confirmations.answer(token, agrees, visitorOf(context))
    return shown(context, done, agrees ? confirmedPage : declinedPage)
  }

  return [
    api.get('/subscribe/{list_id}', {
      id: 'showListForm',
      summary: 'The form to join a mailing list; changes nothing',
      params: { list_id: otherParam('From the address of the form') },
      answers: { 200: PAGE, 404: VOID },
      async handler(context) {
        const list = await openList(context.path.list_id)
        return list === null
          ? voidReply(context)
          : listReply(list, formPage(list, languageOf(context, list), null))
      },
    }),
    api.post('/subscribe/{list_id}', {
      id: 'joinList',
      summary: 'Ask for a confirmation mail; the answer is the same for every address',
      description:
        'Forms of other sites may post here. An address may post ten times a minute, the networks around it more.',
      audit: { exempt: 'what people do is in the consent trail' },
      clientLimit: createClientLimit(clock, FORMS_PER_MINUTE),
      params: {
        list_id: otherParam('From the address of the form'),
        email: otherParam('The address that wants to join'),
      },
      answers: {
        200: PAGE,
        303: nothing('Location is the page that the list names'),
        400: media('text/html', 'The form again: no valid address'),
        404: VOID,
        429: TOO_MANY,
      },
      async handler(context) {
        const list = await openList(context.path.list_id)
        return list === null ? voidReply(context) : join(context, list)
      },
    }),
    api.get('/confirm/{token}', {
      id: 'showConfirmation',
      summary: 'The page of a link to confirm; changes nothing',
      params: { token: otherParam('From the link in the mail') },
      answers: { 200: PAGE, 404: VOID },
      handler: async (context) => shown(context, await confirmations.find(context.path.token), confirmPage),
    }),
    api.post('/confirm/{token}', {
      id: 'confirmMember',
      summary: "Agree to a mailing list, or not, by the page's buttons; works once",
      audit: { exempt: 'what people do is in the consent trail' },
      params: {
        token: otherParam('From the link in the mail'),
        action: otherParam('Sent by the page', { values: ['confirm', 'decline'] }),
      },
      answers: { 200: PAGE, 400: media('text/html', 'The page again: neither of the two'), 404: VOID },
      handler: (context) => answer(context, context.path.token),
    }),
  ]
}

const HEADERS = {
  'referrer-policy': 'no-referrer',
  'x-robots-tag': 'noindex, nofollow',
  'x-frame-options': 'DENY',
  'cache-control': 'no-store',
}

const reply = (page: string, status: number, policy: string) =>
  htmlReply(page, {
    status,
    headers: { ...HEADERS, 'content-security-policy': policy, vary: 'Accept-Language' },
  })

const voidReply = (context: Visited) => reply(voidPage(languageOf(context)), 404, PAGE_POLICY)

const originOf = ({ formRedirect }: List) => (formRedirect === null ? null : new URL(formRedirect).origin)

const languageOf = ({ headers }: Visited, list?: List) =>
  pageLanguage(headers['accept-language'], list?.language)

const visitorOf = ({ remoteAddress, headers }: Visited): Visitor => ({
  ip: remoteAddress,
  userAgent: headers['user-agent'] ?? '',
})
