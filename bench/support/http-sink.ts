/** The sink of posts: an HTTP server that reads everything and responds 200; a separate process that answers as sink.ts. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { serveHelper } from './helper-process.ts'
import type { SinkQuestion, SinkStats } from './sink.ts'
import { monotonicMs } from './stats.ts'

const EMPTY = { count: 0, byDomain: {}, refused: 0, signed: 0, firstAt: 0, lastAt: 0 }

let stats: SinkStats = { ...EMPTY, port: 0, connections: 0 }

const server = createServer((request, response) => {
  request.on('error', () => response.destroy())
  request.on('end', () => {
    const now = monotonicMs()
    if (stats.count === 0) stats.firstAt = now
    stats.lastAt = now
    stats.count++
    response.writeHead(200, { 'content-length': 0 }).end()
  })
  request.resume()
})
server.on('connection', () => stats.connections++)

async function listen([host]: readonly string[]): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host, port: 0, backlog: 1_024 }, resolve)
  })
  stats.port = (server.address() as AddressInfo).port
}

if (process.send) {
  serveHelper<SinkQuestion, SinkStats>(async (question) => {
    if (question.kind === 'listen') await listen(question.hosts)
    if (question.kind === 'reset') stats = { ...EMPTY, port: stats.port, connections: 0 }
    return stats
  })
}
