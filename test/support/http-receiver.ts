/** An HTTP server that records POSTs and responds as configured. */
import { createServer, type IncomingHttpHeaders, type RequestListener, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Certificate } from '../../src/base/net/certificate.ts'

export interface ReceivedPost {
  path: string
  method: string
  headers: IncomingHttpHeaders
  raw: Buffer
  /** The parsed JSON body; null if it is none. */
  // biome-ignore lint/suspicious/noExplicitAny: a test reaches into bodies freely and asserts on what it finds
  body: any
}

/** A status, or a function that writes the whole response. */
export type ReceiverAnswer = number | ((response: ServerResponse, post: ReceivedPost) => void)

export interface Receiver {
  url: string
  host: string
  port: number
  posts: ReceivedPost[]
  connections: { total: number; open: number; peakPosts: number }
  answer: ReceiverAnswer
  /** Stops listening and closes open connections; `listen` uses the same port again. */
  close(): Promise<void>
  listen(): Promise<void>
}

export async function createReceiver(
  options: { host?: string; answer?: ReceiverAnswer; tls?: Certificate } = {},
): Promise<Receiver> {
  const host = options.host ?? '127.0.0.1'
  let posts = 0
  const handle: RequestListener = (request, response) => {
    posts++
    receiver.connections.peakPosts = Math.max(receiver.connections.peakPosts, posts)
    response.on('close', () => posts--)
    const chunks: Buffer[] = []
    request.on('error', () => {})
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const raw = Buffer.concat(chunks)
      const post = {
        path: request.url ?? '',
        method: request.method ?? '',
        headers: request.headers,
        raw,
        body: jsonOf(raw.toString()),
      }
      receiver.posts.push(post)
      const { answer } = receiver
      if (typeof answer === 'number') response.writeHead(answer).end()
      else answer(response, post)
    })
  }
  const server = options.tls ? createTlsServer(options.tls, handle) : createServer(handle)
  server.on('connection', (socket) => {
    receiver.connections.total++
    receiver.connections.open++
    socket.on('close', () => receiver.connections.open--)
    socket.on('error', () => {})
  })
  const receiver: Receiver = {
    url: '',
    host,
    port: 0,
    posts: [],
    connections: { total: 0, open: 0, peakPosts: 0 },
    answer: options.answer ?? 200,
    listen: () =>
      new Promise((resolve, reject) => {
        server.once('error', reject)
        server.listen(receiver.port, host, resolve)
      }),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  await receiver.listen()
  receiver.port = (server.address() as AddressInfo).port
  receiver.url = `${options.tls ? 'https' : 'http'}://${host}:${receiver.port}`
  return receiver
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
