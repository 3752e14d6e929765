/** Passes requests on to a service and keeps them, with the responses, in order. */
import { createServer, type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Exchange } from './exchange.ts'

/** Headers that belong to the connection, that are made again, or that ask for compression. */
const NOT_KEPT = new Set([
  ...['accept-encoding', 'authorization', 'connection', 'content-length', 'host', 'keep-alive', 'te'],
  'transfer-encoding',
])

export interface RecordingProxy {
  url: string
  exchanges: Omit<Exchange, 'call'>[]
  /** Authorization headers that came, each once. */
  authorizations: Set<string>
  close(): Promise<void>
}

/** Listens on 127.0.0.1, which the Python client allows without TLS. @param target base URL of the service */
export async function startRecordingProxy(target: string): Promise<RecordingProxy> {
  const exchanges: RecordingProxy['exchanges'] = []
  const authorizations = new Set<string>()
  const server = createServer((incoming, outgoing) => {
    void (async () => {
      const body = Buffer.concat(await incoming.toArray())
      const answer = await passOn(target, incoming, body)
      const text = Buffer.concat(await answer.toArray()).toString()
      authorizations.add(incoming.headers.authorization ?? '')
      exchanges.push({
        method: incoming.method ?? '',
        path: incoming.url ?? '',
        headers: keptHeaders(incoming),
        body: textOf(body),
        status: answer.statusCode ?? 0,
        response: parsed(text),
      })
      const type = answer.headers['content-type']
      outgoing.writeHead(answer.statusCode ?? 502, type === undefined ? {} : { 'content-type': type })
      outgoing.end(text)
    })().catch((error: unknown) => outgoing.destroy(error as Error))
  })
  server.listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    exchanges,
    authorizations,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

function passOn(target: string, { method, url, headers }: IncomingMessage, body: Buffer) {
  return new Promise<IncomingMessage>((resolve, reject) => {
    const { 'accept-encoding': _compressed, 'transfer-encoding': _chunked, host: _host, ...passed } = headers
    const sent = body.length > 0 || headers['content-length'] !== undefined
    const given = { ...passed, ...(sent && { 'content-length': `${body.length}` }) }
    request(new URL(url ?? '', target), { method: method ?? '', headers: given }, resolve)
      .on('error', reject)
      .end(body)
  })
}

function keptHeaders({ rawHeaders }: IncomingMessage): Record<string, string> {
  const kept: Record<string, string> = {}
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const [name = '', value = ''] = rawHeaders.slice(at, at + 2)
    if (!NOT_KEPT.has(name.toLowerCase())) kept[name] = value
  }
  return kept
}

/** @throws Error for a body that is no UTF-8, which a recording cannot hold */
const textOf = (body: Buffer) => new TextDecoder('utf-8', { fatal: true }).decode(body)

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
