/**
 * One recipient's copy of a message. In this order (messages.md rule 25, templates.md rule 18):
 *
 * 1. recipient variables in v: and t: values,
 * 2. the template rendered with them,
 * 3. `%...%` variables in texts and header fields,
 * 4. footers, rewritten links and pixel,
 * 5. composing. Texts that nothing has changed are composed once for all copies.
 */
import { Beside } from '../base/beside.ts'
import type { MaybePromise } from '../base/cache.ts'
import { ForeignJsonError, parseForeignJson } from '../base/foreign-json.ts'
import type { MimeMessage } from '../base/mime-message.ts'
import type { Domain } from '../domains/domain.ts'
import type { EventMessage, MessageSummary } from '../events/event.ts'
import { isPlainObject } from '../http/params.ts'
import { addressKey, bareAddress, formatMailbox, type Mailbox, parseMailbox } from '../mime/address.ts'
import { HEADER_LIMITS } from '../mime/split.ts'
import type { EncodedText } from '../mime/transfer-encoding.ts'
import type { BlobStore } from '../store/blobs.ts'
import type { DeliveryRow } from '../store/schema.ts'
import {
  RenderError,
  type RenderedTemplate,
  type TemplateRenderer,
  type Tracker,
  type Tracking,
} from './collaborators.ts'
import type { MessageContent, MessageRecord, PartsContent, StoredHeader, StoredTemplate } from './content.ts'
import type { RecipientVariables } from './draft.ts'
import { findHeader, headerText, messageIdOfCopy, rawField, serviceHeaders, setHeader } from './headers.ts'
import type { LargeTexts } from './large-texts.ts'
import { MergeBody } from './merge.ts'
import {
  type Composed,
  composeMime,
  composeParts,
  type EncodedFiles,
  encodeFiles,
  type TextPart,
  textsOf,
} from './texts.ts'
import {
  bounded,
  CopyTooLarge,
  type CutText,
  cutText,
  either,
  fillings,
  joinText,
  type Lookup,
  recipientLookup,
  substitute,
  substituteInSteps,
  substituteMembers,
  UNSUBSCRIBE_VARIABLES,
  usesRecipient,
  usesUnsubscribe,
} from './variables.ts'

export interface CopyParts {
  blobs: BlobStore
  largeTexts: LargeTexts
  renderer: TemplateRenderer
  tracker: Tracker
  headerPrefix: string
  storageUrl: string
}

/** Whose copy. */
export interface CopyTarget {
  /** Null: the message as its sender sees it, without what delivery adds. */
  delivery: { id: string; sid: string } | null
  recipient: Mailbox | null
  /** Not null in batch and list mode. */
  variables: RecipientVariables | null
  list: ListCopy | null
}

/** What a mailing list adds to the copies that go through it. */
export interface ListCopy {
  address: string
  listId: string
  /** The list's own id: it finds the list again after its address changed. */
  sid: string
  /** The list's own domain: its settings and keys are those of the copy. */
  domainId: string
  /** Names of fields in lower case that copies do not carry. */
  remove: readonly string[]
  add: readonly (readonly [name: string, value: string])[]
}

/** A copy as it is sent. */
export interface ComposedCopy {
  message: MimeMessage
  utf8: boolean
  /** The mail's own fields. */
  headers: readonly StoredHeader[]
  /** Without angle brackets. */
  messageId: string
  /** v: variables of this copy, uncut. */
  variables: Record<string, unknown>
  /** Null: those of the message. */
  changedTexts: (() => readonly TextPart[]) | null
}

export interface Copy extends Pick<ComposedCopy, 'message' | 'utf8' | 'variables'> {
  about: EventMessage
  /** Texts as sent, in order. */
  texts(): Promise<readonly TextPart[]>
}

/** @throws RenderError when the template cannot be rendered for this recipient; CopyTooLarge */
export async function makeCopy(
  parts: CopyParts,
  record: MessageRecord,
  domain: Domain,
  target: CopyTarget,
): Promise<Copy> {
  const {
    message,
    utf8,
    messageId,
    variables,
    headers,
    changedTexts: texts,
  } = await composeCopy(parts, record, domain, target)
  return {
    about: aboutCopy(record, messageId, parts.storageUrl, target, headers, variables),
    message,
    utf8,
    variables,
    texts: async () => texts?.() ?? frameOf(record, parts).texts(),
  }
}

/** The same without what its events will tell. @throws as makeCopy */
export async function composeCopy(
  parts: CopyParts,
  record: MessageRecord,
  domain: Domain,
  target: CopyTarget,
): Promise<ComposedCopy> {
  const { content, summary, options } = record
  const frame = frameOf(record, parts)
  const recipientValues =
    target.variables && target.recipient ? bounded(recipientLookup(target.recipient, target.variables)) : null
  const variables = recipientValues
    ? substituteMembers(summary.userVariables, recipientValues)
    : summary.userVariables
  const rendered = content.template
    ? await render(parts.renderer, record, content.template, variables, recipientValues)
    : null
  const written = tracks(record, target) ? frame.usesVariable() : false
  const uses = usesVariables(written instanceof Promise ? await written : written, rendered, target.list)
  const found = trackingOf(parts.tracker, record, domain, target, uses)
  const tracking = found instanceof Promise ? await found : found
  const lookup = lookupOf(recipientValues, tracking)
  const changed = lookup || rendered ? await changedTexts(frame, content, rendered, lookup, tracking) : null
  const whole = changed ? (changed.composed ?? frame.compose(changed.texts())) : frame.plain()
  const composed = whole instanceof Promise ? await whole : whole
  const ownId = recipientValues ? ownMessageId(record, target, recipientValues) : null
  const headers = copyHeaders(record, target, {
    lookup,
    rendered,
    tracking,
    usesVariable: changed?.usesVariable,
    ownId,
  })
  const to = content.batch && target.recipient ? [bareAddress(target.recipient)] : summary.recipients
  const utf8 = needsUtf8(headerText(headers, 'from')) || to.some(needsUtf8)
  const own = serviceHeaders(
    parts.headerPrefix,
    {
      tags: summary.tags,
      variables,
      templateName: content.template?.chosen.name ?? null,
      deliverBy: (options.deliveryTime ?? 0) > record.createdAt ? options.deliveryTime : null,
      sid: target.delivery?.sid ?? null,
    },
    target.delivery ? options.suppressHeaders : [],
  )
  return {
    message: {
      headers: withinLimits(rawFields(frame, headers.concat(own), composed, utf8), target),
      body: composed.body,
      composed: composed.composed,
    },
    utf8,
    headers,
    messageId: ownId ?? record.messageId,
    variables,
    changedTexts: changed?.texts ?? null,
  }
}

/** Longer texts are searched for variables each time. */
const CUT_CHARS_MAX = 256 * 1024
/** So are texts with more variables than these, and one in so many characters: a piece takes some hundred bytes. */
const CUTS_FREE = 16
const CHARS_PER_CUT = 256
/** Many a batch has a recipient or two: composed as they are. */
const MERGED_FROM = 3

/** What all copies of a message share, kept as long as the record is remembered. */
class Frame {
  readonly #record: MessageRecord
  readonly #blobs: BlobStore
  readonly #largeTexts: LargeTexts
  #texts: MaybePromise<readonly TextPart[]> | null = null
  #files: MaybePromise<EncodedFiles> | null = null
  #plain: MaybePromise<Composed> | null = null
  /** Undefined: not tried yet. */
  #cuts: readonly CutText[] | null | undefined
  #merge: MergeBody | null | undefined
  /** Copies with values of their own so far. */
  #filled = 0
  #usesVariable: boolean | null = null
  /** Fields that are the same in all copies, as they are sent. */
  readonly #raw = new Map<StoredHeader, string>()

  constructor(record: MessageRecord, { blobs, largeTexts }: Pick<CopyParts, 'blobs' | 'largeTexts'>) {
    this.#record = record
    this.#blobs = blobs
    this.#largeTexts = largeTexts
  }

  texts(): MaybePromise<readonly TextPart[]> {
    this.#texts ??= kept(textsOf(this.#record.content, this.#blobs, this.#largeTexts), (texts) => {
      this.#texts = texts
    })
    return this.#texts
  }

  /** The message as its sender wrote it. */
  plain(): MaybePromise<Composed> {
    this.#plain ??= kept(this.#composePlain(), (composed) => {
      this.#plain = composed
    })
    return this.#plain
  }

  #composePlain(): MaybePromise<Composed> {
    const { content, id } = this.#record
    if (content.kind === 'mime') return composeMime(content, [], this.#blobs, this.#largeTexts)
    const texts = this.texts()
    const files = this.#encodedFiles(content)
    return texts instanceof Promise || files instanceof Promise
      ? Promise.all([texts, files]).then(([own, encoded]) => this.#composeParts(own, encoded, id))
      : this.#composeParts(texts, files, id)
  }

  #composeParts(texts: readonly TextPart[], files: EncodedFiles, id: string): MaybePromise<Composed> {
    const encoded = texts.map(({ value }) => this.#largeTexts.encode(value))
    return encoded.some((text) => text instanceof Promise)
      ? Promise.all(encoded).then((all) => composeParts(texts, files, id, all))
      : composeParts(texts, files, id, encoded as EncodedText[])
  }

  async compose(texts: readonly TextPart[]): Promise<Composed> {
    const { content, id } = this.#record
    if (content.kind === 'parts') return this.#composeParts(texts, await this.#encodedFiles(content), id)
    const given = await this.texts()
    const differing = texts.filter((part, index) => part.value !== given[index]?.value)
    return composeMime(content, differing, this.#blobs, this.#largeTexts)
  }

  /** Its texts, cut at their variables; null: the pieces would be too much to keep. */
  cuts(texts: readonly TextPart[]): readonly CutText[] | null {
    if (this.#cuts === undefined) this.#cuts = cutTexts(texts)
    return this.#cuts
  }

  /** One copy with values in the places of the texts' variables; null: it has to be composed. */
  async fill(cuts: readonly CutText[], values: readonly (readonly string[])[]): Promise<Composed | null> {
    const { content, id } = this.#record
    if (content.kind !== 'parts' || ++this.#filled < MERGED_FROM) return null
    if (this.#merge === undefined) {
      const [texts, files] = [await this.texts(), await this.#encodedFiles(content)]
      // Many copies may have waited.
      if (this.#merge === undefined) this.#merge = MergeBody.of(texts, cuts, files, id)
      if (this.#merge) this.#plain = null
    }
    return this.#merge?.fill(values) ?? null
  }

  /** An unsubscribe variable stands in its texts or header fields. */
  usesVariable(): MaybePromise<boolean> {
    if (this.#usesVariable !== null) return this.#usesVariable
    const inHeaders = this.#record.content.headers.some(([, value]) => usesUnsubscribe(value))
    const look = (texts: readonly TextPart[]) => {
      this.#usesVariable = inHeaders || texts.some(({ value }) => usesUnsubscribe(value))
      return this.#usesVariable
    }
    const texts = this.texts()
    return texts instanceof Promise ? texts.then(look) : look(texts)
  }

  /** A field as it is sent in ASCII; one of the record's own is written once for all copies. */
  rawField(field: StoredHeader): string {
    const known = this.#raw.get(field)
    if (known !== undefined) return known
    const raw = sendableField(field, false)
    if (this.#record.content.headers.includes(field)) this.#raw.set(field, raw)
    return raw
  }

  #encodedFiles(content: PartsContent): MaybePromise<EncodedFiles> {
    this.#files ??= kept(encodeFiles(content, this.#blobs), (files) => {
      this.#files = files
    })
    return this.#files
  }
}

function cutTexts(texts: readonly TextPart[]): CutText[] | null {
  const characters = texts.reduce((sum, { value }) => sum + value.length, 0)
  if (characters > CUT_CHARS_MAX) return null
  const cuts = texts.map(({ value }) => cutText(value))
  const count = cuts.reduce((sum, { names }) => sum + names.length, 0)
  return count > CUTS_FREE + characters / CHARS_PER_CUT ? null : cuts
}

/** What comes later takes the place of its promise; a failure is forgotten, so that the next caller tries again. */
function kept<T>(value: MaybePromise<T>, keep: (value: T | null) => void): MaybePromise<T> {
  if (value instanceof Promise) {
    value.then(keep, () => keep(null))
  }
  return value
}

const frames = new Beside<MessageRecord, Frame>()

function frameOf(record: MessageRecord, parts: CopyParts): Frame {
  return frames.get(record) ?? frames.set(record, new Frame(record, parts))
}

type Delivered = CopyTarget & { delivery: NonNullable<CopyTarget['delivery']>; recipient: Mailbox }

const tracks = (record: MessageRecord, target: CopyTarget): target is Delivered =>
  target.delivery !== null && target.recipient !== null && !record.content.resent

function trackingOf(
  tracker: Tracker,
  record: MessageRecord,
  domain: Domain,
  target: CopyTarget,
  usesVariable: boolean,
): MaybePromise<Tracking | null> {
  if (!tracks(record, target)) return null
  return tracker.trackingOf({
    accountId: record.accountId,
    domain,
    messageId: record.messageId,
    storageKey: storageKeyOf(record, target),
    deliveryId: target.delivery.id,
    recipient: bareAddress(target.recipient),
    tags: record.summary.tags,
    options: record.options,
    listSid: target.list?.sid ?? null,
    usesVariable,
  })
}

/** What the sender wrote, what a template made of it, what a list adds. */
function usesVariables(
  written: boolean,
  rendered: RenderedTemplate | null,
  list: CopyTarget['list'],
): boolean {
  if (written || (list?.add ?? []).some(([, value]) => usesUnsubscribe(value))) return true
  if (!rendered) return false
  return [rendered.html, rendered.text, ...Object.values(rendered.headers)].some(usesUnsubscribe)
}

const UNSUBSCRIBE = new Set<string>(UNSUBSCRIBE_VARIABLES)

function lookupOf(recipient: Lookup | null, tracking: Tracking | null): Lookup | null {
  if (!tracking) return recipient
  const unsubscribe = bounded((name) =>
    UNSUBSCRIBE.has(name) ? tracking.variable(name as (typeof UNSUBSCRIBE_VARIABLES)[number]) : null,
  )
  return recipient ? either(recipient, unsubscribe) : unsubscribe
}

/** v: below t:, key by key; a v: value that is JSON of an object or list goes in as such (rules 19, 20). */
function render(
  renderer: TemplateRenderer,
  record: MessageRecord,
  template: StoredTemplate,
  userVariables: Readonly<Record<string, unknown>>,
  lookup: Lookup | null,
): Promise<RenderedTemplate> {
  const own = lookup ? substituteMembers(template.variables, lookup) : template.variables
  const below = Object.entries(userVariables).map(([name, value]) => [name, structured(value)] as const)
  const input = Object.fromEntries([...below, ...Object.entries(own)])
  return renderer.render(record.accountId, template.chosen, input, { text: template.text })
}

function structured(value: unknown): unknown {
  if (typeof value !== 'string' || !/^\s*[[{]/.test(value)) return value
  try {
    const parsed = parseForeignJson(value)
    return isPlainObject(parsed) || Array.isArray(parsed) ? parsed : value
  } catch (error) {
    if (error instanceof ForeignJsonError) return value
    throw error
  }
}

interface ChangedTexts {
  texts(): readonly TextPart[]
  /** The copy with them, if it is known already. */
  composed: Composed | null
  usesVariable: boolean
}

/** Null: the texts are those of the frame. */
async function changedTexts(
  frame: Frame,
  content: MessageContent,
  rendered: RenderedTemplate | null,
  lookup: Lookup | null,
  tracking: Tracking | null,
): Promise<ChangedTexts | null> {
  const given = await frame.texts()
  const cuts = lookup && !rendered ? frame.cuts(given) : null
  if (lookup && cuts && !tracking) return filledTexts(frame, given, cuts, lookup)
  const filled = rendered ? fillIn(given, content, rendered) : given
  const usesVariable = tracking !== null && filled.some(({ value }) => usesUnsubscribe(value))
  let texts = filled
  if (cuts && lookup) texts = joined(given, cuts, valuesFor(cuts, lookup))
  else if (lookup) texts = await substituted(filled, lookup)
  if (tracking) texts = await tracked(given, texts, tracking)
  const same = texts.length === given.length && texts.every((part, at) => part.value === given[at]?.value)
  return same ? null : { texts: () => texts, composed: null, usesVariable }
}

async function substituted(texts: readonly TextPart[], lookup: Lookup): Promise<TextPart[]> {
  const changed: TextPart[] = []
  for (const part of texts) {
    const value = substituteInSteps(part.value, lookup)
    changed.push(withValue(part, value instanceof Promise ? await value : value))
  }
  return changed
}

/** Texts that nothing but values changes. */
async function filledTexts(
  frame: Frame,
  given: readonly TextPart[],
  cuts: readonly CutText[],
  lookup: Lookup,
): Promise<ChangedTexts | null> {
  let known = false
  const values = valuesFor(cuts, (name) => {
    const value = lookup(name)
    known ||= value !== null
    return value
  })
  if (!known) return null
  const composed = await frame.fill(cuts, values)
  return { texts: () => joined(given, cuts, values), composed, usesVariable: false }
}

const valuesFor = (cuts: readonly CutText[], lookup: Lookup) => cuts.map((cut) => fillings(cut, lookup))

const joined = (
  given: readonly TextPart[],
  cuts: readonly CutText[],
  values: readonly (readonly string[])[],
): TextPart[] =>
  given.map((part, at) => withValue(part, joinText(cuts[at] as CutText, values[at] as string[])))

const withValue = (part: TextPart, value: string): TextPart =>
  value === part.value ? part : { ...part, value }

/** The rendered html in place of the html part; a MIME message without one stays as it is (templates.md rule 15). */
function fillIn(given: readonly TextPart[], content: MessageContent, rendered: RenderedTemplate): TextPart[] {
  if (content.kind === 'mime') {
    const html = given.findIndex(({ kind }) => kind === 'html')
    const text = rendered.text === null || html < 0 ? -1 : given.findIndex(({ kind }) => kind === 'text')
    return given.map((part, at) => {
      if (at === html) return withValue(part, rendered.html)
      return at === text ? withValue(part, rendered.text as string) : part
    })
  }
  const text = content.text ?? rendered.text
  const amp = content.amp
  return [
    ...(text === null ? [] : [{ kind: 'text' as const, value: text, leaf: null }]),
    { kind: 'html' as const, value: rendered.html, leaf: null },
    ...(amp === null ? [] : [{ kind: 'amp' as const, value: amp, leaf: null }]),
  ]
}

/** Tracking works on the first part of each kind, the one that readers show. */
async function tracked(
  given: readonly TextPart[],
  texts: readonly TextPart[],
  tracking: Tracking,
): Promise<TextPart[]> {
  const first = (kind: TextPart['kind']) => texts.findIndex((part) => part.kind === kind)
  const at = { text: first('text'), html: first('html'), amp: first('amp') }
  const value = (index: number) => texts[index]?.value ?? null
  const personal = texts.some((part, index) => part.value !== given[index]?.value)
  const parts = { text: value(at.text), html: value(at.html), amp: value(at.amp) }
  const result = await tracking.rewrite(parts, personal)
  return texts.map((part, index) => {
    if (index !== at[part.kind]) return part
    return withValue(part, result[part.kind] ?? part.value)
  })
}

interface HeaderInputs {
  lookup: Lookup | null
  rendered: RenderedTemplate | null
  tracking: Tracking | null
  usesVariable: boolean | undefined
  /** Of this copy; null: the call's. */
  ownId: string | null
}

/**
 * The Message-Id that this copy of a batch has by its variables; null: it has the call's, as copies of a list have.
 * @throws RenderError when it is none, or another copy of the call has it
 */
function ownMessageId(record: MessageRecord, target: CopyTarget, lookup: Lookup): string | null {
  const { content, summary } = record
  const template = summary.messageIdTemplate
  if (template === undefined || !content.batch || target.list || !target.recipient) return null
  const id = messageIdOfCopy(template, lookup)
  if (id === null) throw new RenderError('The variables make no valid Message-Id')
  const { repeatedIds = {} } = content
  if (Object.hasOwn(repeatedIds, id) && repeatedIds[id] !== addressKey(target.recipient)) {
    throw new RenderError('Another copy of this call has the same Message-Id')
  }
  return id
}

/** The mail's own fields for this copy, without those under the service's prefix. */
function copyHeaders(record: MessageRecord, target: CopyTarget, inputs: HeaderInputs): StoredHeader[] {
  const { content, domainName } = record
  const { lookup, rendered, tracking, ownId } = inputs
  const headers: StoredHeader[] = lookup
    ? content.headers.map((field) => {
        if (field[0].toLowerCase() === 'message-id') return ownId === null ? field : [field[0], `<${ownId}>`]
        const value = substitute(field[1], lookup)
        return value === field[1] ? field : [field[0], value]
      })
    : [...content.headers]
  if (content.batch && target.recipient) showOnly(headers, content, target.recipient)
  for (const [name, value] of rendered ? Object.entries(rendered.headers) : []) {
    const shown = lookup ? substitute(value, lookup) : value
    if (headerText(headers, name.toLowerCase()).trim() === '') setHeader(headers, [name, shown])
  }
  if (headerText(headers, 'from').trim() === '') setHeader(headers, ['From', `postmaster@${domainName}`])
  if (target.list) ofList(headers, target.list, lookup)
  if (tracking && !findHeader(headers, 'list-unsubscribe')) {
    headers.push(
      ...tracking.headers(inputs.usesVariable ?? false).map(([name, value]): StoredHeader => [name, value]),
    )
  }
  return headers
}

/** mailing-lists.md rules 17 to 19. */
function ofList(headers: StoredHeader[], { remove, add }: ListCopy, lookup: Lookup | null): void {
  const removed = new Set(remove)
  const kept = headers.filter(([name]) => !removed.has(name.toLowerCase()))
  const own = add.map(([name, value]): StoredHeader => [name, lookup ? substitute(value, lookup) : value])
  headers.splice(0, headers.length, ...kept, ...own)
}

/** In batch mode To is the one recipient, unless a MIME message places it by a variable, and Cc is nobody (rule 22). */
function showOnly(headers: StoredHeader[], content: MessageContent, recipient: Mailbox): void {
  const placed = content.kind === 'mime' && usesRecipient(headerText(content.headers, 'to'))
  if (!placed) setHeader(headers, ['To', formatMailbox(recipient)])
  const cc = headers.findIndex(([name]) => name.toLowerCase() === 'cc')
  if (cc >= 0) headers.splice(cc, 1)
}

const CONTENT_FIELD = /^(?:content-type|content-transfer-encoding|mime-version)$/i
const VERSION_NAME = 'mime-version'
const MIME_VERSION = /^mime-version[ \t]*:/i

/** @throws CopyTooLarge */
function sendableField(field: StoredHeader, utf8: boolean): string {
  if (field[1].length > HEADER_LIMITS.bytes)
    throw new CopyTooLarge(`Header ${field[0]} is too large, max size is 1MB`)
  return rawField(field, utf8)
}

const isVersion = (name: string) => name.length === VERSION_NAME.length && name.toLowerCase() === VERSION_NAME

/** Fields as sent: a re-encoded MIME message gets its content fields anew. */
function rawFields(
  frame: Frame,
  headers: readonly StoredHeader[],
  composed: Composed,
  utf8: boolean,
): string[] {
  const own = composed.fields ?? []
  const raw: string[] = []
  let versioned = own.some((field) => MIME_VERSION.test(field))
  for (const field of headers) {
    if (composed.fields !== null && CONTENT_FIELD.test(field[0])) continue
    raw.push(utf8 ? sendableField(field, utf8) : frame.rawField(field))
    versioned ||= isVersion(field[0])
  }
  if (!versioned) raw.push('Mime-Version: 1.0')
  raw.push(...own)
  return raw
}

const NOT_ASCII = /[^\x00-\x7f]/

/** Fields that a list and tracking may add to a copy of a message that was within the limits. */
const ADDED_FIELDS_MAX = 50
const ADDED_BYTES_MAX = 65_536

/** @throws CopyTooLarge for a header that receivers, our own inbox among them, would not take */
function withinLimits(headers: string[], { delivery }: CopyTarget): string[] {
  const { fields, bytes } = HEADER_LIMITS
  if (headers.length > fields + (delivery ? ADDED_FIELDS_MAX : 0))
    throw new CopyTooLarge(`Too many header fields, max is ${fields}`)
  let sizeBytes = 0
  // All but ASCII is rare, and then its length in UTF-16 is near enough.
  for (const header of headers) sizeBytes += header.length + 2
  if (sizeBytes > bytes + (delivery ? ADDED_BYTES_MAX : 0))
    throw new CopyTooLarge('Header is too large, max size is 1MB')
  return headers
}

/** True if any address in the text needs SMTPUTF8 (RFC 6531): a local part that is not ASCII. */
function needsUtf8(text: string): boolean {
  return NOT_ASCII.test(text) && text.split(/[\s<>",]+/).some(isUtf8Address)
}

const isUtf8Address = (word: string) => NOT_ASCII.test(word.slice(0, Math.max(0, word.lastIndexOf('@'))))

/** In batch mode every copy is a stored message of its own (messages.md rule 49). */
function storageKeyOf(record: MessageRecord, target: CopyTarget): string {
  return record.content.batch && target.delivery ? target.delivery.id : record.id
}

function aboutCopy(
  record: MessageRecord,
  messageId: string,
  storageUrl: string,
  target: CopyTarget,
  headers: readonly StoredHeader[],
  variables: Readonly<Record<string, unknown>>,
): EventMessage {
  const summary = {
    ...record.summary,
    from: headerText(headers, 'from'),
    to: headerText(headers, 'to'),
    subject: headerText(headers, 'subject'),
    ...(record.content.batch && target.recipient && { recipients: [bareAddress(target.recipient)] }),
    userVariables: eventVariables(variables),
    mailingList: mailingListOf(target.list),
  }
  return eventMessage(record, storageUrl, storageKeyOf(record, target), summary, messageId)
}

/** The member `mailing-list` of the events of a copy (mailing-lists.md rule 22). */
const mailingListOf = (list: ListCopy | null): NonNullable<MessageSummary['mailingList']> | null =>
  list && { address: list.address, 'list-id': list.listId, sid: list.sid }

/** A message as far as its events name it. */
export type NamedMessage = Pick<
  MessageRecord,
  'id' | 'accountId' | 'domainName' | 'messageId' | 'summary'
> & { content: Pick<MessageContent, 'batch'> }

/** The Message-Ids of copies, each once: that of the call, or where each copy has its own, those of these deliveries. */
export function messageIdsOf(
  messageId: string,
  summary: Pick<MessageSummary, 'messageIdTemplate'>,
  deliveries: readonly Pick<DeliveryRow, 'recipient_header' | 'variables_json' | 'list_json'>[],
): string[] {
  const template = summary.messageIdTemplate
  if (template === undefined) return [messageId]
  const ids = new Set([messageId])
  for (const { recipient_header: header, variables_json: variables, list_json: list } of deliveries) {
    if (variables === null || list !== null) continue
    const lookup = recipientLookup(parseMailbox(header), JSON.parse(variables) as RecipientVariables)
    ids.add(messageIdOfCopy(template, lookup) ?? messageId)
  }
  return [...ids]
}

/** Characters that variables put into what an event tells of a copy; a call may make a thousand of them. */
const EVENT_VALUES_CHARS_MAX = 256 * 1024

/**
 * The message as its accepted event names it: with the recipient's variables, without the template's headers.
 * @throws CopyTooLarge
 */
export function acceptedMessage(
  record: NamedMessage,
  storageUrl: string,
  recipient: Mailbox,
  delivery: { id: string },
  variables: RecipientVariables | null,
  list: ListCopy | null,
): EventMessage {
  if (!variables) return eventMessage(record, storageUrl, record.id, shownSummary(record.summary))
  const lookup = bounded(recipientLookup(recipient, variables), EVENT_VALUES_CHARS_MAX)
  const { summary, content } = record
  const own = content.batch ? delivery.id : record.id
  const template = content.batch && !list ? summary.messageIdTemplate : undefined
  const messageId = (template && messageIdOfCopy(template, lookup)) ?? record.messageId
  const about = {
    ...summary,
    ...(content.batch && { to: formatMailbox(recipient), recipients: [bareAddress(recipient)] }),
    subject: substitute(summary.subject, lookup),
    userVariables: eventVariables(substituteMembers(summary.userVariables, lookup)),
    mailingList: mailingListOf(list),
  }
  return eventMessage(record, storageUrl, own, about, messageId)
}

/**
 * The same where there is no call to refuse, the delivery being there already or a list member's: without the variables
 * if they are too large for an event.
 */
export function knownMessage(...args: Parameters<typeof acceptedMessage>): EventMessage {
  try {
    return acceptedMessage(...args)
  } catch (error) {
    if (!(error instanceof CopyTooLarge)) throw error
    const [record, storageUrl, recipient, delivery, , list] = args
    return acceptedMessage(record, storageUrl, recipient, delivery, null, list)
  }
}

const shownSummaries = new Beside<MessageSummary, MessageSummary>()

function shownSummary(summary: MessageSummary): MessageSummary {
  const userVariables = eventVariables(summary.userVariables)
  if (userVariables === summary.userVariables) return summary
  return shownSummaries.get(summary) ?? shownSummaries.set(summary, { ...summary, userVariables })
}

/** @param messageId of the copy; default the message's */
export function eventMessage(
  record: Pick<MessageRecord, 'accountId' | 'domainName' | 'messageId'>,
  storageUrl: string,
  storageKey: string,
  summary: MessageSummary,
  messageId = record.messageId,
): EventMessage {
  return {
    accountId: record.accountId,
    domainName: record.domainName,
    messageId,
    storageKey,
    storageUrl: `${storageUrl}/v3/domains/${record.domainName}/messages/${storageKey}`,
    summary,
  }
}

/** Longer values are cut in events and webhooks only (messages.md rule 19). */
const EVENT_VALUE_BYTES_MAX = 4096

function eventVariables(variables: Record<string, unknown>): Record<string, unknown> {
  for (const name in variables) if (typeof variables[name] === 'string') return cutVariables(variables)
  return variables
}

function cutVariables(variables: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(variables).map(([name, value]) => [name, typeof value === 'string' ? cut(value) : value]),
  )
}

function cut(value: string): string {
  if (value.length * 3 <= EVENT_VALUE_BYTES_MAX || Buffer.byteLength(value) <= EVENT_VALUE_BYTES_MAX)
    return value
  const bytes = Buffer.from(value)
  let end = EVENT_VALUE_BYTES_MAX
  while (((bytes[end] as number) & 0xc0) === 0x80) end--
  return bytes.subarray(0, end).toString()
}
