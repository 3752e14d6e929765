/**
 * The export of a person: a folder as one `.tar.gz` (ustar, POSIX.1-2017 pax; RFC 1952). Each piece is a member of the gzip
 * file (§2.2), so pieces are written one by one and need no other.
 */
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { escapeHtml } from '../../platform/http/answer/pages.ts'
import type { BlobStore, SpooledBlob } from '../../platform/store/blobs/blobs.ts'
import type { Row } from './walk.ts'

export interface ArchiveFile {
  /** Path in the folder: ASCII, at most 99 characters. */
  name: string
  sizeBytes: number
  content: Uint8Array | AsyncIterable<Uint8Array>
}

const BLOCK = 512
const FOLDER = 'person'

export const textFile = (name: string, text: string): ArchiveFile => {
  const content = Buffer.from(text)
  return { name, sizeBytes: content.byteLength, content }
}

/** @param nowMs time of the files; `isLast`: the end of the archive follows */
export async function writePiece(
  spool: Pick<BlobStore, 'spool'>,
  files: readonly ArchiveFile[],
  nowMs: number,
  isLast: boolean,
): Promise<SpooledBlob> {
  async function* bytes(): AsyncGenerator<Uint8Array> {
    for (const { name, sizeBytes, content } of files) {
      yield head(`${FOLDER}/${name}`, sizeBytes, nowMs)
      if (content instanceof Uint8Array) yield content
      else yield* content
      yield Buffer.alloc((BLOCK - (sizeBytes % BLOCK)) % BLOCK)
    }
    if (isLast) yield Buffer.alloc(2 * BLOCK)
  }
  let blob: SpooledBlob | undefined
  await pipeline(bytes, createGzip(), async (packed: AsyncIterable<Uint8Array>) => {
    blob = await spool.spool(packed)
  })
  return blob as SpooledBlob
}

function head(name: string, sizeBytes: number, nowMs: number): Buffer {
  const block = Buffer.alloc(BLOCK)
  const octal = (value: number, width: number) => `${value.toString(8).padStart(width - 1, '0')}\0`
  block.write(name, 0, 100, 'latin1')
  block.write(octal(0o600, 8), 100)
  block.write(octal(0, 8), 108)
  block.write(octal(0, 8), 116)
  block.write(octal(sizeBytes, 12), 124)
  block.write(octal(Math.floor(nowMs / 1000), 12), 136)
  block.write('        0', 148)
  block.write('ustar\x0000', 257)
  let sum = 0
  for (const byte of block) sum += byte
  block.write(`${octal(sum, 7)} `, 148)
  return block
}

/** Columns that say nothing about the person: secrets, locks, and bytes. */
const HIDDEN = /sealed|secret|hmac|hash|digest|token|lease|blob|password|totp|source_key/

/** Mail addresses of others in a text. Each run of characters is read once. */
const ADDRESS = /[^\s<>"'(),:;[\]\\@]{1,64}@([a-z0-9-]+(?:\.[a-z0-9-]+)+)/gi

/**
 * A row as the person may see it: values of JSON columns as such, addresses of others without their local part.
 * `isIn`: whether a text is the person's address.
 */
export function shownRow(row: Row, isIn: (text: string) => boolean): Record<string, unknown> {
  const shown: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(row)) {
    if (value === null || value instanceof Uint8Array || HIDDEN.test(name)) continue
    shown[name.replace(/_json$/, '')] = name.endsWith('_json')
      ? withoutOthers(parsed(String(value)), isIn)
      : withoutOthers(value, isIn)
  }
  return shown
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

function withoutOthers(value: unknown, isIn: (text: string) => boolean): unknown {
  if (typeof value === 'string')
    return value.replace(ADDRESS, (found, domain) => (isIn(found) ? found : `…@${domain}`))
  if (Array.isArray(value)) return value.map((item) => withoutOthers(item, isIn))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      String(withoutOthers(name, isIn)),
      withoutOthers(member, isIn),
    ]),
  )
}

const page = (title: string, body: string) => `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${escapeHtml(title)}</title>
<style>body{font:1rem/1.5 system-ui;margin:2rem auto;max-width:60rem;padding:0 1rem}
table{border-collapse:collapse;margin:1rem 0}th,td{border:1px solid #999;padding:.2rem .5rem;text-align:left;vertical-align:top;overflow-wrap:anywhere}</style>
<h1>${escapeHtml(title)}</h1>
${body}</html>
`

const cell = (value: unknown) =>
  escapeHtml(typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value))

/** Rows of a store for people to read; nothing of it is active. */
export function rowsPage(title: string, rows: readonly Record<string, unknown>[]): string {
  const tables = rows.map(
    (row) =>
      `<table>${Object.entries(row)
        .map(([name, value]) => `<tr><th scope="row">${escapeHtml(name)}</th><td>${cell(value)}</td></tr>`)
        .join('')}</table>`,
  )
  return page(title, `<p><a href="../index.html">Overview</a></p>${tables.join('\n')}`)
}

export interface IndexEntry {
  store: string
  about: string
  found: number
  /** Numbered files in the folder of the store. */
  files: number
}

export const fileName = (store: string, no: number, end: 'json' | 'html') =>
  `${store}/${String(no).padStart(4, '0')}.${end}`

/** The first page. */
export function indexPage(
  address: string,
  made: string,
  entries: readonly IndexEntry[],
  mails: number,
): string {
  const links = ({ store, files }: IndexEntry) =>
    Array.from({ length: files }, (_, at) => {
      const [html, json] = (['html', 'json'] as const).map((end) => fileName(store, at + 1, end))
      return `<a href="${html}">page ${at + 1}</a> (<a href="${json}">JSON</a>)`
    }).join(', ')
  const rows = entries.map(
    (entry) =>
      `<tr><td>${escapeHtml(entry.store)}</td><td>${escapeHtml(entry.about)}</td><td>${entry.found}</td><td>${links(entry)}</td></tr>`,
  )
  return page(
    `What is stored about ${address}`,
    `<p>Made ${escapeHtml(made)}. ${mails} mails are in the folder <code>mails</code>, each a file that mail programs open.</p>
<table><tr><th>Kind</th><th>What it is</th><th>Entries</th><th>Read</th></tr>${rows.join('\n')}</table>`,
  )
}
