/** Captured mail over HTTP (own-operations.md section 1). */
import { BadRequest, NotFound } from '../../base/process/errors.ts'
import { message } from '../../base/shape.ts'
import { bytesReply, eventStream, jsonTextReply } from '../../platform/http/answer/reply.ts'
import { createStreamPlaces } from '../../platform/http/answer/stream-places.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import { limitParam, parsedParam, textParam } from '../../platform/http/request/inputs.ts'
import { ID_PAGE_PARAMS, idPage, pivotPaging } from '../../platform/http/request/paging.ts'
import { type Caller, mayAccess } from '../../platform/http/rights/auth.ts'
import { inPieces } from '../../protocols/message/mime-message.ts'
import { type Inbox, type InboxViewer, STREAMS_PER_ACCOUNT } from './inbox.ts'
import { CAPTURED_FILE, CAPTURED_PAGE, CAPTURED_RAW, CAPTURED_STREAM, CAPTURED_WHOLE } from './shapes.ts'

export const PATH = '/sendwright/v1/inbox'
const api = operationsOf({ tag: 'Captured mail', auth: { area: 'messages:stored' } })
export const TAG = 'Captured mail'
export const READ = { area: 'messages:stored', access: 'read' } as const
export const WRITE = { area: 'domains', access: 'write' } as const

/** Each stored text is searched for it. */
const PART_LENGTH_MAX = 200

const partParam = (what: string) =>
  parsedParam(`${what}, of up to ${PART_LENGTH_MAX} characters`, (params, name) => {
    const text = params.text(name)
    if (text !== undefined && text.length > PART_LENGTH_MAX)
      throw new BadRequest(`${name} must have at most ${PART_LENGTH_MAX} characters`)
    return text
  })

const FILTER_PARAMS = {
  to: textParam('Part of a recipient'),
  from: textParam('Part of the From header'),
  subject: textParam('Part of the subject'),
  body: partParam('Part of the text, or of the name of a file'),
  tag: textParam('A tag'),
  q: partParam('Part of any of these, or of the Message-Id'),
  domain: textParam('Sending domain'),
}

/** Never rendered by a browser as a page of ours, whatever the mail says it is. */
const INERT = { 'content-security-policy': "sandbox; default-src 'none'" }

/** Each is an open connection; what comes over it is rendered once for each. */
const STREAMS_MAX = 200

export function inboxRoutes(inbox: Inbox, baseUrl: string): Operation[] {
  const streams = createStreamPlaces(STREAMS_MAX, STREAMS_PER_ACCOUNT, `read GET ${PATH}`)
  return [
    api.get(PATH, {
      id: 'listInbox',
      summary: 'List captured mail, newest first',
      params: { limit: limitParam(100, 1000, { above: 'cut' }), ...FILTER_PARAMS, ...ID_PAGE_PARAMS },
      answers: { 200: CAPTURED_PAGE },
      async handler({ input, caller }) {
        const { limit, page: name, id, ...filter } = input()
        const page = idPage({ page: name, id })
        const items = await inbox.list(viewerOf(caller), filter, page, limit)
        const paging = pivotPaging({
          baseUrl,
          path: PATH,
          pivotName: 'id',
          firstItem: items.at(0)?.id,
          lastItem: items.at(-1)?.id,
          pivot: 'pivot' in page ? page.pivot : undefined,
          carry: { limit, ...filter },
        })
        return { items, paging }
      },
    }),
    api.get(`${PATH}/stream`, {
      id: 'streamInbox',
      summary: 'Captured mail as it arrives, as server-sent events',
      rateLimit: 'none',
      answers: { 200: CAPTURED_STREAM, 429: 'Too many streams are open' },
      async handler({ caller, signal }) {
        const place = streams.enter(caller, signal)
        return eventStream(arrivalEvents(inbox, caller, place))
      },
    }),
    api.get(`${PATH}/{id}`, {
      id: 'readInbox',
      summary: 'One captured message, parsed',
      answers: { 200: CAPTURED_WHOLE },
      async handler({ path, caller }) {
        const view = await inbox.view(viewerOf(caller), path.id)
        return view instanceof Uint8Array ? jsonTextReply(view) : view
      },
    }),
    api.get(`${PATH}/{id}/raw`, {
      id: 'readInboxRaw',
      summary: 'One captured message as it was received',
      answers: { 200: CAPTURED_RAW },
      async handler({ path, caller }) {
        const { raw } = await inbox.mail(viewerOf(caller), path.id)
        return bytesReply(raw, 'message/rfc822', { headers: INERT })
      },
    }),
    api.get(`${PATH}/{id}/attachments/{n}`, {
      id: 'readInboxAttachment',
      summary: 'One attachment of a captured message, counted from 0',
      answers: { 200: CAPTURED_FILE },
      async handler({ path, caller }) {
        if (!/^\d{1,4}$/.test(path.n)) throw new NotFound('Message not found')
        const file = await inbox.file(viewerOf(caller), path.id, Number(path.n))
        const name = encodeURIComponent(file.name).replaceAll("'", '%27')
        const headers = { ...INERT, 'content-disposition': `attachment; filename*=UTF-8''${name}` }
        return bytesReply(inPieces(file.content), file.contentType, { headers })
      },
    }),
    api.delete(`${PATH}/{id}`, {
      id: 'deleteInbox',
      summary: 'Remove one captured message',
      auth: WRITE,
      answers: { 200: message('Message has been removed', 'Removed') },
      async handler({ path, caller }) {
        await inbox.remove(viewerOf(caller), path.id)
        return { message: 'Message has been removed' }
      },
    }),
    api.delete(PATH, {
      id: 'clearInbox',
      summary: 'Remove captured mail of the account: what the filters find, without one all',
      auth: WRITE,
      params: FILTER_PARAMS,
      answers: { 200: message('Inbox has been cleared', 'Removed') },
      async handler({ input, caller }) {
        await inbox.clear(caller.accountId, input())
        return { message: 'Inbox has been cleared' }
      },
    }),
  ]
}

/** A caller who may change users and keys could sign in as one of them anyway. */
export const viewerOf = ({ accountId, role }: Caller): InboxViewer => ({
  accountId,
  seesRestricted: mayAccess(role, 'keys', 'write'),
})

/** Gives its place back when it ends. */
async function* arrivalEvents(
  inbox: Inbox,
  caller: Caller,
  { signal, leave }: { signal: AbortSignal; leave(): void },
) {
  try {
    for await (const item of inbox.arrivals(viewerOf(caller), signal))
      yield { event: 'arrival', id: item.id, data: item }
  } finally {
    leave()
  }
}
