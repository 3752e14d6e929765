import type { Statement, Store } from './store.ts'

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
