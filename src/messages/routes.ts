/** Sending and stored messages over HTTP (messages.md M1 to M5). */
import { type MaybePromise, whenKnown } from '../base/cache.ts'
import { NotFound } from '../base/errors.ts'
import type { Domain } from '../domains/domain.ts'
import type { Caller } from '../http/auth.ts'
import { mediaTypeOf, SENDING_BODY_LIMIT } from '../http/body.ts'
import { type Context, type Operation, operation, type ParamDoc } from '../http/operation.ts'
import type { Params } from '../http/params.ts'
import { type Limiter, takeMessage } from '../http/rate-limit.ts'
import { bytesReply, jsonReply, jsonStreamReply, jsonTextReply, type Reply } from '../http/reply.ts'
import { type Acceptance, type AcceptParts, acceptMessage, type Submission } from './acceptance/accept.ts'
import { checkSender } from './acceptance/check-sender.ts'
import { resendMessage } from './acceptance/resend.ts'
import { scheduleMaxMs } from './acceptance/timing.ts'
import { type Draft, draftBytes } from './request/draft.ts'
import {
  type RequestFacts,
  readMimeRequest,
  readRecipients,
  readSendRequest,
} from './request/send-request.ts'
import { findStored, storedFile, storedMessage, storedMime, type View } from './stored/stored-message.ts'

const TAG = 'Messages'
const STORED = { area: 'messages:stored', access: 'read' } as const

const OPTION_PARAMS: ParamDoc[] = [
  { name: 'template', type: 'string', description: 'Name or id of a stored template' },
  { name: 't:version', type: 'string', description: 'Version tag; default: the active version' },
  { name: 't:text', type: 'boolean', description: 'Make a text part from the template', default: false },
  { name: 't:variables', type: 'json', description: "Object with the template's variables" },
  { name: 'o:tag', type: 'string', repeated: true, description: 'Tag; at most 10' },
  { name: 'o:dkim', type: 'boolean', description: 'Sign the message', default: true },
  { name: 'o:secondary-dkim', type: 'string', description: 'Second key to sign with: `domain/selector`' },
  { name: 'o:secondary-dkim-public', type: 'string', description: 'Name under which the second key signs' },
  { name: 'o:deliverytime', type: 'date', description: 'Not before this time; at most a few days ahead' },
  { name: 'o:deliver-within', type: 'string', description: 'Give up after this time: `1h30m`, 5m to 24h' },
  {
    name: 'o:deliverytime-optimize-period',
    type: 'string',
    description: 'Best time of each recipient: `24h` to `72h`',
  },
  {
    name: 'o:time-zone-localize',
    type: 'string',
    description: 'Local time of each recipient: `16:00`, `04:00PM`',
  },
  { name: 'o:testmode', type: 'boolean', description: 'Do everything except deliver', default: false },
  {
    name: 'o:tracking',
    type: 'string',
    description: 'Clicks and opens: yes, no, htmlonly; default: the setting of the domain',
  },
  {
    name: 'o:tracking-clicks',
    type: 'string',
    description: 'Rewrite links to count clicks: yes, no, htmlonly',
  },
  { name: 'o:tracking-opens', type: 'boolean', description: 'Put a pixel into the html' },
  {
    name: 'o:tracking-pixel-location-top',
    type: 'string',
    description: 'The pixel at the top: yes, no, htmlonly',
  },
  {
    name: 'o:list-unsubscribe',
    type: 'boolean',
    description: 'Add List-Unsubscribe, or not; default: to bulk mail',
  },
  { name: 'o:require-tls', type: 'boolean', description: 'Deliver over TLS or not at all' },
  { name: 'o:skip-verification', type: 'boolean', description: 'Accept any certificate' },
  { name: 'o:sending-ip', type: 'string', description: 'Address of the account to send from' },
  { name: 'o:sending-ip-pool', type: 'string', description: 'Pool to send from' },
  { name: 'o:archive-to', type: 'string', description: 'URL that gets a copy of each delivered mail' },
  {
    name: 'o:suppress-headers',
    type: 'string',
    repeated: true,
    description: 'Service headers to leave out, or `all`',
  },
  { name: 'h:<name>', type: 'string', description: 'Custom header' },
  { name: 'v:<name>', type: 'string', description: 'Custom variable, shown in events' },
  {
    name: 'recipient-variables',
    type: 'json',
    description: 'Object: address to variables. Switches batch mode on',
  },
]

const MIME_PARAMS: ParamDoc[] = [
  {
    name: 'to',
    type: 'string',
    required: true,
    repeated: true,
    description: 'All recipients: To, Cc and Bcc alike',
  },
  { name: 'message', type: 'file', required: true, description: 'The MIME message' },
  ...OPTION_PARAMS,
]

export const SEND_PARAMS: readonly ParamDoc[] = [
  {
    name: 'from',
    type: 'string',
    repeated: true,
    description: 'Sender: an address or `Name <address>`; required unless the template gives one',
    example: 'Ann <ann@example.com>',
  },
  {
    name: 'to',
    type: 'string',
    required: true,
    repeated: true,
    description: 'Recipients; repeat it or separate by commas',
  },
  { name: 'cc', type: 'string', repeated: true, description: 'Like to' },
  { name: 'bcc', type: 'string', repeated: true, description: 'Like to; never shown in the mail' },
  {
    name: 'subject',
    type: 'string',
    description: 'May be empty; required unless the template gives one',
    example: 'Hello',
  },
  {
    name: 'text',
    type: 'string',
    description: 'Plain-text body; one of text, html, amp-html is required',
    example: 'Hello Bob',
  },
  { name: 'html', type: 'string', description: 'HTML body' },
  { name: 'amp-html', type: 'string', description: 'AMP part' },
  { name: 'attachment', type: 'file', repeated: true, description: 'Attached file' },
  {
    name: 'inline',
    type: 'file',
    repeated: true,
    description: 'File that the html shows as `cid:<file name>`',
  },
  ...OPTION_PARAMS,
]

export interface MessageRouteParts extends AcceptParts {
  /** The configured prefix and its aliases. */
  headerPrefixes: readonly string[]
  limiter: Limiter
}

const SEND_PATH = '/v3/{domain_name}/messages'
const STORED_PATH = '/v3/domains/{domain_name}/messages/{storage_key}'

const SEND_RESPONSE = {
  type: 'object',
  required: ['id', 'message'],
  properties: { id: { type: 'string' }, message: { type: 'string' } },
}

/** What the two send operations have in common. */
const SENDING = {
  method: 'POST',
  tag: TAG,
  auth: { area: 'messages:send', access: 'write', domain: 'domain_name' },
  plainText401: true,
  rateLimit: 'sending',
  bodyLimit: SENDING_BODY_LIMIT,
  joinsIdempotency: true,
  audit: { exempt: 'each message is an event' },
  responses: { 200: { description: 'Stored and queued', schema: SEND_RESPONSE } },
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
    const headers = taking instanceof Promise ? await taking : taking
    const acceptance = await acceptMessage(parts, draft, submissionOf(context, domain))
    return jsonReply(acceptance, { headers })
  }
  return [
    operation({
      ...SENDING,
      path: SEND_PATH,
      id: 'sendMessage',
      summary: 'Send a message from parts',
      params: SEND_PARAMS,
      beforeBody,
      handler: (context) => send(context, readSendRequest),
    }),
    operation({
      ...SENDING,
      path: `${SEND_PATH}.mime`,
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
    operation({
      method: 'GET',
      path: STORED_PATH,
      id: 'readStoredMessage',
      tag: TAG,
      summary: 'Read a stored message',
      auth: STORED,
      params: [],
      responses: { 200: { description: 'The stored message' } },
      async handler({ path, caller, headers }) {
        const stored = await findStored(parts, caller.accountId, path.domain_name, path.storage_key)
        if (/message\/rfc2822/i.test(headers.accept ?? '')) return viewReply(await storedMime(parts, stored))
        const url = `${parts.storageUrl}/v3/domains/${stored.domain.name}/messages/${path.storage_key}`
        return viewReply(await storedMessage(parts, stored, url))
      },
    }),
    operation({
      method: 'POST',
      path: STORED_PATH,
      id: 'resendMessage',
      audit: { exempt: 'each message is an event' },
      tag: TAG,
      summary: 'Send a stored message again, to other recipients',
      auth: { area: 'messages:send', access: 'write' },
      rateLimit: 'sending',
      joinsIdempotency: true,
      params: [{ name: 'to', type: 'string', required: true, repeated: true, description: 'Recipients' }],
      responses: { 200: { description: 'Stored and queued', schema: SEND_RESPONSE } },
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
    operation({
      method: 'GET',
      path: `${STORED_PATH}/attachments/{n}`,
      id: 'readStoredAttachment',
      tag: TAG,
      summary: 'One file of a stored message, counted from 0',
      auth: STORED,
      params: [],
      responses: { 200: { description: 'The bytes', contentType: 'application/octet-stream' } },
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

function viewReply(view: View): Reply | object {
  if (view instanceof Uint8Array) return jsonTextReply(view)
  return Symbol.asyncIterator in view ? jsonStreamReply(view) : view
}

/** The caller's domain, able to send now. @throws NotFound, Forbidden */
function sendingDomain(parts: MessageRouteParts, caller: Caller, name: string): MaybePromise<Domain> {
  return whenKnown(parts.domains.byName(name), (domain) => {
    if (!domain || domain.accountId !== caller.accountId) throw new NotFound(`Domain not found: ${name}`)
    return whenKnown(checkSender(parts, domain), () => domain)
  })
}
