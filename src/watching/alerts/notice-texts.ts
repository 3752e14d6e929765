/** The words of notices: what figure, since when, and what to do. Pure. */
import { formatRfc3339 } from '../../base/time/dates.ts'
import type { AlertHitRow } from '../../platform/store/schema.ts'
import type { AlertMetric } from './alert.ts'

export type NoticeKind = 'triggered' | 'resolved'

/** What the owner of a threshold alert should look at. */
export const METRIC_ADVICE: Readonly<Record<AlertMetric, string>> = {
  hard_bounce_rate:
    'Many addresses do not exist. Stop the mailing, see which list they came from, and look at the failed events of this time.',
  temporary_fail_rate:
    'Receivers defer much mail. Look at the replies in the failed events of this time; send more slowly if they speak of rates.',
  delivered_rate:
    'Look at the failed events of this time: their replies say why receivers do not take the mail.',
  complained_rate:
    'Recipients call the mail spam. Stop the mailing, and see whether they asked for it and can unsubscribe easily.',
}

interface NoticeText {
  subject: string
  /** Plain text of several lines. */
  text: string
}

const SUBJECT_NAME_MAX = 80

/** `advice`: what to do; of the service's own checks the hit has it. `nowMs`: when the change was seen. */
export function noticeText(hit: AlertHitRow, kind: NoticeKind, advice: string, nowMs: number): NoticeText {
  const name = hit.name.length > SUBJECT_NAME_MAX ? `${hit.name.slice(0, SUBJECT_NAME_MAX)}...` : hit.name
  const about = hit.dimension === '' ? '' : ` for ${hit.dimension} ${hit.dimension_value}`
  const figure = `${hit.metric}${about}: ${hit.latest_value} (the alert is for ${hit.comparator} ${hit.limit_text})`
  const since = formatRfc3339(new Date(hit.since_at))
  if (kind === 'resolved') {
    const until = formatRfc3339(new Date(nowMs))
    return {
      subject: `Resolved: ${name}${about}`,
      text: `The alert "${hit.name}" is over.\n\nLast figure: ${figure}\nSince: ${since}\nUntil: ${until}\n`,
    }
  }
  return {
    subject: `Alert: ${name}${about}`,
    text: `The alert "${hit.name}" has triggered.\n\nFigure: ${figure}\nSince: ${since}\n\n${advice}\n\nA notice follows when it is over.\n`,
  }
}

/** Slack reads these characters as markup. */
export const slackText = ({ subject, text }: NoticeText): string =>
  `${subject}\n${text}`.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
