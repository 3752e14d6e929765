/**
 * A whole pod moves to another one of the same database: the directory says so in the transaction that ends the copy. Until then
 * the source's entries stay, so that whoever passes connections on sees a pod without nodes, not a name that nobody has.
 */
import type { Side, Target, Writer } from './side.ts'

export interface PodMove {
  /** Before the first row is copied. */
  begin(): Promise<void>
  /** With the end of the copy. */
  end(writer: Writer): Promise<void>
}

const DATABASE = `SELECT oid::bigint, (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint
  FROM pg_database WHERE datname = current_database()`

/** Null where the source is no pod, or one of another database: the target's first start makes its entries then. */
export async function podMove(
  { source, from }: { source: Side; from: string | null },
  { target, to }: { target: Target; to: string | null },
): Promise<PodMove | null> {
  if (from === null || to === null) return null
  const [here, there] = [await source.query(DATABASE), await target.query(DATABASE)]
  if (here.join() !== there.join()) return null
  const state = (writer: Writer, word: string) =>
    writer.run('UPDATE sendwright_pods.pods SET state = ? WHERE name = ?', [word, from])
  return {
    begin: () => target.write((writer) => state(writer, 'moving')),
    async end(writer) {
      await writer.run('UPDATE sendwright_pods.entries SET pod = ? WHERE pod = ?', [to, from])
      await state(writer, 'moved')
    },
  }
}
