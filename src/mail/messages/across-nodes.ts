/**
 * The engine of this process together with those of the others on the database.
 *
 * - Mail that was inserted as queued wakes them: one hint for all that arrives in HINT_MS.
 * - `whileIdle` has each of them give back what it holds and begin nothing until `run` has ended. A process that does not
 *   confirm is waited for until it is dead, as nothing it held is handed over then. The others resume by themselves when
 *   the one that asked is silent for PAUSE_MAX_MS.
 */
import type { Changes } from '../../base/changes.ts'
import { newId } from '../../base/ids.ts'
import type { Clock, Timer } from '../../base/time/clock.ts'
import type { Delivery } from '../deliver/contract.ts'

const DUE = 'mail-due'
const PAUSE = 'delivery-pause'
const RESUME = 'delivery-resume'

const HINT_MS = 100
/** What falls due later is found by the polls that each process makes anyway. */
const SOON_MS = 30_000
const REPEAT_MS = 5_000
const PAUSE_MAX_MS = 4 * REPEAT_MS
/** An announcement waits two seconds; a node that does not answer for six is dead. */
const PAUSE_TRIES_MAX = 5

export function acrossNodes(own: Delivery, changes: Changes, clock: Clock): Delivery {
  let hint: Timer | null = null
  function hintLater(): void {
    hint ??= clock.setTimer(HINT_MS, () => {
      hint = null
      changes.hint(DUE, '')
    })
  }
  const pauses = followPauses(own, changes, clock)
  changes.follow(DUE, () => own.wake())

  return {
    ...own,
    wake() {
      own.wake()
      hintLater()
    },
    wakeAt(dueAt) {
      own.wakeAt(dueAt)
      if (dueAt - clock.now() < SOON_MS) hintLater()
    },
    inserted(groups) {
      own.inserted(groups)
      hintLater()
    },
    whileIdle: (run) => own.whileIdle(() => pauseOthers(run, changes, clock)),
    async stop(drainMs) {
      hint?.cancel()
      pauses.end()
      await own.stop(drainMs)
    },
  }
}

async function pauseOthers<T>(run: () => Promise<T>, changes: Changes, clock: Clock): Promise<T> {
  const id = newId()
  let repeat: Timer | undefined
  const repeatLater = () => {
    repeat = clock.setTimer(REPEAT_MS, () => {
      void changes.announce(PAUSE, id)
      repeatLater()
    })
  }
  repeatLater()
  try {
    for (let tries = 1; tries <= PAUSE_TRIES_MAX; tries++) if (await changes.announce(PAUSE, id)) break
    return await run()
  } finally {
    repeat?.cancel()
    void changes.announce(RESUME, id)
  }
}

/** Holds this engine while others ask for it. */
function followPauses(own: Delivery, changes: Changes, clock: Clock): { end(): void } {
  const pauses = new Map<string, { idle: Promise<void>; resume(): void; extend(): void }>()

  function begin(id: string) {
    const idle = Promise.withResolvers<void>()
    const ended = Promise.withResolvers<void>()
    let timer: Timer
    const pause = {
      idle: idle.promise,
      resume() {
        timer.cancel()
        pauses.delete(id)
        ended.resolve()
      },
      extend() {
        timer?.cancel()
        timer = clock.setTimer(PAUSE_MAX_MS, () => pause.resume())
      },
    }
    pause.extend()
    pauses.set(id, pause)
    own
      .whileIdle(() => {
        idle.resolve()
        return ended.promise
      })
      .catch((error: unknown) => {
        pause.resume()
        idle.reject(error)
      })
    return pause
  }

  const end = () => {
    for (const pause of [...pauses.values()]) pause.resume()
  }
  changes.follow(PAUSE, (id) => {
    // That a resumption may have been missed is settled by the time limit.
    if (id === null) return
    const pause = pauses.get(id) ?? begin(id)
    pause.extend()
    return pause.idle
  })
  changes.follow(RESUME, (id) => (id === null ? end() : pauses.get(id)?.resume()))
  return { end }
}
