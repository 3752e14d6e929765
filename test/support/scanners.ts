/** Stand-ins for rspamd, spamd and clamd, which answer as their protocols say, or badly. */
import assert from 'node:assert/strict'
import { createServer as createHttpServer, type IncomingHttpHeaders } from 'node:http'
import { createServer, type Server, type Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { ownAddress } from './service.ts'

async function listening(t: TestContext, server: Server): Promise<{ host: string; port: number }> {
  const host = ownAddress()
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  t.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  const address = server.address()
  assert.ok(typeof address === 'object' && address)
  return { host, port: address.port }
}

interface Score {
  score: number
  action: string
}

/** What a mail gets: spam from 15 points by its rules. */
const byText = (mail: string): Score =>
  mail.includes('BUY NOW') ? { score: 15.27, action: 'reject' } : { score: -0.1, action: 'no action' }

/** A text is sent as it stands; null: it never answers. */
export async function startRspamd(
  t: TestContext,
  scoreOf: (mail: string) => Score | string | null | Promise<Score> = byText,
) {
  const asked: { headers: IncomingHttpHeaders; mail: string }[] = []
  const server = createHttpServer(async (request, response) => {
    if (request.url === '/ping') {
      response.end('pong\r\n')
      return
    }
    assert.deepEqual([request.method, request.url], ['POST', '/checkv2'])
    const mail = Buffer.concat(await request.toArray()).toString()
    asked.push({ headers: request.headers, mail })
    const given = await scoreOf(mail)
    if (given === null) return
    response.setHeader('content-type', 'application/json')
    const answer = { is_skipped: false, symbols: {}, required_score: 15 }
    response.end(typeof given === 'string' ? given : JSON.stringify({ ...answer, ...given }))
  })
  const { host, port } = await listening(t, server)
  return { asked, url: `rspamd://${host}:${port}` }
}

/** Reads as many bytes as announced and closes, as spamd does. */
export async function startSpamd(t: TestContext) {
  const asked: string[] = []
  const server = createServer((socket) => {
    let request = ''
    socket.on('data', (piece) => {
      request += piece.toString('latin1')
      if (request === 'PING SPAMC/1.2\r\n\r\n') socket.end('SPAMD/1.5 0 PONG\r\n')
      const [, head, length] = /^(CHECK SPAMC\/1\.\d\r\nContent-length: (\d+)\r\n\r\n)/.exec(request) ?? []
      if (head === undefined || request.length < head.length + Number(length)) return
      asked.push(request.slice(head.length))
      const result = request.includes('BUY NOW') ? 'True ; 7.4 / 5.0' : 'False ; 0.3 / 5.0'
      socket.end(`SPAMD/1.1 0 EX_OK\r\nContent-length: 0\r\nSpam: ${result}\r\n\r\n`)
    })
    socket.on('error', () => {})
  })
  const { host, port } = await listening(t, server)
  return { asked, url: `spamd://${host}:${port}` }
}

/** The part of a virus that this clamd knows. */
export const VIRUS = 'VIRUS-OF-THESE-TESTS'

/** Finds the virus where it is in a file as it stands, in base64 or not. `answerTo`: its answer; null: never. */
export async function startClamd(
  t: TestContext,
  answerTo: (stream: string) => string | null = (stream) =>
    stream.includes(VIRUS) || stream.includes(Buffer.from(VIRUS).toString('base64').slice(0, 20))
      ? 'stream: Test-Virus FOUND\0'
      : 'stream: OK\0',
) {
  const scanned: string[] = []
  const server = createServer((socket) => {
    let request = Buffer.alloc(0)
    socket.on('data', (piece) => {
      request = Buffer.concat([request, piece])
      if (request.equals(Buffer.from('zPING\0'))) socket.end('PONG\0')
      const stream = wholeStream(request)
      if (stream === null) return
      scanned.push(stream)
      const answer = answerTo(stream)
      if (answer !== null) socket.end(answer)
    })
    socket.on('error', () => {})
  })
  const { host, port } = await listening(t, server)
  return { scanned, url: `clamd://${host}:${port}` }
}

const COMMAND = 'zINSTREAM\0'

/** Null: it has not ended. */
function wholeStream(request: Buffer): string | null {
  if (request.length < COMMAND.length) return null
  assert.equal(request.toString('latin1', 0, COMMAND.length), COMMAND)
  let stream = ''
  for (let at = COMMAND.length; at + 4 <= request.length; ) {
    const length = request.readUInt32BE(at)
    if (length === 0) return stream
    if (at + 4 + length > request.length) return null
    stream += request.toString('latin1', at + 4, at + 4 + length)
    at += 4 + length
  }
  return null
}
