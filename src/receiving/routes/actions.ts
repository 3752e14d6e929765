/** Actions of routes (routes-inbound.md section 4): `forward("...")`, `store(...)`, `stop()`. */
import { readUrl, URL_LENGTH_MAX } from '../../platform/posts/http-client.ts'
import { bareAddress, parseMailbox, readOrNull } from '../../protocols/mime/address.ts'
import { bareUrl } from '../../watching/webhooks/webhook-url.ts'
import { TEXT_LENGTH_MAX } from './match/expression.ts'
import type { Captures } from './match/pattern.ts'

/** A URL or an address as written, with references to captures. */
type Destination = { kind: 'url' | 'address'; text: string }

export type Action =
  | { kind: 'forward'; to: readonly Destination[] }
  /** `notify`: null for no notice. */
  | { kind: 'store'; notify: Destination | null }
  | { kind: 'stop' }

export class ActionSyntaxError extends Error {
  override name = 'ActionSyntaxError'
}

const CALL =
  /^\s*(forward|store|stop)\s*\(\s*(?:(?:(notify)\s*=\s*)?(["'])((?:\\.|(?!\3)[^\\])*)\3\s*)?\)\s*$/is
const REFERENCE = /\\(?:([1-9])|g<([A-Za-z_]\w{0,99}|[0-9])>)/g

/** @throws ActionSyntaxError */
export function parseAction(source: string): Action {
  if (source.length > TEXT_LENGTH_MAX) throw new ActionSyntaxError('too long')
  const match = CALL.exec(source)
  if (!match) throw new ActionSyntaxError('unknown action')
  const [, name = '', notify, quote, quoted] = match
  const text = quoted?.replaceAll(`\\${quote}`, quote as string)
  switch (name.toLowerCase()) {
    case 'stop':
      if (text !== undefined) throw new ActionSyntaxError('stop takes no argument')
      return { kind: 'stop' }
    case 'store':
      return { kind: 'store', notify: text === undefined ? null : noticeUrl(text) }
    default:
      if (text === undefined || notify !== undefined) throw new ActionSyntaxError('a destination is missing')
      return { kind: 'forward', to: destinationsOf(text) }
  }
}

function noticeUrl(text: string): Destination {
  const destination = destinationOf(text)
  if (destination.kind !== 'url') throw new ActionSyntaxError('a notice goes to a URL')
  return destination
}

/** A comma separates only before another destination: URLs may contain commas. */
const destinationsOf = (text: string): Destination[] =>
  text.split(/,(?=\s*https?:\/\/)|,(?=[^,/]*@)/i).map(destinationOf)

function destinationOf(given: string): Destination {
  const text = given.trim()
  if (/^[a-z][a-z0-9+.-]*:/i.test(text) && !/^mailto:/i.test(text)) {
    checkUrl(text)
    return { kind: 'url', text }
  }
  const address = text.replace(/^mailto:/i, '')
  if (addressOf(address, () => 'x') === null) throw new ActionSyntaxError('not a valid address')
  return { kind: 'address', text: address }
}

/** @throws ActionSyntaxError */
function checkUrl(text: string): void {
  const authority = /^https?:\/\/([^/?#]*)/i.exec(text)?.[1]
  if (authority === undefined) throw new ActionSyntaxError('not an http or https URL')
  // A capture there would let the sender of a mail choose the host (rule 2).
  if (authority.includes('\\')) throw new ActionSyntaxError('no capture may be in the host of a URL')
  const fault = readUrl(bareUrl(filled(text, () => 'x')))
  if (typeof fault === 'string') throw new ActionSyntaxError(fault)
}

/** The URLs that an action calls, with `x` in place of captures. */
export const urlsOf = (action: Action): string[] =>
  destinationsIn(action).flatMap(({ kind, text }) => (kind === 'url' ? [filled(text, () => 'x')] : []))

export function destinationsIn(action: Action): readonly Destination[] {
  if (action.kind === 'forward') return action.to
  return action.kind === 'store' && action.notify ? [action.notify] : []
}

type Reference = (key: number | string) => string

const filled = (text: string, reference: Reference) =>
  text.replaceAll(REFERENCE, (_whole, number: string | undefined, name: string | undefined) => {
    const key = number ?? (name as string)
    return reference(/^\d$/.test(key) ? Number(key) : key)
  })

const referenceTo =
  (captures: Captures | null): Reference =>
  (key) =>
    (typeof key === 'number' ? captures?.numbered[key] : captures?.named[key]) ?? ''

/**
 * The destination with the captures filled in, percent-encoded in URLs (rule 1). Null: what was captured makes no valid
 * destination.
 */
export function resolvedDestination({ kind, text }: Destination, captures: Captures | null): string | null {
  const reference = referenceTo(captures)
  if (kind === 'address') return addressOf(text, reference)
  const url = filled(text, (key) => encodeURIComponent(toWellFormed(reference(key))))
  if (url.length > URL_LENGTH_MAX || typeof readUrl(bareUrl(url)) === 'string') return null
  // A captured ".." must not lead to another path.
  return segments(url) === segments(filled(text, () => 'x')) ? url : null
}

const toWellFormed = (text: string) => text.toWellFormed()
const segments = (url: string) => new URL(url).pathname.split('/').length

const addressOf = (text: string, reference: Reference) =>
  readOrNull(() => bareAddress(parseMailbox(filled(text, reference))))
