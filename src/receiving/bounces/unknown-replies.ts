/**
 * The most frequent replies of the last days that no rule knows, over all accounts: what an operator may write a rule for.
 * Failures are kept with their masked replies anyway (failures.ts), so these are only counted.
 *
 * Replies that differ in numbers and ids alone are one text. Those that the present rules know are left out, as after a
 * new rule. Bounded: the newest failures, the most frequent of their replies.
 */
import { DAY_MS } from '../../base/time/durations.ts'
import type { Store } from '../../platform/store/store.ts'
import { classify } from './classify.ts'
import { type RuleSet, UNCLASSIFIED } from './rules.ts'

interface UnknownReply {
  /** Words with digits are `#`; addresses are masked. */
  text: string
  count: number
  /** One as it was, with addresses masked. */
  sample: string
  /** Unix milliseconds of the newest. */
  lastAt: number
}

export const UNKNOWN_DAYS = 7
const UNKNOWN_MAX = 10
const TEXT_CHARS_MAX = 200
/** Failures that one request counts, the newest ones: 20 ms of a reader. */
const FAILURES_MAX = 20_000
/** Replies of up to 512 characters. */
const REPLIES_MAX = 2_000
/** Texts that the present rules are asked about, each for some microseconds. */
const ASKED_MAX = 500

const SQL = `SELECT sample, count(*) AS count, max(failed_at) AS last_at, max(counted) AS counted FROM (
    SELECT sample, failed_at, count(*) OVER () AS counted FROM (
      SELECT sample, failed_at FROM classified_failures WHERE rule_id = '${UNCLASSIFIED.id}' AND failed_at > ?
      ORDER BY failed_at DESC LIMIT ${FAILURES_MAX}) AS newest) AS recent
  GROUP BY sample ORDER BY count(*) DESC, sample LIMIT ${REPLIES_MAX}`

/** Most frequent first, at most ten. `partial`: there were more failures, or more replies, than are counted. */
export async function unknownReplies(
  store: Store,
  rules: RuleSet,
  now: number,
): Promise<{ replies: UnknownReply[]; partial: boolean }> {
  const rows = await store.read({ sql: SQL, values: [Math.floor(now) - UNKNOWN_DAYS * DAY_MS] })
  const byText = new Map<string, UnknownReply>()
  for (const row of rows) {
    const sample = String(row['sample'])
    const [count, lastAt] = [Number(row['count']), Number(row['last_at'])]
    const text = foldedText(sample)
    const known = byText.get(text)
    if (known) {
      known.count += count
      known.lastAt = Math.max(known.lastAt, lastAt)
    } else byText.set(text, { text, count, sample, lastAt })
  }
  const replies: UnknownReply[] = []
  for (const reply of [...byText.values()].sort((a, b) => b.count - a.count).slice(0, ASKED_MAX)) {
    if (isUnknown(rules, reply.sample)) replies.push(reply)
    if (replies.length === UNKNOWN_MAX) break
  }
  const isPartial = rows.length === REPLIES_MAX || Number(rows[0]?.['counted'] ?? 0) === FAILURES_MAX
  return { replies, partial: isPartial }
}

/** The reply code stays, and an enhanced code after it; every other word with a digit becomes `#`. */
function foldedText(sample: string): string {
  const [codes = ''] = /^\d{3}(?: [245]\.\d{1,3}\.\d{1,3}\b)?/.exec(sample) ?? []
  const words = sample
    .slice(codes.length)
    .replace(/[\p{L}\d_.:/=+-]+/gu, (word) => (/\d/.test(word) ? '#' : word))
  return (codes + words).slice(0, TEXT_CHARS_MAX).toWellFormed()
}

function isUnknown(rules: RuleSet, sample: string): boolean {
  const [code, text] = [Number(sample.slice(0, 3)), sample.slice(3).trim()]
  const envelope = { recipients: [], senders: [] }
  return classify(rules, { code, enhanced: null, text, envelope, permanent: true }).ruleId === UNCLASSIFIED.id
}
