/** One HTTP exchange with a certificate authority: a deadline, a size limit, no redirects, no retries. */

export interface AcmeRequest {
  url: string
  method: 'GET' | 'HEAD' | 'POST'
  /** A JWS in JSON (RFC 8555 §6.2). */
  body?: string
}

export interface AcmeAnswer {
  status: number
  headers: Headers
  body: string
}

/** No readable response; the text may be shown to the owner of a host. */
export class AuthorityUnreachable extends Error {}

/** @throws AuthorityUnreachable, or what `signal` was aborted with */
export type AcmeExchange = (request: AcmeRequest, signal: AbortSignal) => Promise<AcmeAnswer>

const REQUEST_MAX_MS = 30_000
/** A chain of four RSA certificates takes 8 KB. */
const ANSWER_MAX_BYTES = 256 * 1024

export const exchangeOverHttp: AcmeExchange = async ({ url, method, body }, signal) => {
  try {
    const response = await fetch(url, {
      method,
      redirect: 'manual', // a signed request names its URL
      signal: AbortSignal.any([signal, AbortSignal.timeout(REQUEST_MAX_MS)]),
      headers: {
        'user-agent': 'Sendwright', // a MUST of RFC 8555 §6.1
        ...(body !== undefined && { 'content-type': 'application/jose+json' }),
      },
      ...(body !== undefined && { body }),
    })
    return { status: response.status, headers: response.headers, body: await readText(response) }
  } catch (error) {
    signal.throwIfAborted()
    throw unreachable(error)
  }
}

/** The system's error text may contain addresses of this network; its code is enough. */
function unreachable(error: unknown): AuthorityUnreachable {
  if (error instanceof AuthorityUnreachable) return error
  if (error instanceof DOMException && error.name === 'TimeoutError')
    return new AuthorityUnreachable(
      `The certificate authority did not answer within ${REQUEST_MAX_MS / 1000} s.`,
    )
  const cause = error instanceof Error ? error.cause : undefined
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'no connection'
  return new AuthorityUnreachable(`The certificate authority cannot be reached (${code}).`, { cause: error })
}

async function readText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength
    if (size > ANSWER_MAX_BYTES)
      throw new AuthorityUnreachable('The certificate authority sends more than can be of use.')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}
