/** Checks of a message before it is sent: nothing is sent, stored or fetched. */

import type { Area } from '../../area.ts'
import { Turns } from '../../base/flow/gate.ts'
import { NotFound } from '../../base/process/errors.ts'
import type { Core } from '../../core.ts'
import { MESSAGE_BYTES_MAX } from '../../mail/accept/accept.ts'
import { scheduleMaxMs } from '../../mail/accept/decide.ts'
import { type PreviewedCopy, type PreviewParts, previewMessage } from '../../mail/accept/preview.ts'
import { headerText } from '../../mail/compose/headers.ts'
import type { Tracker } from '../../mail/compose/tracker.ts'
import { SEND_PARAMS } from '../../mail/messages/routes.ts'
import { type MessageContent, mimeFiles } from '../../mail/record/record.ts'
import type { Draft } from '../../mail/request/draft.ts'
import { readMimeRequest, readSendRequest } from '../../mail/request/send-request.ts'
import { type Context, operation } from '../../platform/http/operation.ts'
import { mediaTypeOf, SENDING_BODY_LIMIT } from '../../platform/http/request/body.ts'
import { fileParam, textParam } from '../../platform/http/request/inputs.ts'
import type { Caller } from '../../platform/http/rights/auth.ts'
import { shareOrganization } from '../../protocols/dns/dmarc.ts'
import { messageSize } from '../../protocols/message/mime-message.ts'
import { AddressSyntaxError, bareAddress, parseAddressList } from '../../protocols/mime/address.ts'
import type { Inbox } from '../../receiving/inbox/inbox.ts'
import { viewerOf } from '../../receiving/inbox/routes.ts'
import { createOutgoingScorer } from '../../receiving/routes/spam/outgoing-score.ts'
import type { Scanners } from '../../sending/content-check/scanners.ts'
import type { Domain } from '../../sending/domains/domain.ts'
import { rootDomainOf } from '../../sending/domains/names/domain-names.ts'
import { returnPathHost } from '../../sending/domains/names/name-owner.ts'
import { dmarcRecordsAt, findBimi, readAuthentication } from '../../watching/sender-rules/area.ts'
import { type AuthenticationFacts, type ContentFacts, judgeAuthentication, judgeMessage } from './checks.ts'
import { noLinks, placeholdersIn, readHtml, readPlain } from './read-texts.ts'
import { MESSAGE_CHECK } from './shapes.ts'

interface PreflightUses {
  accept: PreviewParts & { headerPrefixes: readonly string[] }
  /** Stores nothing. */
  tracker: Tracker
  scanners: Scanners
  inbox: Pick<Inbox, 'origin'>
}

/** An account's checks that wait while one runs: each may hold 25 MB and wait for a scorer. */
const WAITING_MAX = 4

const CHECKING = {
  method: 'POST',
  tag: 'Messages',
  bodyLimit: SENDING_BODY_LIMIT,
  audit: { exempt: 'sends and changes nothing' },
  answers: { 200: MESSAGE_CHECK, 404: 'Domain not found' },
} as const

const PARAMS = {
  ...SEND_PARAMS,
  message: fileParam('A MIME message in place of the parts'),
}

export function preflightArea(core: Core, { accept, tracker, scanners, inbox }: PreflightUses): Area {
  const parts = { ...accept, tracker }
  const score = createOutgoingScorer(scanners, core.config.hostname)
  const turns = new Turns(WAITING_MAX)

  async function check(context: Context<never, Caller>, domainName: string) {
    const { caller, params, headers } = context
    const domain = await core.domains.byName(domainName)
    if (!domain || domain.accountId !== caller.accountId)
      throw new NotFound(`Domain not found: ${domainName}`)
    const now = core.clock.now()
    const isMime = params.files('message').length > 0 || params.given('message') !== undefined
    const draft = await (isMime ? readMimeRequest : readSendRequest)(params, {
      prefixes: accept.headerPrefixes,
      now,
      scheduleMaxMs: scheduleMaxMs(domain),
      contentType: mediaTypeOf(headers['content-type'] ?? ''),
      // It ends with the request.
      hold: ({ chunk }) => chunk,
    })
    return turns.run(caller.accountId, async () => {
      const { refusal, copy } = await previewMessage(parts, draft, domain, now)
      const authors = copy ? authorsOf(headerText(copy.sent.headers, 'from')) : []
      const [authentication, content, spam] = await Promise.all([
        authenticationOf(core, domain, draft.options.dkim ? domain.dkimAuthority : null, authors),
        copy && contentOf(parts, copy),
        copy && score ? score(domain, firstOf(draft), copy.sent.message) : undefined,
      ])
      return judgeMessage({ refusal, authentication, content, spam })
    })
  }

  return {
    operations: [
      operation({
        ...CHECKING,
        path: '/sendwright/v1/messages/check',
        id: 'checkMessage',
        summary: 'Check a message before it is sent; sends nothing',
        auth: { area: 'messages:send', access: 'write' },
        params: { domain: textParam('Domain to send from', { required: true }), ...PARAMS },
        handler: (context) => check(context, context.input().domain),
      }),
      operation({
        ...CHECKING,
        path: '/sendwright/v1/domains/{domain_name}/messages/check',
        id: 'checkDomainMessage',
        summary: 'The same for the domain in the path, which sending keys may call too',
        auth: { area: 'messages:send', access: 'write', domain: 'domain_name' },
        params: PARAMS,
        handler: (context) => check(context, context.path.domain_name),
      }),
      operation({
        method: 'GET',
        path: '/sendwright/v1/inbox/{id}/authentication',
        id: 'checkInboxAuthentication',
        tag: 'Captured mail',
        summary: 'What SPF, DKIM and DMARC would say of a captured message, and why',
        auth: { area: 'messages:stored', access: 'read' },
        rateLimit: 'domains',
        answers: { 200: MESSAGE_CHECK, 404: 'Message not found, or its domain' },
        async handler({ path, caller }) {
          const { domainName, from, signer } = await inbox.origin(viewerOf(caller), path.id)
          const domain = await core.domains.byName(domainName)
          if (!domain || domain.accountId !== caller.accountId)
            throw new NotFound(`Domain not found: ${domainName}`)
          return judgeAuthentication(await authenticationOf(core, domain, signer, authorsOf(from)))
        },
      }),
    ],
  }
}

const firstOf = ({ recipients: [first] }: Draft) => (first ? bareAddress(first) : '')

/** Each domain in From once, in lower case; none if the field cannot be read. */
function authorsOf(from: string): string[] {
  try {
    const authors = parseAddressList(from)
    return [...new Set(authors.map(({ domain }) => domain.toLowerCase()))]
  } catch (error) {
    if (!(error instanceof AddressSyntaxError)) throw error
    return []
  }
}

async function authenticationOf(
  core: Core,
  domain: Domain,
  signer: string | null,
  authors: readonly string[],
): Promise<AuthenticationFacts> {
  const [author] = authors
  // Only below the sender's own name: a check must not be a way to look up any name.
  const isOwn = author !== undefined && rootDomainOf(author) === rootDomainOf(domain.name)
  const returnPath = await returnPathHost(core.domains, domain)
  const isRelated = (name: string | null) =>
    isOwn && name !== null && shareOrganization(author, name, dmarcRecordsAt(core))
  const [known, isReturnPathRelated, isSignerRelated, bimi] = await Promise.all([
    readAuthentication(core, domain),
    isRelated(returnPath),
    isRelated(signer),
    isOwn && authors.length === 1 ? findBimi(core, author) : null,
  ])
  return {
    ...known,
    domain: domain.name,
    isSandbox: domain.type === 'sandbox',
    authors,
    returnPath,
    signer,
    isReturnPathRelated,
    isSignerRelated,
    bimi,
  }
}

async function contentOf(
  { largeTexts }: PreflightUses['accept'],
  { texts, sent, sentTexts, content }: PreviewedCopy,
): Promise<ContentFacts> {
  const links = noLinks()
  const html = texts.find(({ kind }) => kind === 'html')?.value
  const text = texts.find(({ kind }) => kind === 'text')?.value ?? ''
  const subject = headerText(sent.headers, 'subject')
  const sentHtml = sentTexts.find(({ kind }) => kind === 'html')?.value ?? ''
  const read = html === undefined ? null : await readHtml(html, links)
  await readPlain(text, links)
  return {
    subject,
    listUnsubscribe: headerText(sent.headers, 'list-unsubscribe'),
    listUnsubscribePost: headerText(sent.headers, 'list-unsubscribe-post'),
    replyTo: headerText(sent.headers, 'reply-to') || headerText(sent.headers, 'from'),
    hasText: text.trim() !== '',
    html: read && {
      ...read,
      bytes: Buffer.byteLength(sentHtml),
      encodedBytes: (await largeTexts.encode(sentHtml)).content.length,
    },
    links,
    placeholders: placeholdersIn([subject, text, html ?? '']),
    imageFiles: imageFilesOf(content),
    sizeBytes: messageSize(sent.message),
    sizeBytesMax: MESSAGE_BYTES_MAX,
  }
}

function imageFilesOf(content: MessageContent): ContentFacts['imageFiles'] {
  const files =
    content.kind === 'parts'
      ? content.files.map(({ contentType: type, sizeBytes }) => ({ type, sizeBytes }))
      : mimeFiles(content)
  const images = files.filter(({ type }) => type.startsWith('image/'))
  return { count: images.length, bytes: images.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0) }
}
