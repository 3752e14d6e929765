/**
 * The check of mail before it is sent (content-check.md). Once per content, whatever the number of copies:
 *
 * 1. `digestOf` names the content, `copyDigest` that of a copy whose variables say more than a name. What is known of it
 *    decides, for an hour.
 * 2. Otherwise its scanners are asked, in a turn of its account (turns.ts). Preparing a delivery waits a moment for that;
 *    then the delivery goes back to the queue, behind what waits of its account, so that no lane waits for a scanner.
 *    However long the turn takes, nothing passes without one.
 * 3. A content whose scanners gave no answer in their time limit passes unchecked for a minute, or waits, by setting.
 * 4. `verdictOf` says what is done. A person's decision on a content held before takes precedence.
 */
import { Lazy, PassingMap } from '../../base/flow/cache.ts'
import { pause } from '../../base/flow/pause.ts'
import { HOUR_MS, MINUTE_MS } from '../../base/time/durations.ts'
import type { Core } from '../../core.ts'
import type { RecipientVariables } from '../../mail/record/options.ts'
import { attach, isFile, type MessageRecord } from '../../mail/record/record.ts'
import type { ContentCheckConfig } from '../../platform/config/content-check.ts'
import { type MimeMessage, scanMessage } from '../../protocols/message/mime-message.ts'
import { copyDigest, digestOf } from './digest.ts'
import type { Decision, Holds } from './holds.ts'
import { outgoingMail } from './outgoing-mail.ts'
import { SCORED_BYTES_MAX, type Scanners } from './scanners.ts'
import { Turns } from './turns.ts'
import { type Level, type Verdict, verdictOf } from './verdict.ts'

export interface CheckedCopy {
  record: MessageRecord
  /** Envelope. */
  sender: string
  recipient: string
  /** Its variables; null: it has none. */
  variables: RecipientVariables | null
  /** As it would be sent, not signed. */
  message: MimeMessage
  /** False: a retry, whose message was counted before. */
  isFirst: boolean
}

export interface Judgement extends Verdict {
  digest: string
  /** Null: nobody has decided, or nobody had to. */
  decision: Decision | null
}

export type ContentCheck = NonNullable<ReturnType<typeof createContentCheck>>

interface ContentCheckParts extends Pick<Core, 'blobs' | 'clock'> {
  config: ContentCheckConfig & { hostname: string }
  scanners: Pick<Scanners, 'outboundScore' | 'virus'>
  holds: Pick<Holds, 'decisionOn'>
  /** A message of the account was checked. */
  count(accountId: string, domainName: string, isBad: boolean): void
}

/** Checks at a time. rspamd takes more; of SpamAssassin's five children each may take a second. */
const AT_ONCE_MAX = 32
/** A slot of a lane is in use meanwhile: not much longer than a server takes to answer. */
const PATIENCE_MS = 300
/** Contents that are remembered; 150 bytes each. */
const KNOWN_MAX = 50_000
const KNOWN_MS = HOUR_MS
/** Where a scanner did not answer. */
const UNCHECKED_MS = MINUTE_MS

const DIGEST = Symbol('digest of the content')
const COUNTED = Symbol('counted as checked')
/** What was counted of a message: contents of its copies, by digest. */
type Marked = MessageRecord & { [DIGEST]?: Lazy<string>; [COUNTED]?: Set<string> }

/** Null: no scanner of sent mail is configured, and nothing is done for any message. */
export function createContentCheck(parts: ContentCheckParts) {
  const { config, scanners, holds, blobs, clock, count } = parts
  const { outboundScore, virus } = scanners
  if (outboundScore === null && virus === null) return null
  const known = new Map<string, { verdict: Verdict; until: number }>()
  const running = new PassingMap<string, Promise<Verdict>>()
  const turns = new Turns(AT_ONCE_MAX)
  const results = { pass: 0, tag: 0, hold: 0, refuse: 0, unchecked: 0 }
  let uncheckedAt: number | null = null

  function learn(digest: string, verdict: Verdict): Verdict {
    known.delete(digest)
    const until = clock.monotonic() + (verdict.isChecked ? KNOWN_MS : UNCHECKED_MS)
    known.set(digest, { verdict, until })
    if (known.size > KNOWN_MAX) known.delete(known.keys().next().value as string)
    return verdict
  }

  async function ask({ record, sender, recipient, message }: CheckedCopy): Promise<Verdict> {
    const scored = async () =>
      outboundScore?.(
        outgoingMail({ helo: config.hostname, sender, recipient, user: record.accountId }),
        await beginningOf(message),
      )
    const searched = async () => (hasFiles(record) ? virus?.(scanMessage(message), 'outbound') : undefined)
    const [score, found] = await Promise.all([scored(), searched()])
    return verdictOf({ score, virus: found }, config)
  }

  async function run(digest: string, copy: CheckedCopy): Promise<Verdict> {
    try {
      return learn(digest, await ask(copy))
    } finally {
      running.delete(digest)
      turns.giveBack(copy.record.accountId)
    }
  }

  /** Null: patience is over. */
  async function verdictOn(digest: string, copy: CheckedCopy): Promise<Verdict | null> {
    const found = known.get(digest)
    if (found && found.until > clock.monotonic()) return found.verdict
    const limit = new AbortController()
    const patience = pause(clock, PATIENCE_MS, limit.signal)
    try {
      let checking = running.get(digest)
      if (checking === undefined) {
        const { accountId } = copy.record
        if (!turns.take(accountId) && !(await turns.wait(accountId, patience))) return null
        // Another copy may have begun meanwhile.
        checking = running.get(digest)
        if (checking !== undefined) turns.giveBack(accountId)
        else {
          checking = run(digest, copy)
          checking.catch(() => {})
          running.set(digest, checking)
        }
      }
      return await Promise.race([checking, patience.then(() => null)])
    } finally {
      limit.abort()
    }
  }

  return {
    /**
     * `againAt`: not known yet; to be asked again then, in Unix milliseconds.
     * @throws when the content or the database cannot be read
     */
    async judge(copy: CheckedCopy) {
      const record: Marked = copy.record
      const lazy = record[DIGEST] ?? attach(record, DIGEST, new Lazy(() => digestOf(record, blobs)))
      const digest = copyDigest(await lazy.get(), copy)
      const verdict = await verdictOn(digest, copy)
      if (verdict !== null && !verdict.isChecked) uncheckedAt = clock.now()
      if (verdict === null || (!verdict.isChecked && config.outboundCheckFailure === 'wait'))
        return { againAt: Math.ceil(clock.now() + turns.lookAgainIn(record.accountId, clock.monotonic())) }
      const counted = record[COUNTED] ?? attach(record, COUNTED, new Set<string>())
      if (copy.isFirst && !counted.has(digest)) {
        counted.add(digest)
        results[verdict.isChecked ? verdict.level : 'unchecked']++
        // Received mail that is forwarded was not written by the account.
        if (verdict.isChecked && record.content.incoming === undefined)
          count(record.accountId, record.domainName, verdict.level !== 'pass')
      }
      const decision = verdict.level === 'pass' ? null : await holds.decisionOn(digest)
      return { ...verdict, digest, decision }
    },
    /** Contents of messages that passed or were stopped in this process, each once it is judged for the first time. */
    results: (): Readonly<Record<Level | 'unchecked', number>> => results,
    /** Unix milliseconds of the last message that passed, or waits, without an answer of a scanner; null: none has. */
    lastUncheckedAt: () => uncheckedAt,
  }
}

const hasFiles = ({ content }: MessageRecord): boolean =>
  content.kind === 'parts'
    ? content.files.length > 0
    : content.leaves.some((leaf) => isFile(leaf, content.incoming !== undefined))

/** The first SCORED_BYTES_MAX of a message: long files do not keep its texts from being scored. */
async function beginningOf(message: MimeMessage): Promise<Buffer> {
  const pieces: Buffer[] = []
  let left = SCORED_BYTES_MAX
  for await (const piece of scanMessage(message)) {
    // A piece is valid only until the next one.
    pieces.push(Buffer.from(piece.subarray(0, left)))
    left -= piece.byteLength
    if (left <= 0) break
  }
  return Buffer.concat(pieces)
}
