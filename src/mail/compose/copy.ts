/**
 * One recipient's copy of a message, made in this order (messages.md rule 25, templates.md rule 18):
 *
 * 1. recipient variables in v: and t: values,
 * 2. the template rendered with them,
 * 3. `%...%` variables in texts and header fields,
 * 4. footers, rewritten links and pixel,
 * 5. composing. Unchanged texts are composed once for all copies.
 */
import { allKnown, Lazy, type MaybePromise, whenKnown } from '../../base/flow/cache.ts'
import { ForeignJsonError, parseForeignJson } from '../../base/foreign-json.ts'
import { formatRfc2822 } from '../../base/time/dates.ts'
import { isPlainObject } from '../../base/values.ts'
import type { BlobStore } from '../../platform/store/blobs/blobs.ts'
import type { DeliveryRow } from '../../platform/store/schema.ts'
import type { MimeMessage } from '../../protocols/message/mime-message.ts'
import {
  AddressSyntaxError,
  addressKey,
  bareAddress,
  formatMailbox,
  type Mailbox,
  parseMailbox,
} from '../../protocols/mime/address.ts'
import { HEADER_LIMITS } from '../../protocols/mime/split.ts'
import type { Domain } from '../../sending/domains/domain.ts'
import type { EventMessage, MessageSummary } from '../../watching/events/event.ts'
import {
  RenderError,
  type RenderedTemplate,
  type TemplateRenderer,
  type Tracker,
  type Tracking,
} from '../accept/collaborators.ts'
import { authorsText, needsSender, readAuthors } from '../record/authors.ts'
import type { MessageContent, MessageRecord, StoredHeader, StoredTemplate } from '../record/record.ts'
import {
  bounded,
  CopyTooLarge,
  type CutText,
  cutText,
  either,
  fillings,
  hasVariable,
  joinText,
  type Lookup,
  recipientLookup,
  substitute,
  substituteInSteps,
  substituteMembers,
  UNSUBSCRIBE_VARIABLES,
  usesRecipient,
  usesUnsubscribe,
} from '../record/variables.ts'
import { FORWARDED_SUFFIX, type RecipientVariables } from '../request/options.ts'
import { MergeBody } from './batch/merge.ts'
import {
  findHeader,
  headerText,
  messageIdOfCopy,
  rawField,
  senderField,
  serviceHeaders,
  setHeader,
} from './headers.ts'
import type { LargeTexts } from './large-texts.ts'
import {
  type Composed,
  composeMime,
  composeParts,
  type EncodedFiles,
  encodeFiles,
  kindOfLeaf,
  type TextPart,
  textsOf,
} from './texts.ts'

export interface CopyParts {
  blobs: BlobStore
  largeTexts: LargeTexts
  renderer: TemplateRenderer
  tracker: Tracker
  headerPrefix: string
  storageUrl: string
}

/** Which copy. */
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
  /** The list's own domain, whose settings and keys the copy has. */
  domainId: string
  /** Lower-case names of fields that copies do not have. */
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
  /** From, where variables or a template make it: `authorFault` must judge it. Null: acceptance has judged it. */
  author: string | null
}

export interface Copy extends Pick<ComposedCopy, 'message' | 'utf8' | 'variables' | 'author'> {
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
    author,
    changedTexts: texts,
  } = await composeCopy(parts, record, domain, target)
  return {
    about: aboutCopy(record, messageId, parts.storageUrl, target, headers, variables),
    message,
    utf8,
    variables,
    author,
    texts: async () => texts?.() ?? frameOf(record, parts).texts(),
  }
}

/** The same without the part for its events; at once if nothing has to be loaded or rendered. @throws as makeCopy */
export function composeCopy(
  parts: CopyParts,
  record: MessageRecord,
  domain: Domain,
  target: CopyTarget,
): MaybePromise<ComposedCopy> {
  const { content, summary } = record
  const frame = frameOf(record, parts)
  const values =
    target.variables && target.recipient ? bounded(recipientLookup(target.recipient, target.variables)) : null
  const variables = values ? substituteMembers(summary.userVariables, values) : summary.userVariables
  const rendering = content.template
    ? render(parts.renderer, record, content.template, variables, values)
    : null
  return whenKnown(rendering, (rendered) =>
    whenKnown(trackingOf(parts.tracker, frame, record, domain, target, rendered), (known) => {
      const tracking = known?.textsStay ? null : known
      const fieldLookup = lookupOf(values, tracking)
      // A stranger's text is not searched: it could show the data of members (mailing-lists.md rule 26).
      const lookup = content.incoming ? null : fieldLookup
      const inputs = { values, variables, rendered, tracking, addsFields: known, lookup, fieldLookup }
      return whenKnown(bodyOf(frame, content, inputs), (body) =>
        withHeaders(parts.headerPrefix, record, target, frame, inputs, body),
      )
    }),
  )
}

/** What a copy is made from, besides the message. */
interface CopyInputs {
  /** Of the recipient; null: neither batch nor list mode. */
  values: Lookup | null
  /** v: variables. */
  variables: Record<string, unknown>
  rendered: RenderedTemplate | null
  /** Null: texts and variables stay as they are. */
  tracking: Tracking | null
  /** May add fields although `tracking` is null. */
  addsFields: Tracking | null
  /** All variables of texts and header fields; null: there are none. */
  lookup: Lookup | null
  /** Those of the fields that a list adds. */
  fieldLookup: Lookup | null
}

interface CopyBody {
  composed: Composed
  /** Null: the texts are those of the frame. */
  changed: ChangedTexts | null
}

function bodyOf(frame: Frame, content: MessageContent, inputs: CopyInputs): MaybePromise<CopyBody> {
  const tracks = inputs.tracking && !isLongPost(content)
  return inputs.lookup || inputs.rendered || tracks
    ? ownBody(frame, content, inputs)
    : whenKnown(frame.plain(), (composed) => ({ composed, changed: null }))
}

/**
 * Texts of a post from outside that are rewritten for each copy. Longer ones stay as they are, and are read from disk: a
 * stranger's 20 MB of HTML would take gigabytes.
 */
const POST_TEXT_BYTES_MAX = 1_048_576

function isLongPost(content: MessageContent): boolean {
  if (content.incoming === undefined || content.kind !== 'mime') return false
  const texts = content.leaves.filter((leaf) => kindOfLeaf(leaf) !== null)
  return texts.reduce((sum, { start, end }) => sum + end - start, 0) > POST_TEXT_BYTES_MAX
}

async function ownBody(frame: Frame, content: MessageContent, inputs: CopyInputs): Promise<CopyBody> {
  const changed = await changedTexts(frame, content, inputs)
  if (!changed) return { composed: await frame.plain(), changed }
  return { composed: changed.composed ?? (await frame.compose(changed.texts())), changed }
}

function withHeaders(
  prefix: string,
  record: MessageRecord,
  target: CopyTarget,
  frame: Frame,
  inputs: CopyInputs,
  { composed, changed }: CopyBody,
): ComposedCopy {
  const { content, summary, options } = record
  const { values, variables } = inputs
  const ownId = values ? ownMessageId(record, target, values) : null
  const { headers, author } = copyHeaders(record, target, inputs, changed?.usesVariable ?? false, ownId)
  const to = content.batch && target.recipient ? [bareAddress(target.recipient)] : summary.recipients
  const utf8 = needsUtf8(headerText(headers, 'from')) || to.some(needsUtf8)
  const own = serviceHeaders(
    prefix,
    {
      tags: summary.tags,
      variables,
      templateName: content.template?.chosen.name ?? null,
      deliverBy: (options.deliveryTime ?? 0) > record.createdAt ? options.deliveryTime : null,
      sid: isForward(record, target) ? null : (target.delivery?.sid ?? null),
    },
    target.delivery ? options.suppressHeaders : [],
  )
  return {
    message: {
      headers: withinLimits(
        [
          ...traceFields(prefix, content, target),
          ...rawFields(frame, headers.concat(own), composed, utf8, isForward(record, target)),
        ],
        target,
      ),
      body: composed.body,
      composed: composed.composed,
    },
    utf8,
    headers,
    messageId: ownId ?? record.messageId,
    variables,
    changedTexts: changed?.texts ?? null,
    author,
  }
}

/** Longer texts are searched for variables in each copy. */
const CUT_CHARS_MAX = 256 * 1024
/** So are texts with more than 16 variables and one per 256 characters: each piece takes about a hundred bytes. */
const CUTS_FREE = 16
const CHARS_PER_CUT = 256
/** Batches often have one or two recipients: these are composed directly. */
const MERGED_FROM = 3

/** What all copies of a message share, kept as long as the record is remembered. */
class Frame {
  readonly #record: MessageRecord
  readonly #blobs: BlobStore
  readonly #largeTexts: LargeTexts
  readonly #texts: Lazy<readonly TextPart[]>
  readonly #files: Lazy<EncodedFiles>
  readonly #plain: Lazy<Composed>
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
    const { content } = record
    this.#texts = new Lazy(() => textsOf(content, blobs, largeTexts))
    this.#files = new Lazy(() => encodeFiles(content, blobs))
    this.#plain = new Lazy(() => this.#composePlain())
  }

  texts(): MaybePromise<readonly TextPart[]> {
    return this.#texts.get()
  }

  withContentIds(rendered: RenderedTemplate): MaybePromise<RenderedTemplate> {
    const { content } = this.#record
    if (content.kind === 'mime' || content.files.length === 0) return rendered
    const html = this.#largeTexts.withContentIds(rendered.html, content.files)
    return whenKnown(html, (value) => ({ ...rendered, html: value }))
  }

  /** The message as its sender wrote it. */
  plain(): MaybePromise<Composed> {
    return this.#plain.get()
  }

  #composePlain(): MaybePromise<Composed> {
    const { content } = this.#record
    if (content.kind === 'mime') return composeMime(content, [], this.#blobs, this.#largeTexts)
    return whenKnown(allKnown([this.#texts.get(), this.#files.get()]), ([texts, files]) =>
      this.#composeParts(texts, files),
    )
  }

  #composeParts(texts: readonly TextPart[], files: EncodedFiles): MaybePromise<Composed> {
    const encoded = allKnown(texts.map(({ value }) => this.#largeTexts.encode(value)))
    return whenKnown(encoded, (all) => composeParts(texts, files, this.#record.id, all))
  }

  async compose(texts: readonly TextPart[]): Promise<Composed> {
    const { content } = this.#record
    if (content.kind === 'parts') return this.#composeParts(texts, await this.#files.get())
    const given = await this.texts()
    const differing = texts.filter((part, index) => part.value !== given[index]?.value)
    return composeMime(content, differing, this.#blobs, this.#largeTexts)
  }

  /** Its texts, cut at their variables; null: the pieces would take too much memory. */
  cuts(texts: readonly TextPart[]): readonly CutText[] | null {
    if (this.#cuts === undefined) this.#cuts = cutTexts(texts)
    return this.#cuts
  }

  /** One copy with these values for the texts' variables; null: it has to be composed. */
  async fill(cuts: readonly CutText[], values: readonly (readonly string[])[]): Promise<Composed | null> {
    const { content, id } = this.#record
    if (content.kind !== 'parts' || ++this.#filled < MERGED_FROM) return null
    if (this.#merge === undefined) {
      const [texts, files] = [await this.#texts.get(), await this.#files.get()]
      // Other copies may have waited too.
      if (this.#merge === undefined) this.#merge = MergeBody.of(texts, cuts, files, id)
      if (this.#merge) this.#plain.forget()
    }
    return this.#merge?.fill(values) ?? null
  }

  /** Its texts or header fields contain an unsubscribe variable. */
  usesVariable(): MaybePromise<boolean> {
    if (this.#usesVariable !== null) return this.#usesVariable
    const inHeaders = this.#record.content.headers.some(([, value]) => usesUnsubscribe(value))
    const look = (texts: readonly TextPart[]) => {
      this.#usesVariable = inHeaders || texts.some(({ value }) => usesUnsubscribe(value))
      return this.#usesVariable
    }
    return whenKnown(this.#texts.get(), look)
  }

  /** A field as it is sent in ASCII; one of the record's own is written once for all copies. */
  rawField(field: StoredHeader): string {
    const known = this.#raw.get(field)
    if (known !== undefined) return known
    const raw = sendableField(field, false)
    if (this.#record.content.headers.includes(field)) this.#raw.set(field, raw)
    return raw
  }
}

function cutTexts(texts: readonly TextPart[]): CutText[] | null {
  const characters = texts.reduce((sum, { value }) => sum + value.length, 0)
  if (characters > CUT_CHARS_MAX) return null
  const cuts = texts.map(({ value }) => cutText(value))
  const count = cuts.reduce((sum, { names }) => sum + names.length, 0)
  return count > CUTS_FREE + characters / CHARS_PER_CUT ? null : cuts
}

const FRAME = Symbol('frame')

function frameOf(record: MessageRecord & { [FRAME]?: Frame }, parts: CopyParts): Frame {
  return record[FRAME] ?? attach(record, FRAME, new Frame(record, parts))
}

/**
 * Keeps a value derived from an object on the object, hidden from copies, JSON and comparisons. A `WeakMap` whose values
 * refer to their keys would keep all of them until a full collection (decision 40).
 */
function attach<V>(object: object, key: symbol, value: V): V {
  Object.defineProperty(object, key, { value })
  return value
}

type Delivered = CopyTarget & { delivery: NonNullable<CopyTarget['delivery']>; recipient: Mailbox }

const tracks = (record: MessageRecord, target: CopyTarget): target is Delivered =>
  target.delivery !== null &&
  target.recipient !== null &&
  !record.content.resent &&
  !isForward(record, target)

/** Received mail as it came: every copy of it but those of a mailing list's members. */
export const isForward = ({ content }: Pick<MessageRecord, 'content'>, { list }: Pick<CopyTarget, 'list'>) =>
  content.incoming !== undefined && list === null

function trackingOf(
  tracker: Tracker,
  frame: Frame,
  record: MessageRecord,
  domain: Domain,
  target: CopyTarget,
  rendered: RenderedTemplate | null,
): MaybePromise<Tracking | null> {
  if (!tracks(record, target)) return null
  return whenKnown(!record.content.incoming && frame.usesVariable(), (written) =>
    tracker.trackingOf({
      accountId: record.accountId,
      domain,
      messageId: record.messageId,
      storageKey: storageKeyOf(record, target),
      deliveryId: target.delivery.id,
      recipient: bareAddress(target.recipient),
      tags: record.summary.tags,
      options: record.options,
      listSid: target.list?.sid ?? null,
      isBulk: isBulk(record),
      usesVariable: written || addsVariable(rendered, target.list),
    }),
  )
}

/** With this many recipients that are not a batch, nobody writes to people they know. */
const RECIPIENTS_OF_BULK = 11

/**
 * Two recipients of a batch get mail of the same kind. One recipient is left alone: applications send receipts with
 * recipient-variables too.
 */
export const isBulk = ({ content, summary }: Pick<MessageRecord, 'content' | 'summary'>): boolean =>
  summary.recipients.length >= (content.batch ? 2 : RECIPIENTS_OF_BULK)

/** What the template rendered or the list adds contains an unsubscribe variable. */
function addsVariable(rendered: RenderedTemplate | null, list: CopyTarget['list']): boolean {
  if (list?.add.some(([, value]) => usesUnsubscribe(value))) return true
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

/** t: over v:, key by key; a v: value that is JSON of an object or list is passed as such (rules 19, 20). */
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
  /** The copy with them, if it was composed already. */
  composed: Composed | null
  usesVariable: boolean
}

/** Null: the texts are those of the frame. */
async function changedTexts(
  frame: Frame,
  content: MessageContent,
  { rendered, lookup, tracking }: CopyInputs,
): Promise<ChangedTexts | null> {
  const given = await frame.texts()
  const cuts = lookup && !rendered ? frame.cuts(given) : null
  if (lookup && cuts && !tracking) return filledTexts(frame, given, cuts, lookup)
  const filled = rendered ? fillIn(given, content, await frame.withContentIds(rendered)) : given
  const usesVariable =
    tracking !== null && lookup !== null && filled.some(({ value }) => usesUnsubscribe(value))
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
    changed.push(withValue(part, await substituteInSteps(part.value, lookup)))
  }
  return changed
}

/** Texts in which only variables change. */
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

/**
 * The Message-Id that the variables give this copy of a batch; null: it has the call's, as copies of a list do.
 * @throws RenderError when it is invalid, or another copy of the call has it
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

/**
 * The mail's own fields for this copy, without those under the service's prefix. `usesVariable`: an unsubscribe variable
 * is in its texts; `ownId`: as of `ownMessageId`; `author`: as in ComposedCopy.
 */
function copyHeaders(
  record: MessageRecord,
  target: CopyTarget,
  { lookup, fieldLookup, rendered, addsFields }: CopyInputs,
  usesVariable: boolean,
  ownId: string | null,
): { headers: StoredHeader[]; author: string | null } {
  const { content, domainName } = record
  const headers: StoredHeader[] = lookup
    ? content.headers.map((field) => {
        if (field[0].toLowerCase() === 'message-id') return ownId === null ? field : [field[0], `<${ownId}>`]
        const value = substitute(field[1], lookup)
        return value === field[1] ? field : [field[0], value]
      })
    : [...content.headers]
  if (content.batch && target.recipient) setOnlyRecipient(headers, content, target.recipient)
  for (const [name, value] of rendered ? Object.entries(rendered.headers) : []) {
    const shown = lookup ? substitute(value, lookup) : value
    if (headerText(headers, name.toLowerCase()).trim() === '') setHeader(headers, [name, shown])
  }
  if (isForward(record, target)) return { headers, author: null }
  const author = content.incoming ? null : setAuthor(headers, record)
  if (headerText(headers, 'from').trim() === '') setHeader(headers, ['From', `postmaster@${domainName}`])
  if (content.incoming) addMissing(headers, record)
  if (target.list) setListHeaders(headers, target.list, fieldLookup)
  if (addsFields && !findHeader(headers, 'list-unsubscribe')) {
    headers.push(...addsFields.headers(usesVariable).map(([name, value]): StoredHeader => [name, value]))
  }
  return { headers, author }
}

/** Writes a From that variables or a template made in the one form that all programs read alike; null: it is the message's. */
function setAuthor(headers: StoredHeader[], { content, domainName }: MessageRecord): string | null {
  const field = findHeader(headers, 'from')
  if (field === undefined || field[1].trim() === '') return null
  const isGiven = field === findHeader(content.headers, 'from')
  if (isGiven && !hasVariable(field[1])) return null
  const authors = authorsIn(field[1])
  if (authors === null || isGiven) return field[1]
  const text = authorsText(authors)
  setHeader(headers, ['From', text])
  const isOurs = content.kind === 'parts'
  if (isOurs && needsSender(authors, domainName) && !findHeader(headers, 'sender'))
    headers.push(senderField(domainName))
  return text
}

/** Null: it names none. */
function authorsIn(text: string): Mailbox[] | null {
  try {
    return readAuthors(text)
  } catch (error) {
    if (error instanceof AddressSyntaxError) return null
    throw error
  }
}

/** Fields that a stranger's mail may lack, and that every mail must have or should have (RFC 5322 §3.6). */
function addMissing(headers: StoredHeader[], { createdAt, messageId }: MessageRecord): void {
  if (!findHeader(headers, 'date')) headers.push(['Date', formatRfc2822(new Date(createdAt))])
  if (!findHeader(headers, 'message-id')) headers.push(['Message-Id', `<${messageId}>`])
}

/** mailing-lists.md rules 17 to 19. */
function setListHeaders(headers: StoredHeader[], { remove, add }: ListCopy, lookup: Lookup | null): void {
  const removed = new Set(remove)
  const kept = headers.filter(([name]) => !removed.has(name.toLowerCase()))
  // Only this one has variables: others may show what a stranger has written.
  const isVariable = (name: string) => name === 'List-Unsubscribe'
  const own = add.map(
    ([name, value]): StoredHeader => [name, lookup && isVariable(name) ? substitute(value, lookup) : value],
  )
  headers.splice(0, headers.length, ...kept, ...own)
}

/** In batch mode To is the one recipient, unless a MIME message sets it by a variable, and there is no Cc (rule 22). */
function setOnlyRecipient(headers: StoredHeader[], content: MessageContent, recipient: Mailbox): void {
  const isOwn = content.kind === 'mime' && usesRecipient(headerText(content.headers, 'to'))
  if (!isOwn) setHeader(headers, ['To', formatMailbox(recipient)])
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

/** Fields as sent: a re-encoded MIME message gets new content fields. */
function rawFields(
  frame: Frame,
  headers: readonly StoredHeader[],
  composed: Composed,
  utf8: boolean,
  asItCame: boolean,
): string[] {
  const own = composed.fields ?? []
  const raw: string[] = []
  let versioned = asItCame || own.some((field) => MIME_VERSION.test(field))
  for (const field of headers) {
    if (composed.fields !== null && CONTENT_FIELD.test(field[0])) continue
    raw.push(utf8 ? sendableField(field, utf8) : frame.rawField(field))
    versioned ||= isVersion(field[0])
  }
  if (!versioned) raw.push('Mime-Version: 1.0')
  raw.push(...own)
  return raw
}

/** What a forwarded copy has before the fields of the received mail. */
function traceFields(
  prefix: string,
  { incoming }: MessageContent,
  { delivery, recipient, list }: CopyTarget,
): string[] {
  if (!incoming || !delivery || !recipient || list) return []
  const routes = incoming.forwardedBy[addressKey(recipient)] ?? []
  return [...routes.map((id) => `${prefix}${FORWARDED_SUFFIX}: ${id}`), ...incoming.forwardFields]
}

const NOT_ASCII = /[^\x00-\x7f]/

/** Fields that a list and tracking may add to a copy of a message that was within the limits. */
const ADDED_FIELDS_MAX = 50
const ADDED_BYTES_MAX = 65_536

/** @throws CopyTooLarge for a header that receivers, our own inbox among them, would not accept */
function withinLimits(headers: string[], { delivery }: CopyTarget): string[] {
  const { fields, bytes } = HEADER_LIMITS
  if (headers.length > fields + (delivery ? ADDED_FIELDS_MAX : 0))
    throw new CopyTooLarge(`Too many header fields, max is ${fields}`)
  let sizeBytes = 0
  // Other than ASCII is rare, and its length in UTF-16 is close enough.
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
    ...listMembers(target.list),
  }
  return eventMessage(record, storageUrl, storageKeyOf(record, target), summary, messageId)
}

/** The member `mailing-list` of the events of a copy (mailing-lists.md rule 22). */
const mailingListOf = (list: ListCopy | null): NonNullable<MessageSummary['mailingList']> | null =>
  list && { address: list.address, 'list-id': list.listId, sid: list.sid }

/** What events of a list's copy say besides: it is mail that the list sends, whoever wrote it. */
const listMembers = (list: ListCopy | null): Pick<MessageSummary, 'mailingList' | 'incoming' | 'routes'> =>
  list ? { mailingList: mailingListOf(list), incoming: undefined, routes: null } : { mailingList: null }

/** What events need of a message. */
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

/** Characters that variables add to the events of one copy; a call may have a thousand copies. */
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
  if (!variables) {
    const shown = shownSummary(record.summary)
    return eventMessage(record, storageUrl, record.id, list ? { ...shown, ...listMembers(list) } : shown)
  }
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
    ...listMembers(list),
  }
  return eventMessage(record, storageUrl, own, about, messageId)
}

/**
 * The same where no call can be refused (the delivery exists already, or is a list member's): without the variables if
 * they are too large for an event.
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

const SHOWN = Symbol('summary as events show it')

function shownSummary(summary: MessageSummary & { [SHOWN]?: MessageSummary }): MessageSummary {
  const userVariables = eventVariables(summary.userVariables)
  if (userVariables === summary.userVariables) return summary
  return summary[SHOWN] ?? attach(summary, SHOWN, { ...summary, userVariables })
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
