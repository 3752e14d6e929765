/**
 * Answers that are the same for all clients as long as the process runs. Their bytes, plain and compressed, are made once
 * and shared with the listening thread, so that a thousand of them in flight take no more memory than one.
 */
import { createHash } from 'node:crypto'
import { sharedBytes } from '../../../base/flow/shared-bytes.ts'
import type { Exchange } from '../exchange.ts'

export interface FixedAnswer {
  headers: Readonly<Record<string, string>>
  /** In order of preference; the plain one is the last. */
  forms: readonly Form[]
}

interface Form {
  coding: Coding
  etag: string
  bytes(): Buffer
}

type Coding = 'br' | 'gzip' | 'identity'

/** The compressed forms that exist. A function is called at most once, for the first answer in that form. */
export interface Compressed {
  br?: Uint8Array
  gzip?: Uint8Array | (() => Uint8Array)
}

export function fixedAnswer(
  bytes: Uint8Array,
  headers: Readonly<Record<string, string>>,
  { br, gzip }: Compressed = {},
): FixedAnswer {
  const digest = createHash('sha256').update(bytes).digest('base64url').slice(0, 22)
  const forms: Form[] = []
  if (br) forms.push({ coding: 'br', etag: `"${digest}-br"`, bytes: shared(br) })
  if (gzip) forms.push({ coding: 'gzip', etag: `"${digest}-gzip"`, bytes: shared(gzip) })
  // A strong validator names one sequence of bytes, so that each form has its own (RFC 9110 §8.8.1).
  forms.push({ coding: 'identity', etag: `"${digest}"`, bytes: shared(bytes) })
  return { headers: { ...headers, vary: 'Accept-Encoding' }, forms }
}

function shared(source: Uint8Array | (() => Uint8Array)): () => Buffer {
  if (typeof source !== 'function') {
    const bytes = sharedBytes(source)
    return () => bytes
  }
  let made: Buffer | undefined
  return () => {
    made ??= sharedBytes(source())
    return made
  }
}

/** Answers in the best form that the client accepts, or with 304 if it has any of them. */
export function sendFixed({ headers, forms }: FixedAnswer, exchange: Exchange): void {
  const acceptable = codingsOf(String(exchange.headers['accept-encoding'] ?? ''))
  const form = forms.find(({ coding }) => coding === 'identity' || acceptable(coding)) as Form
  exchange.setHeaders(headers)
  exchange.setHeader('etag', form.etag)
  const known = exchange.headers['if-none-match']
  if (known !== undefined && forms.some(({ etag }) => includesTag(known, etag))) {
    exchange.status = 304
    exchange.send(undefined)
    return
  }
  if (form.coding !== 'identity') exchange.setHeader('content-encoding', form.coding)
  exchange.send(form.bytes())
}

/** RFC 9110 §12.5.3. Without a weight for it, or for `*`, a coding is not acceptable. */
function codingsOf(acceptEncoding: string): (coding: Coding) => boolean {
  const weights = new Map<string, number>()
  for (const item of acceptEncoding.toLowerCase().split(',')) {
    const [coding = '', weight] = item.split(';', 2)
    const value = /^\s*q\s*=\s*([\d.]+)\s*$/.exec(weight ?? 'q=1')?.[1]
    weights.set(coding.trim(), Number(value ?? 0))
  }
  return (coding) => (weights.get(coding) ?? weights.get('*') ?? 0) > 0
}

/** `If-None-Match` with the weak comparison, RFC 9110 §13.1.2. No etag of ours holds a comma. */
function includesTag(ifNoneMatch: string, etag: string): boolean {
  return ifNoneMatch.split(',').some((item) => {
    const one = item.trim()
    return one === '*' || one === etag || one === `W/${etag}`
  })
}
