/** A line that is written again and again on a terminal; nothing where the output is a file or a pipe. */
import { printableLine } from '../../base/printable.ts'

const BAR_WIDTH = 24
/** More often is no use to an eye, and costs time. */
const EVERY_MS = 100

export interface ProgressBar {
  /** @param fraction 0 to 1 */
  show(fraction: number, text: string): void
  /** Writes a line above the bar. */
  note(text: string): void
  /** Removes the bar. */
  end(): void
}

/** @param out usually the error output, so that results can be piped */
export function createProgressBar(out: NodeJS.WriteStream = process.stderr): ProgressBar {
  const isShown = out.isTTY === true
  let shownAt = Number.NEGATIVE_INFINITY
  const clear = () => {
    if (shownAt > 0) out.write('\r\u001b[K')
  }
  return {
    show(fraction, text) {
      const now = performance.now()
      if (!isShown || now - shownAt < EVERY_MS) return
      shownAt = now
      const filled = Math.round(fraction * BAR_WIDTH)
      const percent = String(Math.floor(fraction * 100)).padStart(3)
      const bar = '#'.repeat(filled) + '.'.repeat(BAR_WIDTH - filled)
      const width = Math.max(0, (out.columns ?? 80) - BAR_WIDTH - 9)
      out.write(`\r[${bar}] ${percent}% ${text.slice(0, width)}\u001b[K`)
    },
    note(text) {
      clear()
      if (isShown) out.write(`${printableLine(text)}\n`)
    },
    end: clear,
  }
}
