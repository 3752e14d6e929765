/**
 * Stepped tasks whose result is a file in pieces: each step may add a blob, which its commit names in `blobs_json`. A task
 * that cannot go on ends without its pieces.
 */
import type { Logger } from 'pino'
import type { BlobStore, SpooledBlob } from '../store/blobs/blobs.ts'
import {
  type AfterCommit,
  createTaskSteps,
  type TaskParts,
  type TaskSteps,
  type TaskTable,
} from './stepped-task.ts'

interface PieceRow {
  id: string
  tries: number
  /** Names of blobs, a JSON array. */
  blobs_json: string
}

export interface PieceTask<Row> {
  table: TaskTable
  triesMax: number
  step(task: Row, signal: AbortSignal): Promise<void>
  /** Whether trying again is of no use. */
  isFinal(error: unknown): boolean
  /** What a task that ends so becomes. */
  failed(error: unknown): Partial<Row>
}

/** The process died in each of the steps that were begun. */
class StepsDied extends Error {}

export const piecesOf = ({ blobs_json }: Pick<PieceRow, 'blobs_json'>) => JSON.parse(blobs_json) as string[]

export function createPieceSteps<Row extends PieceRow>(
  parts: TaskParts & { blobs: BlobStore; log: Logger },
  { table, triesMax, step, isFinal, failed }: PieceTask<Row>,
): TaskSteps<Row> {
  const { blobs, log } = parts
  const tasks = createTaskSteps<Row>(
    parts,
    table,
    async (task, signal) => {
      // Nothing has said that the steps before failed.
      if (task.tries > triesMax) throw new StepsDied(`a step was begun ${triesMax} times and did not end`)
      await step(task, signal)
    },
    async (task, error) => {
      const isStopped = error instanceof Error && error.name === 'AbortError'
      if (isStopped || (!isFinal(error) && task.tries < triesMax)) return false
      if (!isFinal(error)) log.warn({ err: error, [table.name]: task.id }, 'a task failed')
      const pieces = piecesOf(task)
      await tasks.commit(task, { ...failed(error), blobs_json: '[]' }, [], 'release')
      for (const name of pieces) await blobs.remove(name)
      return true
    },
  )
  return tasks
}

/** Commits a step with its piece, which does not stay without the commit. */
export async function commitPiece<Row extends PieceRow>(
  { blobs, tasks }: { blobs: BlobStore; tasks: TaskSteps<Row> },
  task: Row,
  { chunk }: SpooledBlob,
  change: Partial<Row>,
  after: AfterCommit,
): Promise<void> {
  const name = await blobs.keep(chunk)
  try {
    const blobs_json = JSON.stringify([...piecesOf(task), name])
    await tasks.commit(task, { ...change, blobs_json }, [], after)
  } catch (error) {
    await blobs.remove(name)
    throw error
  }
}
