/** rspamd's HTTP protocol: POST /checkv2 of its normal worker; rspamd.com/doc/developers/protocol.html. */
import { parseForeignJson } from '../../base/foreign-json.ts'
import { isPlainObject } from '../../base/values.ts'
import type { ScannerServer } from './exchange.ts'
import { type AskScorer, pointsOf } from './spam-score.ts'

/** rspamd's own decision by its thresholds; greylisting is not ours to do for it. */
const SPAM_ACTIONS: readonly unknown[] = ['reject', 'add header', 'rewrite subject']
/** A list of all symbols takes some 10 KB. */
const ANSWER_BYTES_MAX = 512 * 1024

export const askRspamd: AskScorer = async (server, mail, bytes, signal) => {
  const headers = new Headers({
    ip: mail.remoteAddress,
    helo: printable(mail.helo),
    from: printable(mail.sender),
  })
  if (mail.user !== undefined) headers.set('user', printable(mail.user))
  for (const recipient of mail.recipients) headers.append('rcpt', printable(recipient))
  const text = await request(server, '/checkv2', {
    method: 'POST',
    headers,
    body: new Uint8Array(bytes),
    signal,
  })
  const answer = parseForeignJson(text)
  if (!isPlainObject(answer) || typeof answer['score'] !== 'number')
    throw new Error('the answer of rspamd has no score')
  const required = answer['required_score']
  return {
    score: pointsOf(answer['score']),
    isSpam: SPAM_ACTIONS.includes(answer['action']),
    ...(typeof required === 'number' && { required: pointsOf(required) }),
    ...(answer['action'] === 'reject' && { rejects: true }),
  }
}

/** @throws Error when it does not answer as its protocol says */
export async function pingRspamd(server: ScannerServer, signal: AbortSignal): Promise<void> {
  const answer = await request(server, '/ping', { signal })
  if (answer.trim() !== 'pong') throw new Error('rspamd did not answer "pong"')
}

async function request(server: ScannerServer, path: string, init: RequestInit): Promise<string> {
  if ('path' in server) throw new Error('rspamd is asked over TCP only')
  const host = server.host.includes(':') ? `[${server.host}]` : server.host
  const response = await fetch(`http://${host}:${server.port}${path}`, { ...init, redirect: 'error' })
  const pieces: Uint8Array[] = []
  let size = 0
  for await (const piece of response.body ?? []) {
    pieces.push(piece)
    size += piece.byteLength
    if (size > ANSWER_BYTES_MAX) throw new Error('the answer of rspamd is too long')
  }
  if (response.status !== 200) throw new Error(`rspamd answered ${response.status}`)
  return Buffer.concat(pieces).toString()
}

/** What a header field can hold. */
const printable = (text: string) => text.replaceAll(/[^\x20-\x7e]/g, '?')
