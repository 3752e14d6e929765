/**
 * One recipient's copy of a message, made in this order (messages.md rule 25, templates.md rule 18):
 *
 * 1. recipient variables in v: and t: values,
 * 2. the template rendered with them,
 * 3. `%...%` variables in texts and header fields,
 * 4. footers, rewritten links and pixel,
 * 5. composing. Unchanged texts are composed once for all copies.
 */

import { type MaybePromise, whenKnown } from '../../base/flow/cache.ts'
import { foreignJsonIn } from '../../base/foreign-json.ts'
import { isPlainObject } from '../../base/values.ts'
import type { MimeMessage } from '../../protocols/message/mime-message.ts'
import { bareAddress, type Mailbox } from '../../protocols/mime/address.ts'
import type { Domain } from '../../sending/domains/domain.ts'
import { templateSource } from '../../sending/templates/choose.ts'
import type { Renderer } from '../../sending/templates/rendering/render.ts'
import type { Rendered, TemplateSource } from '../../sending/templates/rendering/render-messages.ts'
import type { EventMessage } from '../../watching/events/event.ts'
import { eventMessage, eventVariables, listMembers } from '../record/event-message.ts'
import {
  attach,
  type ChosenTemplate,
  type CopyTarget,
  isForward,
  type MessageContent,
  type MessageRecord,
  type StoredHeader,
  type StoredTemplate,
} from '../record/record.ts'
import {
  bounded,
  type CutText,
  either,
  fillings,
  joinText,
  type Lookup,
  RenderError,
  recipientLookup,
  substituteInSteps,
  substituteMembers,
  UNSUBSCRIBE_VARIABLES,
  usesUnsubscribe,
} from '../record/variables.ts'
import { MergeBody } from './batch/merge.ts'
import { feedbackFields } from './feedback-fields.ts'
import {
  copyHeaders,
  type FieldInputs,
  headerText,
  needsUtf8,
  ownMessageId,
  rawFields,
  serviceHeaders,
  traceFields,
  withinLimits,
} from './headers.ts'
import { type Composed, type Frame, type FrameParts, frameOf, kindOfLeaf, type TextPart } from './texts.ts'
import type { Tracker, Tracking } from './tracker.ts'

export interface CopyParts extends FrameParts {
  renderer: Pick<Renderer, 'render'>
  tracker: Tracker
  headerPrefix: string
  storageUrl: string
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
  const { recipient, variables: own } = target
  const values = own && recipient ? bounded(recipientLookup(recipient, own, summary.sharedVariables)) : null
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
        withHeaders(parts.headerPrefix, record, domain, target, frame, inputs, body),
      )
    }),
  )
}

/** What a copy is made from, besides the message. */
interface CopyInputs extends FieldInputs {
  /** The recipient's; null: neither batch nor list mode. */
  values: Lookup | null
  /** v: variables. */
  variables: Record<string, unknown>
  rendered: Rendered | null
  /** Null: texts and variables stay as they are. */
  tracking: Tracking | null
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
  domain: Domain,
  target: CopyTarget,
  frame: Frame,
  inputs: CopyInputs,
  { composed, changed }: CopyBody,
): ComposedCopy {
  const { content, summary, options } = record
  const { values, variables } = inputs
  const ownId = values ? ownMessageId(record, target, values) : null
  const { headers, author } = copyHeaders(record, target, inputs, changed?.usesVariable ?? false, ownId)
  if ((domain.cfblAddress || domain.feedbackId) && isOwnBulk(record, target))
    headers.push(...feedbackFields(record, domain, target, headers))
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
          ...rawFields(frame, headers.concat(own), composed.fields, utf8, isForward(record, target)),
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

type Delivered = CopyTarget & { delivery: NonNullable<CopyTarget['delivery']>; recipient: Mailbox }

const tracks = (record: MessageRecord, target: CopyTarget): target is Delivered =>
  target.delivery !== null &&
  target.recipient !== null &&
  !record.content.resent &&
  !isForward(record, target)

function trackingOf(
  tracker: Tracker,
  frame: Frame,
  record: MessageRecord,
  domain: Domain,
  target: CopyTarget,
  rendered: Rendered | null,
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

/** Copies of a list are bulk mail too; forwarded mail is its author's, and mail that is sent again stays as it was. */
const isOwnBulk = (record: MessageRecord, target: CopyTarget): boolean =>
  (target.list !== null || isBulk(record)) && !record.content.resent && !isForward(record, target)

/** What the template rendered or the list adds contains an unsubscribe variable. */
function addsVariable(rendered: Rendered | null, list: CopyTarget['list']): boolean {
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
async function render(
  renderer: CopyParts['renderer'],
  record: MessageRecord,
  template: StoredTemplate,
  userVariables: Readonly<Record<string, unknown>>,
  lookup: Lookup | null,
): Promise<Rendered> {
  const own = lookup ? substituteMembers(template.variables, lookup) : template.variables
  const below = Object.entries(userVariables).map(([name, value]) => [name, structured(value)] as const)
  const input = Object.fromEntries([...below, ...Object.entries(own)])
  const result = await renderer.render({
    accountId: record.accountId,
    template: sourceOf(template.chosen),
    variables: input,
    text: template.text,
  })
  if (result.kind === 'failed') throw new RenderError(result.detail)
  return result
}

const SOURCE = Symbol('template source')

/** The key of a source is a hash of its text: made once for all copies of a message. */
const sourceOf = (chosen: ChosenTemplate & { [SOURCE]?: TemplateSource }): TemplateSource =>
  chosen[SOURCE] ?? attach(chosen, SOURCE, templateSource(chosen.source, chosen.headers))

function structured(value: unknown): unknown {
  if (typeof value !== 'string' || !/^\s*[[{]/.test(value)) return value
  const parsed = foreignJsonIn(value)
  return isPlainObject(parsed) || Array.isArray(parsed) ? parsed : value
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
  const composed = await frame.fill(cuts, values, MergeBody.of)
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
function fillIn(given: readonly TextPart[], content: MessageContent, rendered: Rendered): TextPart[] {
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
async function tracked(given: readonly TextPart[], texts: readonly TextPart[], tracking: Tracking) {
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
