/** Ways to commit that several areas use. */
import { StaleWrite, type Statement, type Store } from './store.ts'

/** Repeats a statement that affects up to `rowsMax` rows until there are fewer, or `signal` aborts. */
export async function commitInChunks(
  store: Pick<Store, 'commit'>,
  statement: Statement,
  rowsMax: number,
  signal?: AbortSignal,
): Promise<void> {
  while (!signal?.aborted) {
    const [result] = await store.commit([statement])
    if ((result?.affected ?? 0) < rowsMax) return
  }
}

/** False: one of them was stale, and nothing was written. */
export async function commitUnlessStale(
  store: Pick<Store, 'commit'>,
  statements: readonly Statement[],
): Promise<boolean> {
  try {
    await store.commit(statements)
    return true
  } catch (error) {
    if (error instanceof StaleWrite) return false
    throw error
  }
}

/** For `catch`: rejects with another error where a write was stale. */
export const ifStale =
  (fault: (stale: StaleWrite) => Error) =>
  (error: unknown): never => {
    throw error instanceof StaleWrite ? fault(error) : error
  }
