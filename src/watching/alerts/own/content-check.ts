/** The check of mail before it is sent: whether it answers, and whether mail waits for a person. */
import { MINUTE_MS } from '../../../base/time/durations.ts'
import type { ContentCheck } from '../../../sending/content-check/check.ts'
import type { Holds } from '../../../sending/content-check/holds.ts'
import type { OwnCheck } from './own-check.ts'

/** Lasts this long after the last message about which a scanner did not answer. */
const LASTS_MS = 10 * MINUTE_MS

/** `node`: the name of this host. */
export function uncheckedMailCheck(
  check: Pick<ContentCheck, 'results' | 'lastUncheckedAt'>,
  node: string,
): OwnCheck {
  /** Unchecked messages before the present failure. */
  let before = 0
  let since: number | null = null
  return {
    name: 'content-check',
    description: 'A scanner does not answer: mail is sent without a check of its content, or waits for it.',
    metric: 'unchecked_messages',
    comparator: '>=',
    limit: '1',
    dimension: 'node',
    everyMs: MINUTE_MS,
    node,
    async read(now) {
      const { unchecked } = check.results()
      const lastAt = check.lastUncheckedAt()
      if (lastAt === null || now - lastAt > LASTS_MS) {
        before = unchecked
        since = null
        return []
      }
      since ??= lastAt
      const sent = unchecked - before
      const effect =
        sent === 0
          ? `Mail waits at ${node} for a check of its content`
          : `${sent} messages were sent from ${node} without a check of their content`
      return [
        {
          value: node,
          figure: String(sent),
          since,
          advice: `${effect}, the last at ${new Date(lastAt).toISOString()}. \`sendwright doctor\` shows which scanner does not answer, GET /sendwright/v1/system its last error.`,
        },
      ]
    },
  }
}

export function contentHoldsCheck({ waiting }: Pick<Holds, 'waiting'>): OwnCheck {
  return {
    name: 'content-holds',
    description: 'The content check keeps mail until somebody decides.',
    metric: 'held_messages',
    comparator: '>=',
    limit: '1',
    dimension: '',
    everyMs: MINUTE_MS,
    async read() {
      const found = await waiting()
      if (found === null) return []
      const { messages, since } = found
      return [
        {
          value: '',
          figure: String(messages),
          since,
          advice: `The content check keeps ${messages} messages. GET /sendwright/v1/content-holds lists them by content; release or drop each, in the dashboard under Delivery.`,
        },
      ]
    },
  }
}
