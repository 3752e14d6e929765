/**
 * MJML as text: elements are cut out of it and attributes replaced in it, and what is not touched stays byte for byte. Nothing is
 * ever written anew from a tree. What cannot be read as an element is given as raw text.
 */

/** Pieces of the source that add up to it: `before` (white space), `open`, `content`, `close`. */
export interface Piece {
  /** Offset of `open`. */
  at: number
  before: string
  /** '' for a comment, text, or a tag that is not closed: all of it is in `content`. */
  tag: string
  open: string
  content: string
  /** '' also for an element without content, as `<mj-spacer />`. */
  close: string
}

const TAG_NAME = /^<([a-z][\w-]*)(?=[\s/>])/i

/** What is between two offsets; `tail` is white space after the last piece. */
export function piecesOf(source: string, start: number, end: number): { pieces: Piece[]; tail: string } {
  const pieces: Piece[] = []
  let at = start
  while (true) {
    const from = at
    while (at < end && /\s/.test(source.charAt(at))) at++
    const before = source.slice(from, at)
    if (at >= end) return { pieces, tail: before }
    const found = elementAt(source, at, end) ?? rawAt(source, at, end)
    pieces.push({ at, before, ...found })
    at += found.open.length + found.content.length + found.close.length
  }
}

type Found = Pick<Piece, 'tag' | 'open' | 'content' | 'close'>

function elementAt(source: string, at: number, end: number): Found | null {
  const tag = TAG_NAME.exec(source.slice(at, Math.min(end, at + 64)))?.[1]
  if (tag === undefined) return null
  const inner = tagEnd(source, at, end)
  if (inner === -1) return null
  const open = source.slice(at, inner)
  if (open.endsWith('/>')) return { tag, open, content: '', close: '' }
  const closing = closeOf(source, tag, inner, end)
  if (closing === null) return null
  return { tag, open, content: source.slice(inner, closing.at), close: source.slice(closing.at, closing.end) }
}

/** After the `>` of the tag at this offset, or -1. A quoted value may have one. */
function tagEnd(source: string, at: number, end: number): number {
  let quote = ''
  for (let index = at; index < end; index++) {
    const char = source.charAt(index)
    if (quote !== '') quote = char === quote ? '' : quote
    else if (char === '"' || char === "'") quote = char
    else if (char === '>') return index + 1
  }
  return -1
}

/** The end tag that belongs to an element; elements of the same name may be inside it. */
function closeOf(source: string, tag: string, from: number, end: number): { at: number; end: number } | null {
  const marks = new RegExp(`<!--|<(/?)${tag}(?=[\\s/>])`, 'g')
  marks.lastIndex = from
  let depth = 1
  for (let mark = marks.exec(source); mark !== null && mark.index < end; mark = marks.exec(source)) {
    const next = mark[0] === '<!--' ? commentEnd(source, mark.index, end) : tagEnd(source, mark.index, end)
    if (next === -1) return null
    if (mark[1] === '/') depth--
    else if (mark[1] === '' && !source.slice(mark.index, next).endsWith('/>')) depth++
    if (depth === 0) return { at: mark.index, end: next }
    marks.lastIndex = next
  }
  return null
}

function commentEnd(source: string, at: number, end: number): number {
  const close = source.indexOf('-->', at + 4)
  return close === -1 || close + 3 > end ? -1 : close + 3
}

/** A comment, or text up to the next tag; after a tag that is not closed nothing can be told apart. */
function rawAt(source: string, at: number, end: number): Found {
  const rawEnd = source.startsWith('<!--', at)
    ? commentEnd(source, at, end)
    : TAG_NAME.test(source.slice(at, at + 64))
      ? -1
      : source.indexOf('<', at + 1)
  const content = source.slice(at, rawEnd === -1 ? end : Math.min(rawEnd, end)).trimEnd()
  return { tag: '', open: '', content, close: '' }
}

const ATTRIBUTE = /([^\s=/>"']+)(?:(\s*=\s*)("[^"]*"|'[^']*'|[^\s"'>]+))?/g

/** An attribute in an open tag. */
interface FoundAttribute {
  name: string
  /** With its quotes. */
  value: string
  start: number
  valueAt: number
  end: number
}

function attributeIn(open: string, wanted: string): FoundAttribute | null {
  const attributes = new RegExp(ATTRIBUTE)
  attributes.lastIndex = (TAG_NAME.exec(open)?.[0] ?? '').length
  for (let found = attributes.exec(open); found !== null; found = attributes.exec(open)) {
    const [whole, name = '', equals = '', value = ''] = found
    if (name !== wanted) continue
    const end = found.index + whole.length
    return { name, value, start: found.index, valueAt: found.index + name.length + equals.length, end }
  }
  return null
}

/** The value of an attribute in an open tag; '' if it is absent. */
export function attributeOf(open: string, name: string): string {
  const value = attributeIn(open, name)?.value ?? ''
  return decoded(/^["']/.test(value) ? value.slice(1, -1) : value)
}

/** The open tag with that value; '' removes the attribute. */
export function withAttribute(open: string, name: string, value: string): string {
  const found = attributeIn(open, name)
  if (found !== null && value === '') {
    const start = open.slice(0, found.start).trimEnd().length
    return open.slice(0, start) + open.slice(found.end)
  }
  if (value === '') return open
  const written = `"${encoded(value)}"`
  if (found !== null && found.value !== '')
    return open.slice(0, found.valueAt) + written + open.slice(found.end)
  const rest = /\s*\/?>$/.exec(open)?.index ?? open.length
  return `${open.slice(0, rest)} ${name}=${written}${open.slice(rest)}`
}

const CODES: Readonly<Record<string, string>> = { '&': '&amp;', '"': '&quot;', '<': '&lt;', '>': '&gt;' }
const CHARS: Readonly<Record<string, string>> = {
  '&amp;': '&',
  '&quot;': '"',
  '&#39;': "'",
  '&lt;': '<',
  '&gt;': '>',
}

/** Handlebars expressions stay as they are, but for quotes, which would end the value. */
const encoded = (value: string) =>
  value.replaceAll(/\{\{[^{}]*\}\}|[&"<>]/g, (part) => CODES[part] ?? part.replaceAll('"', "'"))

const decoded = (value: string) =>
  value.replaceAll(/&(?:amp|quot|#39|lt|gt);/g, (code) => CHARS[code] ?? code)
