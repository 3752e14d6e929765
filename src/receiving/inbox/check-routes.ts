/** What is asked about a captured message, and its tags, over HTTP (own-operations.md section 1). */
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import { checkHtml } from './html/html-check.ts'
import { type LinkCheck, linksOf } from './html/link-check.ts'
import type { Inbox } from './inbox.ts'
import { PATH, READ, viewerOf } from './routes.ts'
import { CAPTURED, GIVEN_TAGS, HTML_CHECK, LINK_CHECK } from './shapes.ts'

const api = operationsOf({ tag: 'Captured mail', auth: { area: 'domains' } })

export interface LinkCalls {
  /** @throws TooManyWaiting while others of the account are called */
  run(accountId: string, links: Awaited<ReturnType<typeof linksOf>>, signal: AbortSignal): Promise<LinkCheck>
}

export function checkRoutes(inbox: Pick<Inbox, 'texts' | 'setTags'>, links: LinkCalls): Operation[] {
  return [
    api.get(`${PATH}/{id}/html-check`, {
      id: 'checkInboxHtml',
      summary: 'Which mail programs show the HTML of a captured message',
      auth: READ,
      rateLimit: 'analytics',
      answers: { 200: HTML_CHECK },
      async handler({ path, caller }) {
        return checkHtml((await inbox.texts(viewerOf(caller), path.id)).html)
      },
    }),
    api.post(`${PATH}/{id}/link-check`, {
      id: 'checkInboxLinks',
      summary: 'Call the links and images of a captured message',
      rateLimit: 'analytics',
      answers: { 200: LINK_CHECK, 503: 'Other messages of the account are being checked' },
      async handler({ path, caller, signal }) {
        const { html, text } = await inbox.texts(viewerOf(caller), path.id)
        return links.run(caller.accountId, await linksOf(html, text), signal)
      },
    }),
    api.put(`${PATH}/{id}/tags`, {
      id: 'replaceInboxTags',
      summary: 'Replace the tags of a captured message',
      body: GIVEN_TAGS,
      answers: { 200: CAPTURED },
      async handler({ path, document, caller }) {
        return inbox.setTags(viewerOf(caller), path.id, document().tags)
      },
    }),
  ]
}
