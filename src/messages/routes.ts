/** Sending and stored messages over HTTP (messages.md M1, M3). */
import { BadRequest, NotFound } from '../base/errors.ts'
import { ID_PATTERN } from '../base/ids.ts'
import type { Domain } from '../domains/domain.ts'
import type { Caller } from '../http/auth.ts'
import { SENDING_BODY_LIMIT } from '../http/body.ts'
import { type Operation, operation, type ParamDoc } from '../http/operation.ts'
import { bytesReply } from '../http/reply.ts'
import { type AcceptParts, acceptMessage, checkMaySend } from './accept.ts'
import { fileChunk, type MessageRecord } from './content.ts'
import { readSendRequest } from './send-request.ts'
import { storedMessage, storedMime } from './stored-message.ts'

const TAG = 'Messages'
const STORED = { area: 'messages:stored', access: 'read' } as const

const SEND_PARAMS: ParamDoc[] = [
  { name: 'from', type: 'string', required: true, description: 'Sender: an address or `Name <address>`' },
  {
    name: 'to',
    type: 'string',
    required: true,
    repeated: true,
    description: 'Recipients; repeat it or separate by commas',
  },
  { name: 'cc', type: 'string', repeated: true, description: 'Like to' },
  { name: 'bcc', type: 'string', repeated: true, description: 'Like to; never shown in the mail' },
  { name: 'subject', type: 'string', required: true, description: 'May be empty' },
  { name: 'text', type: 'string', description: 'Plain-text body; one of text, html, amp-html is required' },
  { name: 'html', type: 'string', description: 'HTML body' },
  { name: 'amp-html', type: 'string', description: 'AMP part' },
  { name: 'attachment', type: 'file', repeated: true, description: 'Attached file' },
  {
    name: 'inline',
    type: 'file',
    repeated: true,
    description: 'File that the html shows as `cid:<file name>`',
  },
  { name: 'o:tag', type: 'string', repeated: true, description: 'Tag; at most 10' },
  { name: 'o:testmode', type: 'boolean', description: 'Do everything but deliver', default: false },
  { name: 'o:dkim', type: 'boolean', description: 'Sign the message', default: true },
  { name: 'o:require-tls', type: 'boolean', description: 'Deliver over TLS or not at all' },
  { name: 'o:skip-verification', type: 'boolean', description: 'Take any certificate' },
  { name: 'h:<name>', type: 'string', description: 'Custom header' },
  { name: 'v:<name>', type: 'string', description: 'Custom variable, shown in events' },
]

export interface MessageRouteParts extends AcceptParts {
  headerPrefixes: readonly string[]
}

export function messageRoutes(parts: MessageRouteParts): Operation[] {
  return [
    operation({
      method: 'POST',
      path: '/v3/{domain_name}/messages',
      id: 'sendMessage',
      tag: TAG,
      summary: 'Send a message from parts',
      auth: { area: 'messages:send', access: 'write', domain: 'domain_name' },
      plainText401: true,
      rateLimit: 'sending',
      bodyLimit: SENDING_BODY_LIMIT,
      params: SEND_PARAMS,
      responses: { 200: { description: 'Stored and queued', schema: SEND_RESPONSE } },
      beforeBody: async ({ path, caller }) => void (await sendingDomain(parts, caller, path.domain_name)),
      async handler({ params, path, caller, remoteAddress }) {
        const domain = await sendingDomain(parts, caller, path.domain_name)
        const draft = readSendRequest(params, parts.headerPrefixes)
        return acceptMessage(parts, draft, {
          domain,
          method: 'http',
          originatingIp: remoteAddress,
          keyId: caller.keyId,
        })
      },
    }),
    operation({
      method: 'GET',
      path: '/v3/domains/{domain_name}/messages/{storage_key}',
      id: 'readStoredMessage',
      tag: TAG,
      summary: 'Read a stored message',
      auth: STORED,
      params: [],
      responses: { 200: { description: 'The stored message' } },
      async handler({ path, caller, headers }) {
        const record = await storedRecord(parts, caller, path.domain_name, path.storage_key)
        const url = `${parts.storageUrl}/v3/domains/${record.domainName}/messages/${path.storage_key}`
        if (/message\/rfc2822/i.test(headers.accept ?? '')) return storedMime(record, parts.blobs)
        return storedMessage(record, url, parts.headerPrefix, parts.blobs)
      },
    }),
    operation({
      method: 'GET',
      path: '/v3/domains/{domain_name}/messages/{storage_key}/attachments/{n}',
      id: 'readStoredAttachment',
      tag: TAG,
      summary: 'One file of a stored message, counted from 0',
      auth: STORED,
      params: [],
      responses: { 200: { description: 'The bytes', contentType: 'application/octet-stream' } },
      async handler({ path, caller }) {
        const record = await storedRecord(parts, caller, path.domain_name, path.storage_key)
        const file = /^\d{1,4}$/.test(path.n) ? record.content.files[Number(path.n)] : undefined
        if (!file) throw new NotFound('Message not found')
        const headers = {
          'content-disposition': 'attachment',
          'content-security-policy': "sandbox; default-src 'none'",
        }
        return bytesReply(await fileChunk(file, parts.blobs), file.contentType, { headers })
      },
    }),
  ]
}

const SEND_RESPONSE = {
  type: 'object',
  required: ['id', 'message'],
  properties: { id: { type: 'string' }, message: { type: 'string' } },
}

/** The caller's domain, able to send now. @throws NotFound, Forbidden */
async function sendingDomain(parts: MessageRouteParts, caller: Caller, name: string): Promise<Domain> {
  const domain = await parts.domains.byName(name)
  if (!domain || domain.accountId !== caller.accountId) throw new NotFound(`Domain not found: ${name}`)
  checkMaySend(domain, parts.allowUnverified)
  return domain
}

/** @throws BadRequest for a malformed key, NotFound for one that names nothing of this domain and account */
async function storedRecord(
  parts: MessageRouteParts,
  caller: Caller,
  domainName: string,
  key: string,
): Promise<MessageRecord> {
  const domain = await parts.domains.byName(domainName)
  if (!domain || domain.accountId !== caller.accountId) throw new NotFound('Domain not found')
  if (!ID_PATTERN.test(key)) throw new BadRequest('Invalid storage key')
  const record = await parts.records.byId(key)
  if (!record || record.domainId !== domain.id) throw new NotFound('Message not found')
  return record
}
