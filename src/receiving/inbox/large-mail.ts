/** Reads captured mail: small ones here, large ones in a worker thread, so that they do not block the main thread. */
import { join } from 'node:path'
import { createSideThread } from '../../base/flow/side-thread.ts'
import { Unavailable } from '../../base/process/errors.ts'
import type { Of } from '../../base/shape.ts'
import type { Chunk } from '../../protocols/message/mime-message.ts'
import { type Authentication, type PublicKeys, unverified, verifyOwnSignatures } from './authentication.ts'
import type { ReadingFunctions } from './reading-thread.ts'
import type { CAPTURED_WHOLE } from './shapes.ts'
import { fileOf, type ShownFile, type ShownRow, type ShownTexts, textsOf, viewOf } from './view.ts'

export type MailReader = ReturnType<typeof createMailReader>

/** Larger mail is read in the worker thread; one of this size takes up to 40 ms. */
const READ_HERE_MAX_BYTES = 256 * 1024

export function createMailReader() {
  const thread = createSideThread<ReadingFunctions>(join(import.meta.dirname, 'reading-thread.ts'))
  const isSmall = ({ size_bytes }: Pick<ShownRow, 'size_bytes'>) => size_bytes <= READ_HERE_MAX_BYTES
  return {
    /** As `verifyOwnSignatures`. */
    verify(raw: Chunk, keys: PublicKeys): Promise<Authentication> {
      const file = raw instanceof Uint8Array ? undefined : raw.file?.()
      return file === undefined
        ? verifyOwnSignatures(raw, keys)
        : thread.call('verify', () => [file, keys]).catch(notVerified)
    },
    /** As `viewOf`: the object, or its JSON. `read` returns the bytes. */
    view: async (
      row: ShownRow,
      read: () => Promise<Buffer>,
    ): Promise<Of<typeof CAPTURED_WHOLE> | Uint8Array> =>
      isSmall(row)
        ? viewOf(row, await read())
        : thread.call(
            'view',
            async () => [row, await read()],
            ([, raw]) => ownMemory(raw),
          ),
    /** As `fileOf`. */
    file: async (row: ShownRow, read: () => Promise<Buffer>, n: number): Promise<ShownFile | null> =>
      isSmall(row)
        ? fileOf(await read(), n)
        : thread.call(
            'file',
            async () => [await read(), n],
            ([raw]) => ownMemory(raw),
          ),
    /** As `textsOf`. */
    texts: async (row: Pick<ShownRow, 'size_bytes'>, read: () => Promise<Buffer>): Promise<ShownTexts> =>
      isSmall(row)
        ? textsOf(await read())
        : thread.call(
            'texts',
            async () => [await read()],
            ([raw]) => ownMemory(raw),
          ),
    close: () => thread.close(),
  }
}

/** The mail is kept all the same: captured mail must be visible. */
function notVerified(error: unknown): Authentication {
  if (!(error instanceof Unavailable)) throw error
  return unverified('verifying took too long')
}

/** Transferred instead of copied, if the buffer holds nothing else. */
const ownMemory = ({ buffer, byteLength }: Uint8Array): ArrayBuffer[] =>
  buffer.byteLength === byteLength ? [buffer as ArrayBuffer] : []
