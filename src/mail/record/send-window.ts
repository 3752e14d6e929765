/** The hours in which a message is sent: its own, else those of its domain (messages.md rule 46). */
import { weeklyWindow } from '../../base/time/weekly-window.ts'
import type { Domain } from '../../sending/domains/domain.ts'
import type { MessageOptions } from './options.ts'

/** In place of a window: the message is sent at any time, whatever its domain says. */
export const SEND_ALWAYS = 'always'

/** The first time at or after `time` at which it may be sent; Unix milliseconds. */
export function sendTime(
  time: number,
  { sendWindow }: Pick<MessageOptions, 'sendWindow'>,
  domain: Pick<Domain, 'sendWindow'> | null,
): number {
  const window = sendWindow ?? domain?.sendWindow ?? SEND_ALWAYS
  return window === SEND_ALWAYS ? time : (weeklyWindow(window)?.next(time) ?? time)
}
