/**
 * How an html part shows files beside it (RFC 2392): `cid:` and the Content-Id of the file.
 *
 * A file is named by its file name, as senders write it: raw, percent-encoded, or with character references. Readers differ in
 * which of these they decode. So a name that is the same in all forms is the Content-Id, and for any other name one is made,
 * which then replaces the name in the html.
 */
import { Parser } from 'htmlparser2'
import type { StoredFile } from '../record/record.ts'

export type NamedFile = Pick<StoredFile, 'disposition' | 'filename'>

/** The same raw, percent-encoded and in html. */
const SAME_IN_ALL_FORMS = /^[\w.@!$*+=~^{|}/;:,-]+$/
/** References that are read in one html part, which takes 30 ms if all are as long as they may be. */
const REFERENCES_MAX = 500
/** Longest reference; a file name has 255 bytes, each of which may be written with six characters. */
const REFERENCE_CHARS_MAX = 2_000

/** One for each file; null for those that are not inline. All are different; the first file of a name can have the name. */
export function contentIds(files: readonly NamedFile[]): (string | null)[] {
  const ids: (string | null)[] = files.map(() => null)
  const taken = new Set<string>()
  const inline = [...files.entries()].filter(([, { disposition }]) => disposition === 'inline')
  for (const [at, { filename }] of inline) {
    if (!SAME_IN_ALL_FORMS.test(filename) || taken.has(filename)) continue
    taken.add(filename)
    ids[at] = filename
  }
  for (const [at, { filename }] of inline) {
    if (ids[at] !== null) continue
    let id = `${at + 1}_${filename.replace(/[^\w.-]+/g, '_')}`
    while (taken.has(id)) id = `_${id}`
    taken.add(id)
    ids[at] = id
  }
  return ids
}

/** The html with the Content-Ids of files in place of their names, where the two differ. */
export function withContentIds(html: string, files: readonly NamedFile[]): string {
  const idOf = madeIds(files)
  if (idOf.size === 0) return html
  let result = ''
  let from = 0
  let read = 0
  for (const { index } of html.matchAll(/cid:/gi)) {
    if (++read > REFERENCES_MAX) break
    const start = index + 'cid:'.length
    const reference = referenceAt(html, index, start)
    const id = reference === null ? undefined : idOf.get(nameOf(reference))
    if (reference === null || id === undefined) continue
    result += html.slice(from, start) + id
    from = start + reference.length
  }
  return result + html.slice(from)
}

/** Whether `withContentIds` would look for references to these. */
export const hasMadeIds = (files: readonly NamedFile[]): boolean => madeIds(files).size > 0

/** Content-Ids that differ from the file's name, by that name. */
function madeIds(files: readonly NamedFile[]): Map<string, string> {
  const ids = contentIds(files)
  const made = new Map<string, string>()
  for (const [at, { filename }] of files.entries()) {
    const [id, name] = [ids[at], filename.normalize('NFC')]
    // Of several files of one name the first is meant.
    if (id !== null && id !== undefined && !made.has(name)) made.set(name, id)
  }
  for (const [name, id] of made) if (name === id) made.delete(name)
  return made
}

/** Up to the quote, bracket or blank that ends it; null if `cid:` does not begin a value. */
function referenceAt(html: string, index: number, start: number): string | null {
  const text = html.slice(start, start + REFERENCE_CHARS_MAX)
  const before = html.slice(Math.max(0, index - 6), index)
  const [, mark = ''] = /(["'(=]|&quot;|&#39;|&#34;)$/.exec(before) ?? []
  if (mark === '') return null
  const end = mark === '=' ? text.search(/[\s>]/) : text.indexOf(mark === '(' ? ')' : mark)
  return end < 0 ? null : text.slice(0, end)
}

function nameOf(reference: string): string {
  const text = reference.includes('&') ? withoutReferences(reference) : reference
  return percentDecoded(text).normalize('NFC').trim()
}

function withoutReferences(text: string): string {
  let value = text
  const parser = new Parser({
    onattribute: (_, decoded) => {
      value = decoded
    },
  })
  parser.end(`<a b="${text.replaceAll('"', '&quot;')}">`)
  return value
}

function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    // A name with a percent sign, written as it is.
    return text
  }
}
