/**
 * Signs messages with DKIM (RFC 6376; RFC 8463 for Ed25519), relaxed/relaxed, SHA-256, without `l=`:
 *
 * 1. the body hash, once for all keys (body-hash.ts);
 * 2. the header fields to sign, canonicalised once for all keys, and the `h=` list that names them;
 * 3. per key: the DKIM-Signature field with an empty `b=`, canonicalised after the others, signed on Node's thread pool.
 *
 * The caller chooses the keys, and knows whether their records are in DNS.
 *
 * Measured (Zen 3, Node 24, 10 KB of text, 12 fields): 31 us without the signature, of which 20 us are the body hash. The
 * signature takes 610 us by RSA-2048, 38 us by Ed25519.
 */
import assert from 'node:assert/strict'
import { createHash, type KeyObject, sign } from 'node:crypto'
import { promisify } from 'node:util'
import { ownText, remember } from '../../base/flow/cache.ts'
import type { MimeMessage } from '../message/mime-message.ts'
import { relaxedBodyHash } from './body-hash.ts'

export interface SigningKey {
  /** `d=`: A-labels. */
  domain: string
  /** `s=`; the public key is published under `<selector>._domainkey.<domain>`. */
  selector: string
  algorithm: 'rsa' | 'ed25519'
  privateKey: KeyObject
}

export interface SigningOptions {
  /** `t=`, cut to whole seconds. */
  signedAt: Date
}

/**
 * What a reader sees or answers by, and what decides how the body is read. These are signed even when absent, and once more
 * than they occur, so that none can be added to a mail that is sent again (RFC 6376 §5.4.2, §8.15).
 */
const CLOSED_NAMES = [
  'from',
  'to',
  'cc',
  'subject',
  'date',
  'message-id',
  'mime-version',
  'content-type',
  'content-transfer-encoding',
  'reply-to',
]
/**
 * Signed where present. Servers on the way may add such fields, and Sender, Resent and trace fields, which are not signed
 * (RFC 6376 §5.4.1).
 */
const LIST_FIELDS = 'list-'
/** Receivers heed these only if they are signed (RFC 9477 §3.1.4; Gmail). */
const FEEDBACK_FIELDS: ReadonlySet<string> = new Set(['cfbl-address', 'cfbl-feedback-id', 'feedback-id'])

/** Lines of the field stay within this where a fold is possible (RFC 5322 §2.1.1). */
const LINE_LENGTH = 76

const SIGNATURE_LINE = new RegExp(`.{1,${LINE_LENGTH - 2}}`, 'g')

const DOMAIN_PATTERN = /^[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*$/

const signAsync = promisify<string | null, Uint8Array, KeyObject, Buffer>(sign)

/**
 * One complete, folded `DKIM-Signature: ...` field per key, in the order of the keys, without final CRLF, to be put in
 * front of `message.headers`. Existing signatures stay unsigned. No keys: no fields, and the body is not read.
 * Rejects when a lazy chunk cannot be read; a malformed header field, domain or selector is a fault of the program.
 */
export async function signMessage(
  message: MimeMessage,
  keys: readonly SigningKey[],
  options: SigningOptions,
): Promise<string[]> {
  if (keys.length === 0) return []
  const unsigned = unsignedFields(message.headers, await relaxedBodyHash(message.body), keys, options)
  return Promise.all(
    unsigned.map(async ({ key, field, text }) => {
      const signature = await signAsync(DIGESTS[key.algorithm], toSign(key, text), key.privateKey)
      return field + foldSignature(signature.toString('base64'))
    }),
  )
}

/** Per key the field with an empty `b=` and the text to sign. */
function unsignedFields(
  headers: readonly string[],
  bodyHash: string,
  keys: readonly SigningKey[],
  options: SigningOptions,
): { key: SigningKey; field: string; text: string }[] {
  const selection = selectionOf(headers)
  let canonical = ''
  for (const { place, name } of selection.fields)
    canonical += `${name}:${canonicalValue(headers[place] as string)}\r\n`
  return keys.map((key) => {
    const field = signatureField(key, options.signedAt, selection.names, bodyHash)
    return { key, field, text: canonical + canonicalHeader(field) }
  })
}

/** The relaxed form: lower-case name, unfolded, white space collapsed and trimmed; no CRLF. RFC 6376 §3.4.2. */
export function canonicalHeader(field: string): string {
  return `${nameOf(field)}:${canonicalValue(field)}`
}

function canonicalValue(field: string): string {
  // Only SP, HTAB and folds: a no-break space or any other Unicode space is content.
  // Nearly all are single spaces, which need no change.
  const value = field.slice(field.indexOf(':') + 1).replace(/[ \t\r\n]{2,}|[\t\r\n]/g, ' ')
  const start = value.startsWith(' ') ? 1 : 0
  const end = value.length > start && value.endsWith(' ') ? value.length - 1 : value.length
  return value.slice(start, end)
}

interface Selection {
  /** The fields to sign, in order: index among the header fields, name in lower case. */
  fields: readonly { place: number; name: string }[]
  /** The `h=` list. */
  names: readonly string[]
}

/** By the names of a message's fields in their order: nearly all messages of a sender have the same. */
const selections = new Map<string, Selection>()
const SELECTIONS_MAX = 1_000
const SELECTION_CHARS_MAX = 1_000

function selectionOf(headers: readonly string[]): Selection {
  let written = ''
  for (const field of headers) {
    assert(isFolded(field), 'header field with a line end that is not a fold')
    const colon = field.indexOf(':')
    written += colon > 0 ? field.slice(0, colon + 1) : ':'
  }
  if (written.length > SELECTION_CHARS_MAX) return select(headers)
  return selections.get(written) ?? remember(selections, SELECTIONS_MAX, ownText(written), select(headers))
}

/**
 * A name that is listed n times means its last n instances counted upwards (RFC 6376 §5.4.2), so instances are chosen
 * from the bottom.
 */
function select(headers: readonly string[]): Selection {
  const places = new Map<string, number[]>()
  for (const [place, field] of headers.entries()) {
    // A line that is no field cannot be named.
    if (field.indexOf(':') <= 0) continue
    // Kept for long, so not as a slice of this field.
    const name = ownText(nameOf(field))
    const alike = places.get(name)
    if (alike === undefined) places.set(name, [place])
    else alike.unshift(place)
  }
  const names: string[] = []
  const fields: { place: number; name: string }[] = []
  const others = [...places.keys()].filter(
    (name) => name.startsWith(LIST_FIELDS) || FEEDBACK_FIELDS.has(name),
  )
  for (const name of [...CLOSED_NAMES, ...others]) {
    for (const place of places.get(name) ?? []) {
      names.push(name)
      fields.push({ place, name })
    }
    if (CLOSED_NAMES.includes(name)) names.push(name)
  }
  return { names, fields }
}

function nameOf(field: string): string {
  const colon = field.indexOf(':')
  assert(colon > 0, 'header field without a name')
  return field.slice(0, colon).trimEnd().toLowerCase()
}

/** No CR, LF or NUL except as CRLF before white space. */
function isFolded(field: string): boolean {
  return !/[\r\n\0]/.test(field) || !/\r(?!\n)|(?<!\r)\n|\r\n(?![ \t])|\0/.test(field)
}

/** The field with an empty `b=` as its last tag. */
function signatureField(key: SigningKey, signedAt: Date, names: readonly string[], bodyHash: string): string {
  assert(
    DOMAIN_PATTERN.test(key.domain) && DOMAIN_PATTERN.test(key.selector),
    'bad signing domain or selector',
  )
  return foldTags([
    `DKIM-Signature: v=1; a=${key.algorithm}-sha256; c=relaxed/relaxed;`,
    ` d=${key.domain};`,
    ` s=${key.selector};`,
    ` t=${Math.floor(signedAt.getTime() / 1000)};`,
    // White space is allowed after the colons of the list, so it is folded there (RFC 6376 §3.5).
    ...names.map(
      (name, index) => `${index === 0 ? ' h=' : ''}${name}${index === names.length - 1 ? ';' : ':'}`,
    ),
    ` bh=${bodyHash};`,
    ' b=',
  ])
}

/** Joins pieces, starting a new line where the next one would not fit. */
function foldTags(pieces: readonly string[]): string {
  let text = ''
  let lineLength = 0
  for (const piece of pieces) {
    if (lineLength > 0 && lineLength + piece.length > LINE_LENGTH) {
      text += `\r\n ${piece.trimStart()}`
      lineLength = 1 + piece.trimStart().length
    } else {
      text += piece
      lineLength += piece.length
    }
  }
  return text
}

/** The rest of the `b=` tag; white space in it is ignored by verifiers. */
function foldSignature(base64: string): string {
  const lines = base64.match(SIGNATURE_LINE) ?? []
  return `\r\n ${lines.join('\r\n ')}`
}

/** RSA signs the hash of the text; Ed25519 takes the SHA-256 itself as its message (RFC 8463 §3). */
const DIGESTS = { rsa: 'sha256', ed25519: null } as const

function toSign({ algorithm }: SigningKey, text: string): Buffer {
  const data = Buffer.from(text)
  return algorithm === 'rsa' ? data : createHash('sha256').update(data).digest()
}
