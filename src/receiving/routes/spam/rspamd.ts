/** rspamd's HTTP protocol: POST /checkv2 of its normal worker; rspamd.com/doc/developers/protocol.html. */
import { parseForeignJson } from '../../../base/foreign-json.ts'
import { isPlainObject } from '../../../base/values.ts'
import type { AskScorer } from './spam-score.ts'

/** rspamd's own decision by its thresholds; greylisting is not ours to do for it. */
const SPAM_ACTIONS: readonly unknown[] = ['reject', 'add header', 'rewrite subject']

export const askRspamd: AskScorer = async ({ host, port }, mail, bytes, signal) => {
  const headers = new Headers({
    ip: mail.remoteAddress,
    helo: printable(mail.helo),
    from: printable(mail.sender),
  })
  for (const recipient of mail.recipients) headers.append('rcpt', printable(recipient))
  const response = await fetch(`http://${host}:${port}/checkv2`, {
    method: 'POST',
    headers,
    body: new Uint8Array(bytes),
    signal,
    redirect: 'error',
  })
  if (response.status !== 200) throw new Error(`rspamd answered ${response.status}`)
  const answer = parseForeignJson(await response.text())
  if (!isPlainObject(answer) || typeof answer['score'] !== 'number')
    throw new Error('the answer of rspamd has no score')
  const required = answer['required_score']
  return {
    score: answer['score'],
    isSpam: SPAM_ACTIONS.includes(answer['action']),
    ...(typeof required === 'number' && { required }),
  }
}

/** What a header field can hold. */
const printable = (text: string) => text.replaceAll(/[^\x20-\x7e]/g, '?')
