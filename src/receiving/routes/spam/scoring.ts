/** The spam score of a received mail: of the operator's scorer, or of a few checks of our own. */
import type { Config } from '../../../platform/config/config.ts'
import type { Resolver } from '../../../protocols/dns/resolver.ts'
import { chunkSize, readChunk } from '../../../protocols/message/mime-message.ts'
import type { SpamScore } from '../../../protocols/scanners/spam-score.ts'
import { SCORED_BYTES_MAX, type Scanners } from '../../../sending/content-check/scanners.ts'
import type { MailVerdict } from '../mail-check.ts'
import { ownScore, type ReceivedMail } from './own-score.ts'

/** Null: there is no score, because the mail is large or the scorer does not answer. Rejects when the mail cannot be read. */
export type SpamScorer = (mail: ReceivedMail, verdict: MailVerdict) => Promise<SpamScore | null>

export function createSpamScorer({
  config,
  resolver,
  scanners: { inboundScore },
}: {
  config: Pick<Config, 'spamThreshold' | 'spamDnsblZones'>
  resolver: Pick<Resolver, 'query'>
  scanners: Pick<Scanners, 'inboundScore'>
}): SpamScorer {
  const { spamThreshold: threshold, spamDnsblZones: zones } = config
  return async (mail, verdict) => {
    if (inboundScore === null) return ownScore(mail, verdict, { resolver, zones, threshold })
    return chunkSize(mail.raw) > SCORED_BYTES_MAX ? null : inboundScore(mail, await readChunk(mail.raw))
  }
}
