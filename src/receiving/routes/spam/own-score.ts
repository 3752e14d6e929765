/**
 * A score without a scorer: who sends, not what. It finds forged senders and listed clients; for more there are rspamd and
 * SpamAssassin (routes-inbound.md section 5 rule 6 has the points).
 */
import { isIP } from 'node:net'
import { queryBlocklists } from '../../../protocols/dns/blocklist.ts'
import type { Resolver } from '../../../protocols/dns/resolver.ts'
import type { Chunk } from '../../../protocols/message/mime-message.ts'
import type { RawHeader } from '../../../protocols/mime/split.ts'
import type { ScoredMail, SpamScore } from '../../../protocols/scanners/spam-score.ts'
import type { MailVerdict } from '../mail-check.ts'

export interface ReceivedMail extends ScoredMail {
  raw: Chunk
  headers: readonly RawHeader[]
}

interface OwnScoreParts {
  resolver: Pick<Resolver, 'query'>
  /** DNS blocklists that the client's address is looked up in. */
  zones: readonly string[]
  threshold: number
}

const LISTED_POINTS = 4

export async function ownScore(
  mail: Pick<ReceivedMail, 'headers' | 'helo' | 'remoteAddress'>,
  verdict: MailVerdict,
  { resolver, zones, threshold }: OwnScoreParts,
): Promise<SpamScore> {
  const answers = zones.length === 0 ? [] : await queryBlocklists(resolver, [mail.remoteAddress], zones)
  const listed = answers.filter(({ kind }) => kind === 'listed').length
  const score = pointsOf(mail, verdict) + listed * LISTED_POINTS
  return { score, isSpam: score >= threshold }
}

/** Points for what the mail and the checks of its origin say. */
export function pointsOf(
  { headers, helo }: Pick<ReceivedMail, 'headers' | 'helo'>,
  { spf, dkim, authenticationResults }: Pick<MailVerdict, 'spf' | 'dkim' | 'authenticationResults'>,
): number {
  const found: [boolean, number][] = [
    [spf === 'fail', 2.5],
    [spf === 'softfail', 1],
    [dkim === 'fail', 0.5],
    [/;\s*dmarc=fail\b/i.test(authenticationResults), 3],
    [count(headers, 'from') !== 1, 3],
    [count(headers, 'date') !== 1, 1],
    [count(headers, 'message-id') !== 1, 1],
    // RFC 5321 §4.1.1.1 asks for a name with dots, or an address literal.
    [isIP(helo) !== 0 || (!helo.includes('.') && !helo.startsWith('[')), 1],
  ]
  return found.reduce((sum, [isSo, points]) => (isSo ? sum + points : sum), 0)
}

const count = (headers: readonly RawHeader[], name: string) =>
  headers.filter((header) => header.name.toLowerCase() === name).length
