/**
 * A client for the four calls of S3 that blobs need, signed with Signature Version 4 over path-style URLs
 * (`endpoint/bucket/key`), which AWS and the compatible servers understand.
 *
 * Bodies are hashed before they are sent, so the server notices bytes that were damaged on the way. A call that meets a
 * broken connection, a 5xx or a 429 is tried again; all calls are repeatable.
 */
import { createHash, createHmac } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { request as tlsRequest } from 'node:https'
import { pipeline } from 'node:stream/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { request as plainRequest } from '../../../base/net/node-http.ts'
import type { LazyChunk } from '../../../protocols/message/mime-message.ts'
import { StoreUnavailable } from '../store.ts'

export interface S3Options {
  /** `https://s3.eu-central-1.amazonaws.com`, without a path. */
  endpoint: string
  region: string
  bucket: string
  accessKeyId: string
  secretAccessKey: string
  sessionToken: string | null
}

export type S3Client = ReturnType<typeof createS3Client>

/** Waits before further tries. */
const RETRY_AFTER_MS = [200, 1_000] as const
/** Without a byte from the server, or to it. */
const SILENT_MAX_MS = 30_000
/** Part of an error's body that is read, to say what is wrong. */
const ERROR_CHARS_MAX = 300
const EMPTY_HASH = createHash('sha256').digest('hex')

interface Call {
  method: 'PUT' | 'GET' | 'HEAD' | 'DELETE'
  key: string
  body?: LazyChunk
}

class Failed extends Error {
  readonly isPassing: boolean
  constructor(message: string, isPassing: boolean, cause?: unknown) {
    super(message, { cause })
    this.isPassing = isPassing
  }
}

export function createS3Client(options: S3Options, now: () => Date = () => new Date()) {
  const base = new URL(options.endpoint)
  const isTls = base.protocol === 'https:'

  async function send<T>(call: Call, read: (response: IncomingMessage) => Promise<T>): Promise<T> {
    for (let tries = 0; ; tries++) {
      try {
        return await sendOnce(call, read)
      } catch (error) {
        const wait = RETRY_AFTER_MS[tries]
        const isPassing = !(error instanceof Failed) || error.isPassing
        if (wait === undefined || !isPassing)
          throw new StoreUnavailable(`Cannot ${call.method} a blob at ${base.host}: ${messageOf(error)}`, {
            cause: error,
          })
        await sleep(wait)
      }
    }
  }

  async function sendOnce<T>(call: Call, read: (response: IncomingMessage) => Promise<T>): Promise<T> {
    const { method, key, body } = call
    const path = `/${[options.bucket, ...key.split('/')].map(uriPart).join('/')}`
    const headers = sign(options, {
      method,
      path,
      host: base.host,
      bodyHash: body ? await hashOf(body) : EMPTY_HASH,
      at: now(),
    })
    if (body) headers['content-length'] = String(body.sizeBytes)
    const sent = (isTls ? tlsRequest : plainRequest)({
      method,
      path,
      headers,
      host: base.hostname.replace(/^\[|\]$/g, ''),
      port: base.port || (isTls ? 443 : 80),
      timeout: SILENT_MAX_MS,
    })
    sent.on('timeout', () => sent.destroy(new Error(`no answer for ${SILENT_MAX_MS / 1000} s`)))
    const answered = new Promise<IncomingMessage>((resolve, reject) => {
      sent.once('response', resolve)
      sent.once('error', reject)
    })
    // A server may answer, and close, before it has read the whole body: its answer counts.
    if (body) await Promise.race([pipeline(body.open(), sent).catch(() => {}), answered])
    else sent.end()
    const response = await answered
    const status = response.statusCode ?? 0
    if (status < 300 || (status === 404 && method !== 'PUT')) return read(response)
    const text = await textOf(response)
    throw new Failed(`${status} ${text}`.trim(), status >= 500 || status === 429)
  }

  const drained = async (response: IncomingMessage) => {
    response.resume()
    return response
  }

  return {
    async put(key: string, body: LazyChunk): Promise<void> {
      await send({ method: 'PUT', key, body }, drained)
    },
    /** Bytes of an object; null: there is none. */
    async size(key: string): Promise<number | null> {
      const { statusCode, headers } = await send({ method: 'HEAD', key }, drained)
      return statusCode === 404 ? null : Number(headers['content-length'])
    },
    /** Hands the object's bytes to `use`; false: there is none. `use` may be called again after a failure. */
    get: (key: string, use: (bytes: AsyncIterable<Uint8Array>) => Promise<void>): Promise<boolean> =>
      send({ method: 'GET', key }, async (response) => {
        if (response.statusCode === 404) {
          response.resume()
          return false
        }
        // With a length Node notices a body that is cut short or goes on; without one it could be cut, or fill the disk.
        if (response.headers['content-length'] === undefined) {
          response.destroy()
          throw new Failed('the answer has no length', false)
        }
        await use(response)
        return true
      }),
    /** Also succeeds if there is none. */
    async remove(key: string): Promise<void> {
      await send({ method: 'DELETE', key }, drained)
    },
  }
}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error))

async function hashOf(body: LazyChunk): Promise<string> {
  const hash = createHash('sha256')
  for await (const bytes of body.openScratch?.() ?? body.open()) hash.update(bytes)
  return hash.digest('hex')
}

async function textOf(response: IncomingMessage): Promise<string> {
  let text = ''
  for await (const bytes of response) {
    text += String(bytes)
    if (text.length > ERROR_CHARS_MAX) break
  }
  return text.slice(0, ERROR_CHARS_MAX)
}

/** Everything but unreserved characters is escaped (RFC 3986 §2.3). */
const uriPart = (text: string) =>
  encodeURIComponent(text).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)

/** The headers of a signed request (Signature Version 4). */
export function sign(
  {
    region,
    accessKeyId,
    secretAccessKey,
    sessionToken,
  }: Pick<S3Options, 'region' | 'accessKeyId' | 'secretAccessKey' | 'sessionToken'>,
  call: {
    method: string
    path: string
    /** Sorted and encoded, without `?`; default none. */
    query?: string
    /** Default `s3`. */
    service?: string
    host: string
    bodyHash: string
    at: Date
    /** Further headers, with names in lower case. */
    headers?: Record<string, string>
  },
): Record<string, string> {
  const time = call.at.toISOString().replace(/[-:]|\.\d+/g, '')
  const day = time.slice(0, 8)
  const headers: Record<string, string> = {
    ...call.headers,
    host: call.host,
    'x-amz-content-sha256': call.bodyHash,
    'x-amz-date': time,
    ...(sessionToken !== null && { 'x-amz-security-token': sessionToken }),
  }
  const names = Object.keys(headers).sort()
  const lines = names.map((name) => `${name}:${headers[name]}\n`).join('')
  const canonical = [call.method, call.path, call.query ?? '', lines, names.join(';'), call.bodyHash].join(
    '\n',
  )
  const { service = 's3' } = call
  const scope = `${day}/${region}/${service}/aws4_request`
  const digest = createHash('sha256').update(canonical).digest('hex')
  const mac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest()
  const key = [day, region, service, 'aws4_request'].reduce<string | Buffer>(mac, `AWS4${secretAccessKey}`)
  const signature = mac(key, ['AWS4-HMAC-SHA256', time, scope, digest].join('\n')).toString('hex')
  headers['authorization'] =
    `AWS4-HMAC-SHA256 Credential=${accessKeyId}/${scope}, SignedHeaders=${names.join(';')}, Signature=${signature}`
  return headers
}
