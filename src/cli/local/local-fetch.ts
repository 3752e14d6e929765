/**
 * `fetch` of the service on this machine, through the socket in its data folder (decision 134): the file system says who
 * answers there, so secrets may be sent.
 */
import { lstatSync, type Stats, statSync } from 'node:fs'
import { Readable } from 'node:stream'
import { request } from '../../base/net/node-http.ts'
import type { Config } from '../../platform/config/config.ts'
import { socketFile, socketPath } from '../../platform/http/listening/local-socket.ts'
import { secretFile } from '../../platform/store/secrets/secret-file.ts'

type Fetch = (url: string, init?: RequestInit) => Promise<Response>

/** Base of the URLs of calls; the name stands for the socket, and is never looked up. */
export const LOCAL_BASE = 'http://localhost'

/** As long as Node's own `fetch` waits for an answer, or for more of it. */
const SILENT_MAX_MS = 300_000

/** Another user's socket lies where the service's should be. */
export class ForeignSocket extends Error {}

/**
 * Redirects are not followed.
 * @throws from a call ForeignSocket, or the system's error where no service listens
 */
export function localFetch({ dataFolder }: Pick<Config, 'dataFolder'>): Fetch {
  return async (url, init = {}) => {
    checkOwner(dataFolder)
    const { pathname, search } = new URL(url)
    const sent = new Request(url, init)
    const body = Buffer.from(await sent.arrayBuffer())
    const headers: Record<string, string | number> = Object.fromEntries(sent.headers)
    if (body.byteLength > 0 || init.body != null) headers['content-length'] = body.byteLength
    const socket = socketPath(dataFolder)
    try {
      return await answerOf({
        socketPath: socket.path,
        path: pathname + search,
        ...{ method: sent.method, headers, body, signal: sent.signal },
      })
    } finally {
      socket.release()
    }
  }
}

function answerOf(call: {
  socketPath: string
  path: string
  method: string
  headers: Record<string, string | number>
  body: Buffer
  signal: AbortSignal
}): Promise<Response> {
  const { body, ...options } = call
  return new Promise((resolve, reject) => {
    const sent = request(
      { ...options, host: 'localhost', agent: false, timeout: SILENT_MAX_MS },
      (answer) => {
        const { statusCode = 0 } = answer
        // A `Response` with one of these must have no body.
        const content = [204, 304].includes(statusCode) ? null : Readable.toWeb(answer)
        const headers = new Headers()
        for (const [name, values = []] of Object.entries(answer.headersDistinct))
          for (const value of values) headers.append(name, value)
        resolve(
          new Response(content as ReadableStream<Uint8Array<ArrayBuffer>> | null, {
            status: statusCode,
            headers,
          }),
        )
      },
    )
    sent.on('timeout', () => sent.destroy(new Error('the service is silent')))
    sent.on('error', reject)
    sent.end(body)
  })
}

function checkOwner(dataFolder: string): void {
  const file = socketFile(dataFolder)
  const owners = [dataFolder, secretFile(dataFolder)].flatMap(
    (path) => statSync(path, { throwIfNoEntry: false }) ?? [],
  )
  const socket = lstatSync(file)
  if (!isTrusted(socket, owners, process.geteuid?.()))
    throw new ForeignSocket(`"${file}" is not the service's socket: another user has made it`)
}

/**
 * Whether the service has made it. The folder decides who can put something there; this guards a folder that everybody may
 * write to, such as one below /tmp.
 * @param owners of the data folder and the secret in it
 */
export function isTrusted(
  socket: Pick<Stats, 'uid' | 'isSocket'>,
  owners: readonly Pick<Stats, 'uid'>[],
  ownId: number | undefined,
): boolean {
  return socket.isSocket() && [0, ownId, ...owners.map(({ uid }) => uid)].includes(socket.uid)
}
