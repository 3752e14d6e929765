/** Sending and stored messages over HTTP (messages.md M1 to M5). */

import { isPending, type MaybePromise, whenKnown } from '../../base/flow/cache.ts'
import { NotFound } from '../../base/process/errors.ts'
import { either, media } from '../../base/shape.ts'
import {
  bytesReply,
  jsonReply,
  jsonStreamReply,
  jsonTextReply,
  Reply,
} from '../../platform/http/answer/reply.ts'
import { type Limiter, takeMessage } from '../../platform/http/limits/rate-limit.ts'
import { type Context, type Operation, operationsOf } from '../../platform/http/operation.ts'
import { mediaTypeOf, SENDING_BODY_LIMIT } from '../../platform/http/request/body.ts'
import { otherParam } from '../../platform/http/request/inputs.ts'
import type { Params } from '../../platform/http/request/params.ts'
import type { Caller } from '../../platform/http/rights/auth.ts'
import type { Domain } from '../../sending/domains/domain.ts'
import { type Acceptance, type AcceptParts, acceptMessage, type Submission } from '../accept/accept.ts'
import { checkSender, scheduleMaxMs } from '../accept/decide.ts'
import type { Draft } from '../request/draft.ts'
import {
  draftBytes,
  type RequestFacts,
  readMimeRequest,
  readRecipients,
  readSendRequest,
} from '../request/send-request.ts'
import { ACCEPTANCE, STORED_MESSAGE, STORED_MIME } from '../stored/shapes.ts'
import { resendMessage } from './resend.ts'
import { findStored, storedFile, storedMessage, storedMime, type View } from './stored-message.ts'

const api = operationsOf({
  tag: 'Messages',
  auth: { area: 'messages:send', domain: 'domain_name' },
  rateLimit: 'sending',
})
const STORED = { area: 'messages:stored', access: 'read' } as const

/** Read by `readSendRequest` and `readMimeRequest`, in the contract's order of checks. */
const OPTION_PARAMS = {
  template: otherParam('Name or id of a stored template'),
  't:version': otherParam('Version tag; default: the active version'),
  't:text': otherParam('Make a text part from the template', { type: 'boolean', default: false }),
  't:variables': otherParam("Object with the template's variables", { type: 'json' }),
  'o:tag': otherParam('Tag; at most 10', { repeated: true }),
  'o:dkim': otherParam('Sign the message', { type: 'boolean', default: true }),
  'o:secondary-dkim': otherParam('Second key to sign with: `domain/selector`'),
  'o:secondary-dkim-public': otherParam('Name under which the second key signs'),
  'o:deliverytime': otherParam('Not before this time; at most a few days ahead', { type: 'date' }),
  'o:deliver-within': otherParam('Give up after this time: `1h30m`, 5m to 24h'),
  'o:deliverytime-optimize-period': otherParam('Best time of each recipient: `24h` to `72h`'),
  'o:time-zone-localize': otherParam('Local time of each recipient: `16:00`, `04:00PM`'),
  'o:send-window': otherParam(
    'Hours in which it is sent: `Mon-Fri 09:00-17:00 Europe/Berlin`, `always`; default: those of the domain',
  ),
  'o:testmode': otherParam('Do everything except deliver', { type: 'boolean', default: false }),
  'o:tracking': otherParam('Clicks and opens: yes, no, htmlonly; default: the setting of the domain'),
  'o:tracking-clicks': otherParam('Rewrite links to count clicks: yes, no, htmlonly'),
  'o:tracking-opens': otherParam('Put a pixel into the html', { type: 'boolean' }),
  'o:tracking-pixel-location-top': otherParam('The pixel at the top: yes, no, htmlonly'),
  'o:list-unsubscribe': otherParam('Add List-Unsubscribe, or not; default: to bulk mail', {
    type: 'boolean',
  }),
  'o:require-tls': otherParam(
    'Deliver over TLS or not at all: yes, no; `requiretls`: and so must every further server (RFC 8689)',
  ),
  'o:skip-verification': otherParam('Accept any certificate', { type: 'boolean' }),
  'o:sending-ip': otherParam('Address of the account to send from'),
  'o:sending-ip-pool': otherParam('Pool to send from'),
  'o:archive-to': otherParam('URL that gets a copy of each delivered mail'),
  'o:suppress-headers': otherParam('Service headers to leave out, or `all`', { repeated: true }),
  'o:hold-for-review': otherParam('Keep it until the operator releases or drops it', {
    type: 'boolean',
    default: false,
  }),
  'h:<name>': otherParam('Custom header'),
  'v:<name>': otherParam('Custom variable, shown in events'),
  'recipient-variables': otherParam(
    'Object: address, or `*` for all recipients, to variables. Switches batch mode on',
    { type: 'json' },
  ),
}

const MIME_PARAMS = {
  to: otherParam('All recipients: To, Cc and Bcc alike', { required: true, repeated: true }),
  message: otherParam('The MIME message', { type: 'file', required: true }),
  ...OPTION_PARAMS,
}

export const SEND_PARAMS = {
  from: otherParam('Sender: an address or `Name <address>`; required unless the template gives one', {
    repeated: true,
    example: 'Ann <ann@example.com>',
  }),
  to: otherParam('Recipients; repeat it or separate by commas', { required: true, repeated: true }),
  cc: otherParam('Like to', { repeated: true }),
  bcc: otherParam('Like to; never shown in the mail', { repeated: true }),
  subject: otherParam('May be empty; required unless the template gives one', { example: 'Hello' }),
  text: otherParam('Plain-text body; one of text, html, amp-html is required', { example: 'Hello Bob' }),
  html: otherParam('HTML body'),
  'amp-html': otherParam('AMP part'),
  attachment: otherParam('Attached file', { type: 'file', repeated: true }),
  inline: otherParam('File that the html shows as `cid:<file name>`', { type: 'file', repeated: true }),
  ...OPTION_PARAMS,
}

export interface MessageRouteParts extends AcceptParts {
  limiter: Limiter
}

const SEND_PATH = '/v3/{domain_name}/messages'
const STORED_PATH = '/v3/domains/{domain_name}/messages/{storage_key}'

/** What the two send operations have in common. */
const SENDING = {
  plainText401: true,
  bodyLimit: SENDING_BODY_LIMIT,
  joinsIdempotency: true,
  audit: { exempt: 'each message is an event' },
  answers: { 200: ACCEPTANCE },
} as const

export function messageRoutes(parts: MessageRouteParts): Operation[] {
  return [...sendRoutes(parts), ...storedRoutes(parts)]
}

function sendRoutes(parts: MessageRouteParts): Operation[] {
  const beforeBody = ({ path, caller }: { path: { domain_name: string }; caller: Caller }) =>
    sendingDomain(parts, caller, path.domain_name)
  const send = async (
    context: Context<'domain_name', Caller, Domain>,
    read: (params: Params, facts: RequestFacts) => MaybePromise<Draft>,
  ) => {
    const domain = context.found
    const facts = {
      prefixes: parts.headerPrefixes,
      now: parts.clock.now(),
      scheduleMaxMs: scheduleMaxMs(domain),
      contentType: mediaTypeOf(context.headers['content-type'] ?? ''),
    }
    const draft = await read(context.params, facts)
    const taking = takeMessage(parts.limiter, domain, {
      recipients: draft.recipients.length,
      bytes: draftBytes(draft),
    })
    const headers = isPending(taking) ? await taking : taking
    const acceptance = await acceptMessage(parts, draft, submissionOf(context, domain))
    return jsonReply(acceptance, { headers })
  }
  return [
    api.post(SEND_PATH, {
      ...SENDING,
      id: 'sendMessage',
      summary: 'Send a message from parts',
      params: SEND_PARAMS,
      beforeBody,
      handler: (context) => send(context, readSendRequest),
    }),
    api.post(`${SEND_PATH}.mime`, {
      ...SENDING,
      id: 'sendMimeMessage',
      summary: 'Send a MIME message',
      multipartOnly: true,
      params: MIME_PARAMS,
      beforeBody,
      handler: (context) => send(context, readMimeRequest),
    }),
  ]
}

function submissionOf(
  {
    caller,
    remoteAddress,
    idempotency,
    ignored,
    traceparent,
  }: Pick<Context<string, Caller>, 'caller' | 'remoteAddress' | 'idempotency' | 'ignored' | 'traceparent'>,
  domain: Domain,
): Submission {
  return {
    domain,
    method: 'http',
    originatingIp: remoteAddress,
    keyId: caller.keyId,
    ignored,
    traceparent,
    ...(idempotency && {
      also: (acceptance: Acceptance, keepUntil: number) => idempotency.statements(acceptance, keepUntil),
    }),
  }
}

function storedRoutes(parts: MessageRouteParts): Operation[] {
  return [
    api.get(STORED_PATH, {
      rateLimit: 'default',
      id: 'readStoredMessage',
      summary: 'Read a stored message',
      auth: STORED,
      answers: {
        200: either('The stored message', STORED_MESSAGE, STORED_MIME),
        404: 'Message or domain not found',
      },
      async handler({ path, caller, headers }) {
        const stored = await findStored(parts, caller.accountId, path.domain_name, path.storage_key)
        if (/message\/rfc2822/i.test(headers.accept ?? '')) return viewReply(await storedMime(parts, stored))
        const url = `${parts.storageUrl}/v3/domains/${stored.domain.name}/messages/${path.storage_key}`
        return viewReply(await storedMessage(parts, stored, url))
      },
    }),
    api.post(STORED_PATH, {
      id: 'resendMessage',
      audit: { exempt: 'each message is an event' },
      summary: 'Send a stored message again, to other recipients',
      auth: { area: 'messages:send', access: 'write' },
      joinsIdempotency: true,
      params: { to: otherParam('Recipients', { required: true, repeated: true }) },
      answers: { 200: ACCEPTANCE },
      async handler(context) {
        const { path, caller, params } = context
        const stored = await findStored(parts, caller.accountId, path.domain_name, path.storage_key)
        const recipients = readRecipients(params)
        const headers = await takeMessage(parts.limiter, stored.domain, {
          recipients: recipients.length,
          bytes: stored.record.summary.sizeBytes,
        })
        const acceptance = await resendMessage(
          parts,
          stored,
          recipients,
          submissionOf(context, stored.domain),
        )
        return jsonReply(acceptance, { headers })
      },
    }),
    api.get(`${STORED_PATH}/attachments/{n}`, {
      rateLimit: 'default',
      id: 'readStoredAttachment',
      summary: 'One file of a stored message, counted from 0',
      auth: STORED,
      answers: { 200: media('*/*', 'The bytes, with their own media type') },
      async handler({ path, caller }) {
        const stored = await findStored(parts, caller.accountId, path.domain_name, path.storage_key)
        if (!/^\d{1,4}$/.test(path.n)) throw new NotFound('Message not found')
        const { chunk, contentType } = await storedFile(parts, stored, Number(path.n))
        const headers = {
          'content-disposition': 'attachment',
          'content-security-policy': "sandbox; default-src 'none'",
        }
        return bytesReply(chunk, contentType, { headers })
      },
    }),
  ]
}

function viewReply(view: View): Reply {
  if (view instanceof Uint8Array) return jsonTextReply(view)
  return Symbol.asyncIterator in view ? jsonStreamReply(view) : new Reply({ kind: 'json', body: view })
}

/** The caller's domain, able to send now. @throws NotFound, Forbidden */
function sendingDomain(parts: MessageRouteParts, caller: Caller, name: string): MaybePromise<Domain> {
  return whenKnown(parts.domains.byName(name), (domain) => {
    if (!domain || domain.accountId !== caller.accountId) throw new NotFound(`Domain not found: ${name}`)
    return whenKnown(checkSender(parts, domain), () => domain)
  })
}
