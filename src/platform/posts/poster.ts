/** A single POST of bytes to a URL, for areas that keep their own queue (archive). */
import { type Chunk, readChunks } from '../../protocols/message/mime-message.ts'
import type { HttpClient } from './http-client.ts'
import { conclude } from './post-attempts.ts'

export interface Poster {
  /** `taken`: a 2xx. `gone`: 406, do not retry. `retry`: everything else. Network errors do not reject. */
  post(url: string, contentType: string, body: Chunk): Promise<'taken' | 'retry' | 'gone'>
}

/** Enough for a message of 25 MB over a slow line. */
const POST_MAX_MS = 60_000

export function createPoster(client: HttpClient): Poster {
  return {
    async post(url, contentType, body) {
      const parts: Uint8Array[] = []
      for await (const bytes of readChunks([body])) parts.push(bytes)
      const headers = { 'content-type': contentType }
      const outcome = await client.send({ url, headers, body: Buffer.concat(parts), totalMs: POST_MAX_MS })
      const { status, nextAttemptAt } = conclude(0, outcome, [1], 0)
      if (status === 'ok') return 'taken'
      return nextAttemptAt === null ? 'gone' : 'retry'
    },
  }
}
