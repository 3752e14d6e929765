/**
 * Watches the free space of the data folder, so that new mail is refused (507, SMTP 452) while there is still
 * room to finish what was accepted: the floor is a reserve for outcomes and events.
 */
import { statfs } from 'node:fs/promises'
import type { Clock, Timer } from '../base/clock.ts'
import { InsufficientStorage } from '../base/errors.ts'

export interface FreeSpace {
  /** False: below the floor at the last look. */
  readonly enough: boolean
  /** @throws InsufficientStorage below the floor */
  check(): void
  close(): void
}

/** A look costs some 20 us. */
const LOOK_EVERY_MS = 1_000

/** @param onChange told when the floor is crossed, in either direction */
export async function watchFreeSpace(
  folder: string,
  minBytes: number,
  clock: Clock,
  onChange: (enough: boolean) => void,
): Promise<FreeSpace> {
  let enough = true
  let timer: Timer | null = null
  let closed = false

  async function look(): Promise<void> {
    const { bavail, bsize } = await statfs(folder)
    const now = bavail * bsize >= minBytes
    if (now === enough) return
    enough = now
    onChange(now)
  }
  const arm = () => {
    timer = clock.setTimer(LOOK_EVERY_MS, () => {
      // A folder that cannot be asked about will fail louder elsewhere.
      void look()
        .catch(() => {})
        .finally(() => {
          if (!closed) arm()
        })
    })
  }
  await look()
  arm()
  return {
    get enough() {
      return enough
    },
    check() {
      if (!enough) throw new InsufficientStorage()
    },
    close() {
      closed = true
      timer?.cancel()
    },
  }
}
