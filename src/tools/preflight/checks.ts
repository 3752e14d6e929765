/** The checks of a message before it is sent (own-operations.md section 14). Pure: a function of the facts alone. */
import type { Of } from '../../base/shape.ts'
import { readDmarc } from '../../protocols/dns/dmarc.ts'
import { rootDomainOf } from '../../sending/domains/names/domain-names.ts'
import { type BimiTexts, judgeBimi } from '../../watching/sender-rules/judge-bimi.ts'
import type { SenderFacts } from '../../watching/sender-rules/rules.ts'
import type { HtmlFacts, LinksFound } from './read-texts.ts'
import type { MESSAGE_CHECK } from './shapes.ts'

type Checks = Of<typeof MESSAGE_CHECK>
type Check = Checks['checks'][number]

export interface AuthenticationFacts extends Pick<SenderFacts, 'spf' | 'dkim' | 'dmarc'> {
  domain: string
  isSandbox: boolean
  /** Domains in From, lower case. */
  authors: readonly string[]
  /** The domain of the return path. */
  returnPath: string
  /** `d=` of our signature; null: the message asks for none. */
  signer: string | null
  /** Whether From has one organization with either, for relaxed alignment; null: DNS gave no answer. */
  isReturnPathRelated: boolean | null
  isSignerRelated: boolean | null
  /** BIMI records of the author's domain; null: no answer. */
  bimi: BimiTexts | null
}

export interface ContentFacts {
  subject: string
  listUnsubscribe: string
  listUnsubscribePost: string
  /** Where replies go: Reply-To, or else From. */
  replyTo: string
  hasText: boolean
  /** Null: there is no html part. */
  html: (HtmlFacts & { bytes: number; encodedBytes: number }) | null
  links: LinksFound
  placeholders: readonly string[]
  /** Image files in the message. */
  imageFiles: { count: number; bytes: number }
  sizeBytes: number
  sizeBytesMax: number
}

/** Undefined: no scorer is set; null: it gave no score. */
type SpamFacts = { score: number; isSpam: boolean } | null | undefined

export interface MessageFacts {
  refusal: string | null
  authentication: AuthenticationFacts
  /** Null: the message cannot be composed. */
  content: ContentFacts | null
  spam: SpamFacts
}

type State = Check['state']
type Figures = Check['figures']

const made = (name: string, state: State, sentence: string, figures: Figures = {}): Check => ({
  ...{ name, state, sentence, figures },
})

/** All checks in their order, and the worst of their states. */
export function judgeMessage({ refusal, authentication, content, spam }: MessageFacts): Checks {
  const checks = [
    refusal === null
      ? made('acceptance', 'ok', 'The message would be accepted for delivery.')
      : made('acceptance', 'failed', `A send would be refused: ${refusal}`),
    ...authenticationChecks(authentication),
    ...(content === null ? [] : contentChecks(content)),
    ...(spam === undefined ? [] : [spamCheck(spam)]),
  ]
  return withState(checks)
}

/** The checks of SPF, DKIM, DMARC and BIMI alone. */
export const judgeAuthentication = (facts: AuthenticationFacts): Checks =>
  withState(authenticationChecks(facts))

function withState(checks: Check[]): Checks {
  const isAny = (state: State) => checks.some((check) => check.state === state)
  return { state: isAny('failed') ? 'failed' : isAny('warning') ? 'warning' : 'ok', checks }
}

function authenticationChecks(facts: AuthenticationFacts): Check[] {
  const { authors, returnPath, signer } = facts
  const [author = ''] = authors
  const record = readDmarc(facts.dmarc.record)
  const spf = author === returnPath || (!record?.isSpfStrict && facts.isReturnPathRelated === true)
  const dkim =
    signer !== null && (author === signer || (!record?.isDkimStrict && facts.isSignerRelated === true))
  return [spfCheck(facts, spf), dkimCheck(facts, dkim), dmarcCheck(facts, { spf, dkim }), ...bimiCheck(facts)]
}

const SANDBOX_SENTENCE = 'The sandbox domain has no records in DNS: send from a domain of your own.'
const notLookedUp = (name: string, { domain }: AuthenticationFacts) =>
  `The ${name} record was not looked up yet, or DNS gave no answer: verify ${domain} (PUT /v4/domains/${domain}/verify).`
const wrongRecord = (name: string, { domain }: AuthenticationFacts) =>
  `The ${name} record is missing or wrong: /sendwright/v1/domains/${domain}/dns says what to publish.`

function spfCheck(facts: AuthenticationFacts, isAlignedSpf: boolean): Check {
  const figures = { domain: facts.returnPath, valid: facts.spf, aligned: isAlignedSpf }
  if (facts.isSandbox) return made('spf', 'warning', SANDBOX_SENTENCE, figures)
  if (facts.spf === null) return made('spf', 'warning', notLookedUp('SPF', facts), figures)
  if (!facts.spf) return made('spf', 'failed', wrongRecord('SPF', facts), figures)
  return isAlignedSpf
    ? made('spf', 'ok', `SPF passes for ${facts.returnPath}, which is aligned with From.`, figures)
    : made(
        'spf',
        'warning',
        `SPF passes for ${facts.returnPath}, which is not aligned with From: only the DKIM signature counts for DMARC.`,
        figures,
      )
}

function dkimCheck(facts: AuthenticationFacts, isAlignedDkim: boolean): Check {
  const { signer } = facts
  const figures = { domain: signer, valid: facts.dkim, aligned: isAlignedDkim }
  if (signer === null)
    return made('dkim', 'failed', 'The message asks for no signature: leave out o:dkim=no.', figures)
  if (facts.isSandbox) return made('dkim', 'warning', SANDBOX_SENTENCE, figures)
  if (facts.dkim === null) return made('dkim', 'warning', notLookedUp('DKIM', facts), figures)
  if (!facts.dkim) return made('dkim', 'failed', wrongRecord('DKIM', facts), figures)
  return isAlignedDkim
    ? made('dkim', 'ok', `The message is signed by ${signer}, which is aligned with From.`, figures)
    : made('dkim', 'warning', `The message is signed by ${signer}, which is not aligned with From.`, figures)
}

function dmarcCheck(facts: AuthenticationFacts, aligned: { spf: boolean; dkim: boolean }): Check {
  const { authors, dmarc, domain } = facts
  const { policy } = dmarc
  const figures = { domain: authors[0] ?? null, policy, aligned: aligned.spf || aligned.dkim }
  if (authors.length !== 1)
    return made(
      'dmarc',
      'failed',
      'From must name addresses of exactly one domain: receivers cannot check DMARC otherwise.',
      figures,
    )
  if (!aligned.spf && !aligned.dkim)
    return made(
      'dmarc',
      'failed',
      `DMARC fails, because nothing proves that the message is from ${authors[0]}: write From with an address at ${domain}, or add ${authors[0]} as a domain and send from it.`,
      figures,
    )
  if (facts.isSandbox) return made('dmarc', 'warning', SANDBOX_SENTENCE, figures)
  const passes = (facts.spf === true && aligned.spf) || (facts.dkim === true && aligned.dkim)
  const isUnknown = (facts.spf === null && aligned.spf) || (facts.dkim === null && aligned.dkim)
  if (!passes && !isUnknown)
    return made(
      'dmarc',
      'failed',
      'DMARC fails: neither SPF nor DKIM passes for a domain that is aligned with From.',
      figures,
    )
  if (dmarc.valid === null) return made('dmarc', 'warning', notLookedUp('DMARC', facts), figures)
  if (policy === null)
    return made(
      'dmarc',
      'warning',
      `There is no DMARC record, which Gmail, Yahoo and Microsoft require of bulk senders: publish v=DMARC1; p=none at _dmarc.${domain}.`,
      figures,
    )
  return passes
    ? made('dmarc', 'ok', `DMARC passes for ${authors[0]}, whose policy is ${policy}.`, figures)
    : made('dmarc', 'warning', 'Whether DMARC passes is unknown until SPF and DKIM are verified.', figures)
}

/** None for an author of another organisation: their logo is not the sender's matter. */
function bimiCheck({ authors, domain, bimi, dmarc }: AuthenticationFacts): Check[] {
  const [author] = authors
  if (author === undefined || authors.length > 1 || rootDomainOf(author) !== rootDomainOf(domain)) return []
  const figures = { domain: author }
  if (bimi === null)
    return [made('bimi', 'warning', 'DNS gave no answer about the BIMI record: try again.', figures)]
  const { passed, sentence } = judgeBimi(bimi, dmarc, null)
  return [made('bimi', passed === false ? 'warning' : 'ok', sentence, figures)]
}

/** Most mail programs cut longer ones in the list of messages. */
const SUBJECT_CHARS_MAX = 70
/** Gmail shows no more of the html, and so neither a footer nor the pixel. */
const HTML_BYTES_MAX = 102 * 1024
/** Headroom for what a recipient's own values add. */
const HTML_BYTES_GOOD = 92 * 1024
const IMAGE_BYTES_GOOD = 1024 * 1024
/** Filters distrust mail that shows pictures and says nothing. */
const TEXT_CHARS_MIN = 100
/** Several large receivers refuse more. */
const SIZE_BYTES_GOOD = 10 * 1024 * 1024

function contentChecks(facts: ContentFacts): Check[] {
  return [
    unsubscribeCheck(facts),
    replyAddressCheck(facts),
    subjectCheck(facts.subject),
    textCheck(facts),
    ...(facts.html === null ? [] : [htmlSizeCheck(facts.html), imagesCheck(facts.html, facts.imageFiles)]),
    linksCheck(facts.links, facts.html?.isComplete ?? true),
    placeholdersCheck(facts.placeholders),
    sizeCheck(facts),
  ]
}

function unsubscribeCheck({ listUnsubscribe, listUnsubscribePost }: ContentFacts): Check {
  const name = 'one-click-unsubscribe'
  const figures = { 'list-unsubscribe': listUnsubscribe, 'list-unsubscribe-post': listUnsubscribePost }
  if (listUnsubscribe === '')
    return made(
      name,
      'warning',
      'There is no List-Unsubscribe field. Subscribed mail needs one-click unsubscribe (RFC 8058): write o:list-unsubscribe=yes, switch on unsubscribe tracking for the domain, or write both fields yourself.',
      figures,
    )
  if (listUnsubscribePost.replace(/\s+/g, '').toLowerCase() !== 'list-unsubscribe=one-click')
    return made(
      name,
      'warning',
      'List-Unsubscribe alone is not one click: add List-Unsubscribe-Post: List-Unsubscribe=One-Click (RFC 8058).',
      figures,
    )
  return /<\s*https:\/\//i.test(listUnsubscribe)
    ? made(name, 'ok', 'The message can be unsubscribed from with one click.', figures)
    : made(
        name,
        'warning',
        'List-Unsubscribe has no https address, which one-click unsubscribe needs: use one, or set the web scheme of the domain to https.',
        figures,
      )
}

/** `no-reply@`, `donotreply+news@` and the like. */
const NO_REPLY = /(?:^|[\s<,])(?:no|do-?_?not)[-_.]?reply\b[^@\s]{0,64}@/i
const REPLY_TO_CHARS_MAX = 2_000

function replyAddressCheck({ replyTo }: ContentFacts): Check {
  const figures = { 'reply-to': replyTo.slice(0, REPLY_TO_CHARS_MAX) }
  return NO_REPLY.test(figures['reply-to'])
    ? made(
        'reply-address',
        'warning',
        'Replies go to an address that says nobody reads them: Microsoft requires of bulk senders a From or Reply-To that takes replies.',
        figures,
      )
    : made('reply-address', 'ok', 'Replies go to an address that may be read.', figures)
}

function subjectCheck(subject: string): Check {
  const characters = [...subject.slice(0, 2_000).trim()].length
  const figures = { characters, limit: SUBJECT_CHARS_MAX }
  if (characters === 0)
    return made('subject', 'failed', 'The subject is empty: write what the message is about.', figures)
  return characters > SUBJECT_CHARS_MAX
    ? made(
        'subject',
        'warning',
        `The subject has more than ${SUBJECT_CHARS_MAX} characters: mail programs cut it, so shorten it or begin with what matters.`,
        figures,
      )
    : made('subject', 'ok', 'The subject has a length that mail programs show.', figures)
}

function textCheck({ hasText, html }: ContentFacts): Check {
  const figures = { text: hasText, html: html !== null }
  if (hasText) return made('text-part', 'ok', 'There is a plain text part.', figures)
  return html === null
    ? made('text-part', 'failed', 'The message has no text at all: write a text and an html part.', figures)
    : made(
        'text-part',
        'warning',
        'There is no plain text part: add one that says the same as the html, for filters and readers without html.',
        figures,
      )
}

function htmlSizeCheck({ bytes, encodedBytes }: { bytes: number; encodedBytes: number }): Check {
  const figures = { bytes, encoded_bytes: encodedBytes, limit: HTML_BYTES_MAX }
  if (bytes > HTML_BYTES_MAX)
    return made(
      'html-size',
      'failed',
      'Gmail cuts html over 102 KB, with the footer and the pixel that counts opens: remove comments, unused styles and embedded images, or shorten it.',
      figures,
    )
  return bytes > HTML_BYTES_GOOD
    ? made(
        'html-size',
        'warning',
        'The html is close to the 102 KB where Gmail cuts it: longer values of a recipient may be too much, so shorten it.',
        figures,
      )
    : made('html-size', 'ok', 'The html is below the 102 KB where Gmail cuts it.', figures)
}

function imagesCheck(html: HtmlFacts, files: ContentFacts['imageFiles']): Check {
  const bytes = files.bytes + html.dataChars
  const figures = {
    images: html.images,
    without_alt: html.withoutAlt,
    data_images: html.dataImages,
    bytes,
    text_characters: html.textChars,
  }
  const faults = [
    html.withoutAlt > 0 &&
      'give each image an alt text (alt="" for decoration), which readers without images see',
    html.dataImages > 0 &&
      'attach images inline or link to them instead of data: URLs, which Gmail does not show',
    bytes > IMAGE_BYTES_GOOD && 'make the images smaller, which weigh more than 1 MB in the message',
    html.images > 0 &&
      html.isComplete &&
      html.textChars < TEXT_CHARS_MIN &&
      'say in text what the images show: mail of images alone looks like spam',
  ].filter((fault) => fault !== false)
  return faults.length === 0
    ? made('images', 'ok', 'The images have alternative texts and a moderate weight.', figures)
    : made('images', 'warning', `Images: ${faults.join('; ')}.`, figures)
}

function linksCheck({ count, kinds, examples }: LinksFound, isComplete: boolean): Check {
  const { broken, empty, private: unreachable, insecure, address } = kinds
  const figures = { links: count, broken, empty, private: unreachable, insecure, address, examples }
  const failures = [
    broken > 0 && 'write links as whole URLs with https://',
    unreachable > 0 && 'replace links to hosts that recipients cannot reach',
    empty > 0 && 'give empty links and images an address',
  ].filter((fault) => fault !== false)
  const warnings = [
    insecure > 0 && 'use https instead of http',
    address > 0 && 'use names instead of IP addresses, which look like phishing',
    !isComplete && 'the html was not read to its end, because it is too long or too deep',
  ].filter((fault) => fault !== false)
  if (failures.length + warnings.length === 0)
    return made('links', 'ok', 'The links are well-formed; none was followed.', figures)
  const state = failures.length > 0 ? 'failed' : 'warning'
  return made('links', state, `Links: ${[...failures, ...warnings].join('; ')}.`, figures)
}

const placeholdersCheck = (found: readonly string[]): Check =>
  found.length === 0
    ? made('placeholders', 'ok', 'No placeholder is left in the message.', { examples: [] })
    : made(
        'placeholders',
        'failed',
        'Recipients would see placeholders that no value replaces: give the values, or remove them.',
        { examples: found },
      )

function sizeCheck({ sizeBytes: bytes, sizeBytesMax: limit }: ContentFacts): Check {
  const figures = { bytes, limit }
  if (bytes > limit)
    return made(
      'size',
      'failed',
      'The message is over 25 MB and would be refused: link to large files.',
      figures,
    )
  return bytes > SIZE_BYTES_GOOD
    ? made('size', 'warning', 'Some receivers refuse mail over 10 MB: link to large files.', figures)
    : made('size', 'ok', 'The message is of a size that receivers take.', figures)
}

function spamCheck(spam: NonNullable<SpamFacts> | null): Check {
  if (spam === null)
    return made(
      'spam',
      'warning',
      'There is no spam score: the message is over 1 MB, or the scorer gave no answer.',
      { score: null },
    )
  return spam.isSpam
    ? made('spam', 'failed', 'The scorer calls the message spam: change its wording and links.', {
        score: spam.score,
      })
    : made('spam', 'ok', 'The scorer does not call the message spam.', { score: spam.score })
}
