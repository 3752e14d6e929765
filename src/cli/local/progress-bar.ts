/** A line that is written again and again on a terminal; nothing where the output is a file or a pipe. */
import { printableLine } from '../../base/printable.ts'

const BAR_WIDTH = 24
/** More often is no use to an eye, and costs time. */
const EVERY_MS = 100

export type ProgressBar = ReturnType<typeof createProgressBar>

/** @param out usually the error output, so that results can be piped */
export function createProgressBar(out: NodeJS.WriteStream = process.stderr) {
  const isShown = out.isTTY === true
  let shownAt = Number.NEGATIVE_INFINITY
  const clear = () => {
    if (shownAt > 0) out.write('\r\u001b[K')
  }
  return {
    /** @param fraction 0 to 1 */
    show(fraction: number, text: string): void {
      const now = performance.now()
      if (!isShown || now - shownAt < EVERY_MS) return
      shownAt = now
      const filled = Math.round(fraction * BAR_WIDTH)
      const percent = String(Math.floor(fraction * 100)).padStart(3)
      const bar = '#'.repeat(filled) + '.'.repeat(BAR_WIDTH - filled)
      const width = Math.max(0, (out.columns ?? 80) - BAR_WIDTH - 9)
      out.write(`\r[${bar}] ${percent}% ${text.slice(0, width)}\u001b[K`)
    },
    /** Writes a line above the bar. */
    note(text: string): void {
      clear()
      if (isShown) out.write(`${printableLine(text)}\n`)
    },
    /** Removes the bar. */
    end: clear,
  }
}
