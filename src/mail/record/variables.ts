/**
 * `%...%` variables in texts of a message (messages.md rules 23 to 26, tracking.md rule 13).
 *
 * `%recipient.<key>%` and the predefined `%recipient_name%` and its like have values in batch and list mode,
 * the unsubscribe variables in every mode. A variable without a value stays as written. Values are inserted as they
 * are, without escaping, and are not searched again.
 */

import { setImmediate } from 'node:timers/promises'
import type { MaybePromise } from '../../base/flow/cache.ts'
import { BadRequest } from '../../base/process/errors.ts'
import { bareAddress, formatMailbox, type Mailbox } from '../../protocols/mime/address.ts'
import type { RecipientVariables } from './options.ts'

export const UNSUBSCRIBE_VARIABLES = [
  'unsubscribe_url',
  'tag_unsubscribe_url',
  'mailing_list_unsubscribe_url',
  'mailing_list_unsubscribe_address',
  'unsubscribe_email',
  'tag_unsubscribe_email',
] as const
export type UnsubscribeVariable = (typeof UNSUBSCRIBE_VARIABLES)[number]

/** The value of a variable by its name without percent signs, or null if it has none. */
export type Lookup = (name: string) => string | null

/** Longer keys are not variables: bounds the search in text full of percent signs. */
const KEY_LENGTH_MAX = 256

const VARIABLE = new RegExp(
  `%(recipient(?:\\.[^%]{1,${KEY_LENGTH_MAX}}|_email|_name|_fname|_lname)?|${UNSUBSCRIBE_VARIABLES.join('|')})%`,
  'g',
)
const RECIPIENT_VARIABLE = /%recipient[.%_]/
const UNSUBSCRIBE_VARIABLE = new RegExp(`%(?:${UNSUBSCRIBE_VARIABLES.join('|')})%`)

export const usesRecipient = (text: string | null) => text !== null && RECIPIENT_VARIABLE.test(text)
/** Whether some copy may show another text. */
export const hasVariable = (text: string) =>
  text.includes('%') && (usesRecipient(text) || usesUnsubscribe(text))
/** Most texts have no percent sign, which `includes` finds faster than the pattern. */
export const usesUnsubscribe = (text: string | null) =>
  text?.includes('%') === true && UNSUBSCRIBE_VARIABLE.test(text)

/**
 * Characters that variables add to one copy. A name of 14 characters may have a value of megabytes and occur as often as
 * it fits into a text: without a limit one message would take all memory, again after each restart.
 */
export const VALUES_CHARS_MAX = 25 * 1024 * 1024

/** A copy, its header or one field of it is too large to be sent. */
export class CopyTooLarge extends BadRequest {
  constructor(text = 'Message is too large, max size is 25MB') {
    super(text)
  }
}

/** The same lookup for one copy. @throws CopyTooLarge when its values exceed `charsMax` in all */
export function bounded(lookup: Lookup, charsMax = VALUES_CHARS_MAX): Lookup {
  let left = charsMax
  return (name) => {
    const value = lookup(name)
    left -= value?.length ?? 0
    if (left < 0) throw new CopyTooLarge()
    return value
  }
}

export function substitute(text: string, lookup: Lookup): string {
  if (!text.includes('%')) return text
  return text.replace(VARIABLE, (whole, name: string) => lookup(name) ?? whole)
}

/** Longer texts are processed in steps. */
const AT_ONCE_CHARS_MAX = 512 * 1024
/** Variables in one step, about 2 ms. */
const STEP_VARIABLES = 10_000

/** The same for a text of any size, which may consist of variables: other work runs in between. */
export function substituteInSteps(text: string, lookup: Lookup): MaybePromise<string> {
  return text.length <= AT_ONCE_CHARS_MAX || !text.includes('%')
    ? substitute(text, lookup)
    : replaceInSteps(text, lookup)
}

async function replaceInSteps(text: string, lookup: Lookup): Promise<string> {
  // A pattern of its own, as it has state: another text may be processed in between.
  const pattern = new RegExp(VARIABLE)
  let replaced = ''
  let pieces: string[] = []
  let from = 0
  let left = STEP_VARIABLES
  for (let found = pattern.exec(text); found; found = pattern.exec(text)) {
    const value = lookup(found[1] as string)
    if (value !== null) {
      pieces.push(text.slice(from, found.index), value)
      from = pattern.lastIndex
    }
    if (--left > 0) continue
    replaced += pieces.join('')
    pieces = []
    left = STEP_VARIABLES
    await setImmediate()
  }
  return from === 0 ? text : replaced + pieces.join('') + text.slice(from)
}

/** A text cut at its variables, to be filled more than once: literal, variable, literal ... */
export interface CutText {
  /** One more than there are names. */
  literals: readonly string[]
  /** Without percent signs, in order. */
  names: readonly string[]
}

export function cutText(text: string): CutText {
  // `split` puts the pattern's one group, the name, between the literals.
  const pieces = text.includes('%') ? text.split(VARIABLE) : [text]
  return {
    literals: pieces.filter((_, at) => at % 2 === 0),
    names: pieces.filter((_, at) => at % 2 === 1),
  }
}

/** The replacement of each variable of the text: its value, or itself. */
export const fillings = ({ names }: CutText, lookup: Lookup): string[] =>
  names.map((name) => lookup(name) ?? `%${name}%`)

/** The text with `filled` instead of its variables; `joinText(cut, fillings(cut, lookup))` is `substitute`. */
export function joinText({ literals }: CutText, filled: readonly string[]): string {
  let text = literals[0] as string
  for (const [at, value] of filled.entries()) text += value + (literals[at + 1] as string)
  return text
}

/** Values for one recipient of a batch or list: its own, else those of all recipients. */
export function recipientLookup(
  mailbox: Mailbox,
  own: RecipientVariables,
  shared: RecipientVariables = {},
): Lookup {
  return (name) => {
    if (name.startsWith('recipient.')) {
      const key = name.slice('recipient.'.length)
      const variables = Object.hasOwn(own, key) ? own : shared
      return Object.hasOwn(variables, key) ? valueText(variables[key]) : null
    }
    const names = mailbox.name.trim()
    const blank = names.search(/\s/)
    switch (name) {
      case 'recipient':
        return formatMailbox(mailbox)
      case 'recipient_email':
        return bareAddress(mailbox)
      case 'recipient_name':
        return names
      case 'recipient_fname':
        return blank < 0 ? names : names.slice(0, blank)
      case 'recipient_lname':
        return blank < 0 ? '' : names.slice(blank).trim()
      default:
        return null
    }
  }
}

/** Strings as they are, null as an empty text, everything else as JSON (rule 24). */
function valueText(value: unknown): string {
  if (typeof value === 'string') return value
  return value === null || value === undefined ? '' : JSON.stringify(value)
}

/** Substitutes in every string within a JSON value; keys stay. */
export function substituteDeep(value: unknown, lookup: Lookup): unknown {
  if (typeof value === 'string') return substitute(value, lookup)
  if (Array.isArray(value)) return value.map((item) => substituteDeep(item, lookup))
  if (typeof value !== 'object' || value === null) return value
  return substituteMembers(value as Record<string, unknown>, lookup)
}

export function substituteMembers(
  members: Readonly<Record<string, unknown>>,
  lookup: Lookup,
): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(members).map(([name, value]) => [name, substituteDeep(value, lookup)]),
  )
}

/** The first lookup that knows the name. */
export const either =
  (...lookups: readonly Lookup[]): Lookup =>
  (name) => {
    for (const lookup of lookups) {
      const value = lookup(name)
      if (value !== null) return value
    }
    return null
  }

/** A given Message-Id without its brackets, or null if it is not valid (RFC 5322 §3.6.4). */
export function readMessageId(value: string): string | null {
  const match = /^\s*<?([^\s<>@\p{Cc}]{1,512}@[^\s<>@\p{Cc}]{1,512})>?\s*$/u.exec(value)
  return match?.[1] ?? null
}

/**
 * The Message-Id of one copy of a batch whose field has recipient variables, without its brackets; null if it is not
 * valid with their values.
 */
export const messageIdOfCopy = (template: string, lookup: Lookup): string | null =>
  readMessageId(substitute(template, lookup))

/** Rendering failed for the variables at hand: too deep, too long, too slow (templates.md rule 25). */
export class RenderError extends Error {
  override name = 'RenderError'
}
