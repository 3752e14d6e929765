/** Sends many records in steps, so that progress shows, bad ones are left out, and limits of the service are kept. */
import type { Answer } from '../../api.ts'
import type { ImportRecord } from './records.ts'

export interface BadRecord {
  /** From 1, as in the file without its header. */
  number: number
  why: string
}

export interface ImportState {
  done: number
  bad: BadRecord[]
  /** Why it stopped before the end. */
  fault?: string
}

/** The file is of another kind if so many are bad. */
const BAD_MAX = 100
const WAITS_MAX = 20
const WAIT_MAX_SECONDS = 120

export interface ImportSteps {
  records: readonly ImportRecord[]
  size: number
  send: (records: readonly ImportRecord[]) => Promise<Answer<unknown>>
  /** Why a record cannot be stored; for operations that pass over bad ones without a word. */
  check?: ((record: ImportRecord) => string | undefined) | undefined
  onProgress: (state: ImportState) => void
  /** Stops before the next step. */
  isStopped: () => boolean
  wait?: (ms: number) => Promise<void>
}

const sleep = (ms: number) => new Promise<void>((resolve) => window.setTimeout(resolve, ms))

/** Resolves with the final state. A step that the service refuses for one record is sent again without it. */
export async function runImport(steps: ImportSteps): Promise<ImportState> {
  const { records, size, send, check, onProgress, isStopped, wait = sleep } = steps
  const state: ImportState = { done: 0, bad: [] }
  let waits = 0
  while (state.done < records.length && state.fault === undefined && !isStopped()) {
    let step = records
      .slice(state.done, state.done + size)
      .map((record, at) => ({ record, number: state.done + at + 1 }))
    const end = state.done + step.length
    if (check !== undefined)
      step = step.filter(({ record, number }) => {
        const why = check(record)
        if (why !== undefined) state.bad.push({ number, why })
        return why === undefined
      })
    while (step.length > 0) {
      const answer = await send(step.map(({ record }) => record))
      if (answer.ok) break
      const { status, message, retrySeconds = 1 } = answer.failure
      const badAt = status === 400 ? /\(index (\d+)\)/.exec(message)?.[1] : undefined
      if (status === 429 && waits < WAITS_MAX) {
        waits += 1
        await wait(Math.min(retrySeconds, WAIT_MAX_SECONDS) * 1000)
      } else if (badAt !== undefined && step[Number(badAt)] !== undefined && state.bad.length < BAD_MAX) {
        const at = Number(badAt)
        state.bad.push({ number: step[at]?.number ?? 0, why: message.replace(/ ?\(index \d+\)/, '') })
        step = step.filter((_, other) => other !== at)
      } else {
        state.fault = message
        break
      }
    }
    if (state.fault === undefined) state.done = end
    onProgress({ ...state, bad: [...state.bad] })
  }
  return state
}
