/** Receivers of large forms: each counts and digests what is posted to it, and keeps none of it. */
import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import { eventually, ownAddress } from './service.ts'

export interface SunkForm {
  /** Of the receiver. */
  at: number
  path: string
  bytes: number
  /** Of all but the signature, which is the last and always has the same size. */
  digest: string
}

export interface FormSink {
  /** With different hosts. */
  urls: string[]
  forms: SunkForm[]
  /** The status of the answer. */
  answer: (form: SunkForm) => number
  waitFor(count: number): Promise<void>
}

const boundary = `sendwright-${'0'.repeat(32)}`
const SIGNATURE_BYTES = [
  ['timestamp', 10],
  ['token', 50],
  ['signature', 64],
].reduce(
  (sum, [name, size]) =>
    sum + `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n\r\n`.length + Number(size),
  `--${boundary}--\r\n`.length,
)

export async function createFormSink(t: TestContext, receivers: number): Promise<FormSink> {
  const sink: FormSink = {
    urls: [],
    forms: [],
    answer: () => 200,
    waitFor: async (count) => {
      await eventually(`${count} forms`, async () => sink.forms.length >= count)
    },
  }
  const take = async (at: number, request: IncomingMessage, response: ServerResponse) => {
    const shared = Number(request.headers['content-length']) - SIGNATURE_BYTES
    const hash = createHash('sha256')
    let bytes = 0
    try {
      for await (const piece of request as AsyncIterable<Buffer>) {
        hash.update(piece.subarray(0, Math.max(0, shared - bytes)))
        bytes += piece.byteLength
      }
    } catch {
      return
    }
    const form = { at, path: request.url ?? '', bytes, digest: hash.digest('hex') }
    response.writeHead(sink.answer(form)).end()
    sink.forms.push(form)
  }
  for (let at = 0; at < receivers; at++) {
    const host = ownAddress()
    const server = createServer((request, response) => void take(at, request, response))
    await new Promise<void>((resolve) => server.listen(0, host, resolve))
    t.after(() => {
      server.close()
      server.closeAllConnections()
    })
    sink.urls.push(`http://${host}:${(server.address() as AddressInfo).port}`)
  }
  return sink
}
