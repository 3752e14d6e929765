/** The spam score of a received mail: of rspamd or SpamAssassin, or of a few checks of our own. */
import type { Logger } from 'pino'
import type { Config } from '../../../platform/config/config.ts'
import type { Resolver } from '../../../protocols/dns/resolver.ts'
import { chunkSize, readChunk } from '../../../protocols/message/mime-message.ts'
import { askRspamd } from '../../../protocols/scanners/rspamd.ts'
import type { AskScorer, ScoredMail, SpamScore } from '../../../protocols/scanners/spam-score.ts'
import { askSpamd } from '../../../protocols/scanners/spamd.ts'
import type { MailVerdict } from '../mail-check.ts'
import { ownScore } from './own-score.ts'

/** Null: there is no score, because the mail is large or the scorer does not answer. Never rejects. */
export type SpamScorer = (mail: ScoredMail, verdict: MailVerdict) => Promise<SpamScore | null>

/** Spam is short: larger mail is not scored, as `spamc` does. */
export const SCORED_BYTES_MAX = 1024 * 1024
/** The client waits for its reply meanwhile. */
const ANSWER_MS_MAX = 10_000

const ASK: Record<'rspamd' | 'spamd', AskScorer> = { rspamd: askRspamd, spamd: askSpamd }

/** Asks the configured scorer; null: none is set. The function resolves to null as a `SpamScorer` does, and never rejects. */
export function createScorerClient({
  config: { spamScorer },
  log,
}: {
  config: Pick<Config, 'spamScorer'>
  log: Logger
}): ((mail: ScoredMail) => Promise<SpamScore | null>) | null {
  if (!spamScorer) return null
  return async (mail) => {
    if (chunkSize(mail.raw) > SCORED_BYTES_MAX) return null
    try {
      const bytes = await readChunk(mail.raw)
      return await ASK[spamScorer.kind](spamScorer, mail, bytes, AbortSignal.timeout(ANSWER_MS_MAX))
    } catch (error) {
      log.warn(
        { err: error, scorer: spamScorer.kind },
        'a mail has no spam score: the scorer does not answer',
      )
      return null
    }
  }
}

export function createSpamScorer({
  config,
  resolver,
  log,
}: {
  config: Pick<Config, 'spamScorer' | 'spamThreshold' | 'spamDnsblZones'>
  resolver: Pick<Resolver, 'query'>
  log: Logger
}): SpamScorer {
  const { spamThreshold: threshold, spamDnsblZones: zones } = config
  const ask = createScorerClient({ config, log })
  return async (mail, verdict) =>
    ask === null ? ownScore(mail, verdict, { resolver, zones, threshold }) : ask(mail)
}
